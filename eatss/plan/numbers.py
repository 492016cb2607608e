"""Numbers that rules of a plan are written over: an ``int``, or a NumPy column of numbers.

Rules use operators and these functions only, so they hold for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import gcd
from operator import and_, or_
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = Any
"""A whole number, or a column of whole numbers."""

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
    """Tell whether something holds for no layout, so that there is nothing to compute."""
    return not np.any(flag)


def chosen(flag: Flag, there: Number, elsewhere: Number) -> Number:
    """Return one number where something holds, and the other elsewhere."""
    return elsewhere + (there - elsewhere) * flag


def least(one: Number, other: Number) -> Number:
    """Return the smaller of two numbers, an entry each of two columns."""
    return chosen(other < one, other, one)


def most(one: Number, other: Number) -> Number:
    """Return the larger of two numbers, an entry each of two columns."""
    return chosen(other > one, other, one)


def largest(numbers: Iterable[Number]) -> Number:
    """Return the largest of some numbers and 0, an entry each of columns."""
    return reduce(np.maximum, numbers, 0.0)


def common_divisor(one: Number, other: Number) -> Number:
    """Return the greatest common divisor."""
    if isinstance(one, int):
        return gcd(one, other)
    return np.gcd(one.astype(np.int64), other.astype(np.int64))
