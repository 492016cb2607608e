"""Intervals in the place of numbers: a rule of a plan, or a price, holds for a box of layouts then.

Each operation gives an interval that has its result for all numbers of its operands. So the low end
of a demand is never above the demand of a layout in the box.

Numbers that rules of a plan are written over: an ``int``, a NumPy column, or an interval.

Rules use operators and these functions only, and what NumPy calls a universal function, so they
hold for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from math import gcd
from operator import and_, or_
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Ends: TypeAlias = tuple[Any, Any]
"""The least and the greatest number."""


class Interval(NDArrayOperatorsMixin):
    """All numbers from ``low`` to ``high``, an entry each; a flag may be from false to true."""

    def __init__(self, low: Any, high: Any) -> None:
        """Take both ends."""
        self.low, self.high = np.asarray(low), np.asarray(high)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.low)

    def __repr__(self) -> str:
        return f"Interval({self.low}, {self.high})"

    def astype(self, kind: type) -> Interval:
        """Return it with ends of another type."""
        return Interval(self.low.astype(kind), self.high.astype(kind))

    def chosen(self, there: Any, elsewhere: Any) -> Interval:
        """Return one number where this flag holds, the other elsewhere, and both where it may."""
        return Interval(*_where(_ends(self), _ends(there), _ends(elsewhere)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Return the interval of a function of NumPy."""
        if method != "__call__" or ufunc not in _RULES:
            return NotImplemented
        with np.errstate(all="ignore"):
            return Interval(*_RULES[ufunc](*map(_ends, inputs)))

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:
        """Return what ``where``, ``clip`` and ``any`` do; the last tells what is possible."""
        if function is np.where:
            return Interval(*_where(*map(_ends, arguments)))
        if function is np.clip:
            number, least, most = arguments
            return np.minimum(np.maximum(number, least), most)
        return np.any(self.high) if function is np.any else NotImplemented


def _ends(number: Any) -> Ends:
    return (number.low, number.high) if isinstance(number, Interval) else (number, number)


def _where(flag: Ends, there: Ends, elsewhere: Ends) -> Ends:
    (surely, maybe), (low, high) = flag, (np.minimum, np.maximum)
    return (
        np.where(surely, there[0], np.where(maybe, low(there[0], elsewhere[0]), elsewhere[0])),
        np.where(surely, there[1], np.where(maybe, high(there[1], elsewhere[1]), elsewhere[1])),
    )


def _rising(function: Any, *ends: Ends) -> Ends:
    lows, highs = zip(*ends, strict=True)
    return function(*lows), function(*highs)


def _falling(function: Any, one: Ends, other: Ends) -> Ends:
    """Return the ends of a function that falls with its second number."""
    return function(one[0], other[1]), function(one[1], other[0])


def _corners(function: Any, one: Ends, other: Ends) -> Ends:
    """Return the ends of a product or a quotient, which are at ends of both numbers."""
    found = [
        np.nan_to_num(function(a, 1.0 * b), nan=0.0, posinf=np.inf) for a in one for b in other
    ]
    low, high = np.minimum.reduce(found), np.maximum.reduce(found)
    if function is np.multiply:
        return low, high
    zero = (other[0] <= 0) & (other[1] >= 0)
    least = np.where(one[0] >= 0, np.minimum(low, 0.0), -np.inf)
    return np.where(zero, least, low), np.where(zero, np.inf, high)


def _known(function: Any, one: Ends, other: Ends, least: float) -> Ends:
    """Return the ends of a remainder or a divisor: a number only where both numbers are known."""
    known = (one[0] == one[1]) & (other[0] == other[1])
    own = function(*(np.asarray(ends[0]).astype(np.int64) for ends in (one, other)))
    return np.where(known, own, least), np.where(known, own, np.minimum(one[1], other[1]))


def _equal(one: Ends, other: Ends) -> Ends:
    surely = (one[0] == one[1]) & (other[0] == other[1]) & (one[0] == other[0])
    return surely, (one[0] <= other[1]) & (other[0] <= one[1])


def _not(flag: Ends) -> Ends:
    return np.logical_not(flag[1]), np.logical_not(flag[0])


_RULES: Mapping[Any, Callable[..., Ends]] = {
    **{
        one: partial(_rising, one)
        for one in (np.add, np.minimum, np.maximum, np.ceil, np.floor, np.rint, np.log2)
    },
    **{one: partial(_rising, one) for one in (np.bitwise_and, np.bitwise_or)},
    **{one: partial(_falling, one) for one in (np.subtract, np.greater, np.greater_equal)},
    **{one: partial(_corners, one) for one in (np.multiply, np.divide, np.floor_divide)},
    np.less: lambda one, other: _falling(np.greater, other, one),
    np.less_equal: lambda one, other: _falling(np.greater_equal, other, one),
    np.remainder: partial(_known, np.remainder, least=0.0),
    np.gcd: partial(_known, np.gcd, least=1.0),
    np.equal: _equal,
    np.not_equal: lambda one, other: _not(_equal(one, other)),
    np.invert: _not,
    np.negative: lambda one: _falling(np.subtract, (0, 0), one),
    np.power: lambda one, power: _rising(lambda number: number ** power[0], one),
}
"""What becomes of intervals, by function of NumPy."""


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
    """Tell whether something holds for no layout, so that there is nothing to compute."""
    return not np.any(flag)


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
