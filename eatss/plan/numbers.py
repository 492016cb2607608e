"""Numbers that rules of a plan are written over: an ``int``, a NumPy column, or an interval.

Rules use operators and these functions only, and what NumPy calls a universal function, so they
hold for all three.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import gcd
from operator import and_, or_
from typing import Any, TypeAlias

import numpy as np

from eatss.base.tape import Column
from eatss.plan.intervals import Interval, most_of

Number: TypeAlias = Any
"""A number, a column of numbers, or an interval of them for each entry of a column."""

Flag: TypeAlias = Any
"""A ``bool``, or a column of them."""


def no(flag: Flag) -> Flag:
    """Return where something does not hold."""
    return flag == 0


def all_of(flags: Iterable[Flag]) -> Flag:
    """Return where all hold."""
    return reduce(and_, flags, True)


def any_of(flags: Iterable[Flag]) -> Flag:
    """Return where any holds."""
    return reduce(or_, flags, False)


def nowhere(flag: Flag) -> bool:
    """Tell whether something holds for no layout, so that there is nothing to compute.

    It may be computed all the same: what follows must hold for any layout.
    """
    own = most_of(flag)
    return not isinstance(own, Column) and not np.any(own)


def chosen(flag: Flag, there: Number, elsewhere: Number) -> Number:
    """Return one number where something holds, and the other elsewhere."""
    if isinstance(flag, Interval):
        return flag.chosen(there, elsewhere)
    return elsewhere + (there - elsewhere) * flag


def least(one: Number, other: Number) -> Number:
    """Return the smaller of two numbers, an entry each of two columns."""
    if isinstance(one, Interval) or isinstance(other, Interval):
        return np.minimum(one, other)
    return chosen(other < one, other, one)


def most(one: Number, other: Number) -> Number:
    """Return the larger of two numbers, an entry each of two columns."""
    if isinstance(one, Interval) or isinstance(other, Interval):
        return np.maximum(one, other)
    return chosen(other > one, other, one)


def largest(numbers: Iterable[Number]) -> Number:
    """Return the largest of some numbers and 0, an entry each of columns."""
    return reduce(np.maximum, numbers, 0.0)


def common_divisor(one: Number, other: Number) -> Number:
    """Return the greatest common divisor."""
    if isinstance(one, int):
        return gcd(one, other)
    first, second = (np.float64(x) if isinstance(x, float) else x for x in (one, other))
    return np.gcd(first.astype(np.int64), second.astype(np.int64))
