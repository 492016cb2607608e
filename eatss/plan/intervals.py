"""Intervals in the place of numbers: a rule of a plan, or a price, holds for a box of layouts then.

Each operation gives an interval that has its result for all numbers of its operands. So the low end
of a demand is never above the demand of a layout in the box.

Ends alone forget that numbers belong together: a block of few threads has many points a thread. So
a number that is not negative also has a monomial of the box's sizes on either side of it where one
is known, ``coefficient × product of size ** exponent``. Products and quotients of numbers multiply
their monomials, where sizes cancel: tiles along a loop are at least trips over tile, so tiles times
tile is at least the trips, whatever the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Ends: TypeAlias = tuple[Any, Any]
"""The least and the greatest number."""

Exponents: TypeAlias = tuple[tuple[str, float], ...]
"""Of the sizes in a monomial, ordered by name."""

_ROUNDED = 1e-12
"""Share by which a monomial may be off, rounded as it is: ends keep away from it so far."""


class Box:
    """The least and the greatest of each size, an entry a box; and of names for numbers of them."""

    def __init__(self, sizes: Mapping[str, Ends]) -> None:
        """Take the ends of each size, all above 0."""
        self._logs = {name: (np.log(low), np.log(high)) for name, (low, high) in sizes.items()}
        self._known: dict[Exponents, tuple[Any, Any, float]] = {(): (1.0, 1.0, 0.0)}
        self._named: dict[str, Interval] = {}
        self.intervals = {
            name: Interval(*ends, self, *(Monomial(((name, 1.0),), 1.0),) * 2)
            for name, ends in sizes.items()
        }

    def named(self, name: str, number: Interval) -> Interval:
        """Return a number with itself as its monomials, so that it is left out where it cancels."""
        self._named[name] = number
        self._logs[name] = np.log(number.low), np.log(number.high)
        return Interval(number.low, number.high, self, *(Monomial(((name, 1.0),), 1.0),) * 2)

    def ends(self, exponents: Exponents) -> tuple[Any, Any, float]:
        """Return a monomial's least and greatest value, and the mean logarithm of its middle."""
        if exponents not in self._known:
            least, most = self._of(exponents)
            if any(name in self._named for name, _ in exponents):
                inside = self._of(exponents, under=True)[0], self._of(exponents, under=False)[1]
                least, most = np.fmax(least, inside[0]), np.fmin(most, inside[1])
            middle = float(np.mean(least + most)) / 2
            self._known[exponents] = np.exp(least), np.exp(most), middle
        return self._known[exponents]

    def _of(self, exponents: Exponents, under: bool | None = None) -> tuple[Any, Any]:
        """Return the logarithms of both ends; where told a side, for it names are written out."""
        written: dict[str, float] = {}
        factor: Any = 0.0
        for name, power in exponents:
            found = self._named.get(name) if under is not None else None
            side = None if found is None else (found.under if (power > 0) == under else found.over)
            if side is None:
                written[name] = written.get(name, 0.0) + power
                continue
            factor = factor + power * np.log(side.coefficient)
            for inner, own in side.exponents:
                written[inner] = written.get(inner, 0.0) + power * own
        if under is not None and any(name in self._named and p for name, p in written.items()):
            low, high = self._of(tuple(written.items()), under)
            return factor + low, factor + high
        low = sum(power * self._logs[name][power < 0] for name, power in written.items())
        high = sum(power * self._logs[name][power > 0] for name, power in written.items())
        return factor + low, factor + high


class Monomial(NamedTuple):
    """A coefficient, an entry a box, times powers of sizes."""

    exponents: Exponents
    coefficient: Any


class Interval(NDArrayOperatorsMixin):
    """All numbers from ``low`` to ``high``, an entry each; a flag may be from false to true.

    They are not below the monomial ``under`` of the sizes of a ``box``, nor above ``over``.
    """

    def __init__(
        self,
        low: Any,
        high: Any,
        box: Box | None = None,
        under: Monomial | None = None,
        over: Monomial | None = None,
    ) -> None:
        """Take both ends."""
        self.low, self.high = np.asarray(low), np.asarray(high)
        self.box, self.under, self.over = box, under, over

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
        return _result(np.where, _where, (self, there, elsewhere))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Return the interval of a function of NumPy."""
        if method != "__call__" or ufunc not in _RULES:
            return NotImplemented
        return _result(ufunc, _RULES[ufunc], inputs)

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:
        """Return what ``where``, ``clip`` and ``any`` do; the last tells what is possible."""
        if function is np.where:
            return _result(np.where, _where, arguments)
        if function is np.clip:
            number, least, most = arguments
            return np.minimum(np.maximum(number, least), most)
        return np.any(self.high) if function is np.any else NotImplemented


def at_least(number: Any, least: Any) -> Any:
    """Return a number that is known not to be below another, which its interval may not see."""
    raised: Any = np.maximum
    return raised(number, least) if isinstance(number, Interval) else number


def named(name: str, number: Any) -> Any:
    """Return a number that keeps its name in the monomials of intervals."""
    if isinstance(number, Interval) and number.box is not None:
        return number.box.named(name, number)
    return number


def least_of(number: Any) -> Any:
    """Return what a number that is not negative is at least: of an interval its low end."""
    return np.maximum(0.0, number.low) if isinstance(number, Interval) else number


def _result(function: Any, rule: Callable[..., Ends], inputs: Sequence[Any]) -> Interval:
    with np.errstate(all="ignore"):
        low, high = rule(*map(_ends, inputs))
        box = next((x.box for x in inputs if isinstance(x, Interval) and x.box), None)
        if box is None or function not in _MONOMIALS:
            return Interval(low, high)
        operands = [_Operand(box, x) for x in inputs[-2:]]
        if any(np.any(x.low < 0) for x in operands):
            return Interval(low, high)
        flag = _ends(inputs[0]) if function is np.where else None
        under, over = _MONOMIALS[function](*operands, *([flag] if flag else []))
        if under is not None:
            least = under.coefficient * box.ends(under.exponents)[0]
            low = np.fmax(low, least * (1 - _ROUNDED))
        if over is not None:
            most = over.coefficient * box.ends(over.exponents)[1]
            high = np.fmin(high, most * (1 + _ROUNDED))
        return Interval(low, high, box, under, over)


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


# -- monomials ------------------------------------------------------------------------------------

Sides: TypeAlias = tuple[Monomial | None, Monomial | None]
"""A monomial below a number, and one above it."""


class _Operand:
    """A number that is not negative, with its monomials: else those of its ends."""

    def __init__(self, box: Box, number: Any) -> None:
        self.box = box
        self.low, self.high = _ends(number)
        known = isinstance(number, Interval)
        self.under = (number.under if known else None) or Monomial((), self.low)
        self.over = (number.over if known else None) or Monomial((), self.high)

    def above(self, exponents: Exponents) -> Any:
        """Return a coefficient with which a monomial is not above the number."""
        found = self.low / self.box.ends(exponents)[1]
        return np.fmax(found, self.under[1]) if exponents == self.under[0] else found

    def below(self, exponents: Exponents) -> Any:
        """Return a coefficient with which a monomial is not below the number."""
        found = self.high / self.box.ends(exponents)[0]
        return np.fmin(found, self.over[1]) if exponents == self.over[0] else found


def _best(
    one: _Operand,
    other: _Operand,
    under: Callable[[Any, Any], Any],
    over: Callable[[Any, Any], Any],
) -> Sides:
    """Return the monomials of both numbers joined, in the exponents that say most in the middle."""
    box = one.box

    def size(found: Monomial) -> float:
        middle = np.mean(np.log(np.maximum(found.coefficient, 1e-300)))
        return float(middle) + box.ends(found.exponents)[2]

    lower = [
        Monomial(own, under(one.above(own), other.above(own)))
        for own in dict.fromkeys((one.under[0], other.under[0]))
    ]
    upper = [
        Monomial(own, over(one.below(own), other.below(own)))
        for own in dict.fromkeys((one.over[0], other.over[0]))
    ]
    return max(lower, key=size), min(upper, key=size)


def _joined(one: Exponents, other: Exponents, sign: int) -> Exponents:
    powers = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0.0) + sign * power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _product(one: _Operand, other: _Operand) -> Sides:
    return (
        Monomial(_joined(one.under[0], other.under[0], 1), one.under[1] * other.under[1]),
        Monomial(_joined(one.over[0], other.over[0], 1), one.over[1] * other.over[1]),
    )


def _quotient(one: _Operand, other: _Operand) -> Sides:
    least, most = other.under, other.over
    low = np.nan_to_num(one.under[1] / most[1], nan=0.0, posinf=0.0)
    high = np.nan_to_num(one.over[1] / least[1], nan=np.inf, posinf=np.inf)
    return (
        Monomial(_joined(one.under[0], most[0], -1), low),
        Monomial(_joined(one.over[0], least[0], -1), high),
    )


def _difference(one: _Operand, other: _Operand) -> Sides:
    less = np.nan_to_num(np.clip(1.0 - other.high / one.low, 0.0, 1.0))
    over = np.where(one.high > 0, np.clip(1.0 - other.low / one.high, 0.0, 1.0), 1.0)
    return (
        Monomial(one.under[0], one.under[1] * less),
        Monomial(one.over[0], one.over[1] * over),
    )


def _ceiling(number: _Operand) -> Sides:
    more = np.where(number.low > 0, 1.0 + 1.0 / number.low, np.inf)
    return number.under, Monomial(number.over[0], number.over[1] * more)


def _floor(number: _Operand) -> Sides:
    whole = np.floor(number.low)
    return Monomial(number.under[0], number.under[1] * (whole / (whole + 1.0))), number.over


def _either(there: _Operand, elsewhere: _Operand, flag: Ends) -> Sides:
    surely, maybe = flag

    def chosen(both: Any, one: Any, other: Any) -> Any:
        return np.where(surely, one, np.where(maybe, both(one, other), other))

    return _best(there, elsewhere, partial(chosen, np.minimum), partial(chosen, np.maximum))


_MONOMIALS: Mapping[Any, Callable[..., Sides]] = {
    np.add: partial(_best, under=np.add, over=np.add),
    np.minimum: partial(_best, under=np.minimum, over=np.minimum),
    np.maximum: partial(_best, under=np.maximum, over=np.maximum),
    np.multiply: _product,
    np.divide: _quotient,
    np.subtract: _difference,
    np.ceil: _ceiling,
    np.floor: _floor,
    np.where: _either,
}
"""What becomes of monomials."""
