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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain
from math import log
from operator import add, mul
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from eatss.base.tape import Column, never, seen, when_recorded, whole

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
        self._known: dict[tuple[Exponents, Side, Any], Any] = {}
        self._named: dict[str, Interval] = {}
        self._middles: dict[str, list[float]] = {}
        self._cancels: dict[tuple[Exponents, Exponents, int], bool] = {}
        self.known: dict[object, Interval] = {}
        self.intervals = {
            name: Interval(*ends, self, *(Monomial(((name, 1.0),)),) * 2)
            for name, ends in sizes.items()
        }
        for held in (self.known, self.intervals, self._named):  # which hold the box
            when_recorded(chain(*sizes.values()), held.clear)

    def named(self, name: str, number: Interval) -> Interval:
        """Return a number with itself as its monomials, so that it is left out where it cancels."""
        known = self._named.get(name)
        if known is not number:
            if known is not None:  # of another launch
                kept = self._known.items()
                self._known = {own: end for own, end in kept if name not in dict(own[0])}
                self.known.clear()
            self._named[name] = number
            self._logs[name] = np.log(number.low), np.log(number.high)
            alone = Monomial(((name, 1.0),))
            self.intervals[name] = Interval(number.low, number.high, self, alone, alone)
        return self.intervals[name]

    def end(self, exponents: Exponents, side: Side, of: Any = np.exp) -> Any:
        """Return a monomial's least or greatest value, or its logarithm."""
        key = exponents, side, of
        if key not in self._known:
            if of is np.exp:
                found = np.exp(self.end(exponents, side, np.log))
            else:
                inside = self._written_out(exponents, side)
                found = reduce(np.fmin if side else np.fmax, inside, self._log(exponents, side))
            self._known[key] = found
        return self._known[key]

    def middle(self, exponents: Exponents) -> list[float]:
        """Return logarithms of a monomial in the middle of some entries."""
        found = [0.0] * _SOME
        for name, power in exponents:
            if name not in self._middles:
                ends = (_some(seen(end)) for end in self._logs[name])
                self._middles[name] = [sum(pair) / 2 for pair in zip(*ends, strict=True)]
            found = [own + power * its for own, its in zip(found, self._middles[name], strict=True)]
        return found

    def cancels(self, one: Exponents, other: Exponents, sign: int) -> bool:
        """Tell whether sizes cancel in the product of monomials, or with -1 in the quotient."""
        key = one, other, sign
        if key not in self._cancels:
            forms = (dict(one), dict(other)), (self._written(one), self._written(other))
            self._cancels[key] = any(
                sign * power * mine.get(name, 0.0) < 0
                for mine, its in forms
                for name, power in its.items()
            )
        return self._cancels[key]

    def _written(self, exponents: Iterable[tuple[str, float]]) -> dict[str, float]:
        """Return exponents with names written out."""
        written: dict[str, float] = {}
        for name, power in exponents:
            own = self._made_of(name, 0 if power > 0 else 1)
            inside = {name: 1.0} if own is None else self._written(own.exponents)
            for inner, times in inside.items():
                written[inner] = written.get(inner, 0.0) + power * times
        return written

    def _written_out(self, exponents: Exponents, side: Side) -> Iterator[Any]:
        """Yield logarithms of an end with ever more names written out, the last one first.

        A name is of a number of those before: what it is made of may cancel.
        """
        written, factor = dict(exponents), 0.0
        for name in reversed(self._named):
            power = written.get(name, 0.0)
            own = self._made_of(name, side if power > 0 else 1 - side) if power else None
            if own is not None:
                del written[name]
                factor = factor + power * np.log(own.coefficient)
                for inner, inside in own.exponents:
                    written[inner] = written.get(inner, 0.0) + power * inside
                yield factor + self._log(written.items(), side)

    def _made_of(self, name: str, side: Side) -> Monomial | None:
        """Return the monomial of sizes on a side of what has a name, if it has both."""
        number = self._named.get(name)
        return (
            next((own for own in number.side(side) if own.exponents), None)
            if number is not None
            else None
        )

    def _log(self, exponents: Iterable[tuple[str, float]], side: Side) -> Any:
        """Return the logarithm of an end of a monomial."""
        return sum(
            power * self._logs[name][side if power > 0 else 1 - side]
            for name, power in exponents
            if power
        )


class Monomial:
    """A coefficient, an entry a box, times powers of sizes, some of which may have cancelled.

    Without these it says no more than the ends of the numbers that it was made of.
    """

    def __init__(
        self,
        exponents: Exponents,
        made: Callable[[], Any] = lambda: 1.0,
        cancels: bool = False,
        parts: tuple[Monomial, Monomial, int] | None = None,
    ) -> None:
        """Take what makes the coefficient where it is asked for, and whose product it is."""
        self.exponents, self._made, self.cancels = exponents, made, cancels
        self._parts = parts

    @cached_property
    def coefficient(self) -> Any:
        """The coefficient."""
        return self._made()

    @cached_property
    def logarithms(self) -> list[float]:
        """Logarithms of some entries of the coefficient, of a product about."""
        if self._parts is None:
            return [log(max(own, 1e-300)) for own in _some(seen(self.coefficient))]
        one, other, sign = self._parts
        pairs = zip(one.logarithms, other.logarithms, strict=True)
        return [mine + sign * its for mine, its in pairs]


Monomials: TypeAlias = tuple[Monomial, ...]

Side: TypeAlias = int
"""0 of what is below, 1 of what is above."""


class Interval(NDArrayOperatorsMixin):
    """All numbers from ``low`` to ``high``, an entry each; a flag may be from false to true.

    They are not below the monomial ``under`` of the sizes of a ``box``, nor above ``over``. Ends
    are computed when they are asked for: of most numbers one is enough.
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
        self.box, self._made = box, None
        self._ends: list[Any] = [_column(low), _column(high)]
        self._sides: list[Monomials | None] = [(under,) if under else (), (over,) if over else ()]

    @classmethod
    def of(cls, function: Any, inputs: Sequence[Any], box: Box | None) -> Interval:
        """Return what a function makes of numbers."""
        found = cls.__new__(cls)
        found.box, found._made = box, (function, inputs)
        found._ends, found._sides = [None, None], [None, None]
        if box is None or function not in _MONOMIALS or any(map(_negative, inputs)):
            found._made_plain = True
        return found

    _made: tuple[Any, Sequence[Any]] | None
    _made_plain = False

    def end(self, side: Side) -> Any:
        """Return the least or the greatest number; ends may be infinite, or of nothing."""
        if self._ends[side] is None:
            assert self._made is not None
            function, inputs = self._made
            found = _RULES[function](side, *inputs)
            self._ends[side] = _column(self._told(side, found) if function in _CANCELS else found)
        return self._ends[side]

    def _told(self, side: Side, end: Any) -> Any:
        """Return an end, or what monomials tell if that is more."""
        if self.box is None:
            return end
        for monomial in (one for one in self.side(side) if one.cancels):
            own = monomial.coefficient * self.box.end(monomial.exponents, side)
            near = own * (1 + _ROUNDED if side else 1 - _ROUNDED)
            found = (np.fmin if side else np.fmax)(end, near)
            if np.any(seen(found) != seen(end)):
                end = found
        return end

    def side(self, side: Side) -> Monomials:
        """Return monomials below or above."""
        known = self._sides[side]
        if known is None:
            known = ()
            if self._made is not None and self.box is not None and not self._made_plain:
                function, inputs = self._made
                operands = [_Operand(self.box, x) for x in inputs]
                found, firsts = _MONOMIALS[function](side, *operands)
                known = _kept(side, self.box, found, firsts)
            self._sides[side] = known
        return known

    @property
    def low(self) -> Any:
        """The least number."""
        return self.end(0)

    @property
    def high(self) -> Any:
        """The greatest number."""
        return self.end(1)

    @cached_property
    def negative(self) -> bool:
        """Whether an entry may be below 0."""
        if self._made is not None and self._made[0] in _NEVER_NEGATIVE:
            return False
        if self._made is not None and self._made[0] in _KEEP_SIGN:
            either = all if self._made[0] is np.maximum else any
            return either(map(_negative, self._made[1]))
        return not never(self.low < 0)

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
        return _result(np.where, (self, there, elsewhere))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Return the interval of a function of NumPy."""
        if method != "__call__" or ufunc not in _RULES:
            return NotImplemented
        return _result(ufunc, inputs)

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:
        """Return what ``where`` and ``clip`` do."""
        if function is np.where:
            return _result(np.where, arguments)
        if function is np.clip:
            number, least, most = arguments
            return np.minimum(np.maximum(number, least), most)
        return NotImplemented


def at_least(number: Any, least: Any) -> Any:
    """Return a number that is known not to be below another, which its interval may not see."""
    raised: Any = np.maximum
    return raised(number, least) if isinstance(number, Interval) else number


def mixed(share: Any, there: Any, elsewhere: Any) -> Any:
    """Return a number of which a share, 0 to 1, is one and the rest another."""
    if any(isinstance(number, Interval) for number in (share, there, elsewhere)):
        return _result(mixed, (share, there, elsewhere))
    return elsewhere + (there - elsewhere) * share


def both(one: Any, other: Any) -> Any:
    """Return a number that is known to be two others: an interval in both of theirs."""
    if one is other or not isinstance(one, Interval):
        return one
    return _result(both, (one, other))


def within(number: Any, most: Any) -> Any:
    """Return the smaller of two numbers, which is the first in all of a box."""
    if not isinstance(number, Interval):
        return np.minimum(number, most)
    return _result(within, (number, most))


def named(name: str, number: Any) -> Any:
    """Return a number that keeps its name in the monomials of intervals."""
    if isinstance(number, Interval) and number.box is not None:
        return number.box.named(name, number)
    return number


def from_nothing(zero: Any, number: Any) -> Any:
    """Return a number that is at least 0, an entry each."""
    if isinstance(number, Interval) and not number.negative:
        return number
    raised: Any = np.maximum
    return raised(zero, number)


def beyond(number: Any, least: Any) -> Any:
    """Return how much a number is above another, 0 where it is not."""
    if isinstance(number, Interval) or isinstance(least, Interval):
        return _result(beyond, (number, least))
    return np.maximum(0.0, number - least)


def least_of(number: Any) -> Any:
    """Return what a number that is not negative is at least: of an interval its low end."""
    return np.maximum(0.0, number.low) if isinstance(number, Interval) else number


def most_of(number: Any) -> Any:
    """Return what a number is at most: of an interval its high end."""
    return number.high if isinstance(number, Interval) else number


def _result(function: Any, inputs: Sequence[Any]) -> Interval:
    box = next((x.box for x in inputs if isinstance(x, Interval) and x.box), None)
    if box is None:
        return Interval.of(function, inputs, None)
    # what is kept holds its inputs, so that no other has their place in memory
    key = function, *(x if isinstance(x, int | float) else id(x) for x in inputs)
    if key not in box.known:
        box.known[key] = Interval.of(function, inputs, box)
    return box.known[key]


def _negative(number: Any) -> bool:
    if isinstance(number, Interval):
        return number.negative
    return bool(number < 0) if isinstance(number, int | float) else not never(number < 0)


def _column(number: Any) -> Any:
    return number if isinstance(number, Column) else np.asarray(number)


def _end(number: Any, side: Side) -> Any:
    return number.end(side) if isinstance(number, Interval) else number


# -- ends -----------------------------------------------------------------------------------------

Rule: TypeAlias = Callable[..., Any]
"""Takes a side and numbers; returns an end of what the function makes of them."""


def _where(side: Side, flag: Any, there: Any, elsewhere: Any) -> Any:
    return _chosen(side, flag, _end(there, side), _end(elsewhere, side))


def _chosen(side: Side, flag: Any, one: Any, other: Any) -> Any:
    """Return one number where a flag holds, the other elsewhere, and what both allow between."""
    either = (np.maximum if side else np.minimum)(one, other)
    return np.where(_end(flag, 0), one, np.where(_end(flag, 1), either, other))


def _rising(function: Any) -> Rule:
    return lambda side, *numbers: function(*(_end(number, side) for number in numbers))


def _falling(function: Any) -> Rule:
    """Return the rule of a function that falls with its second number."""
    return lambda side, one, other: function(_end(one, side), _end(other, 1 - side))


def _product(side: Side, one: Any, other: Any) -> Any:
    if not (_negative(one) or _negative(other)):
        return np.fmax(_end(one, side) * _end(other, side), 0.0)  # 0 however large the other
    return _corner(side, np.multiply, one, other)


def _quotient(side: Side, one: Any, other: Any) -> Any:
    most = 1.0 * _end(other, 1 - side)
    if not (_negative(one) or _negative(other)):
        if side:
            return np.where(most > 0, _end(one, 1) / most, np.inf)
        return np.fmax(_end(one, 0) / most, 0.0)
    found = _corner(side, np.divide, one, other)
    zero = (_end(other, 0) <= 0) & (_end(other, 1) >= 0)
    if side:
        return np.where(zero, np.inf, found)
    least = np.where(_end(one, 0) >= 0, np.minimum(found, 0.0), -np.inf)
    return np.where(zero, least, found)


def _corner(side: Side, function: Any, one: Any, other: Any) -> Any:
    """Return the end of a product or a quotient, which is at ends of both numbers."""
    found = (function(_end(one, a), 1.0 * _end(other, b)) for a in (0, 1) for b in (0, 1))
    return reduce(np.maximum if side else np.minimum, (whole(_not_nothing, own) for own in found))


def _not_nothing(ends: Any) -> Any:
    return np.nan_to_num(ends, nan=0.0, posinf=np.inf)


def _known(function: Any, least: float) -> Rule:
    """Return the rule of a remainder or a divisor: a number only where both numbers are known."""

    def rule(side: Side, one: Any, other: Any) -> Any:
        ends = [(_end(number, 0), _end(number, 1)) for number in (one, other)]
        known = (ends[0][0] == ends[0][1]) & (ends[1][0] == ends[1][1])
        own = function(*(pair[0] for pair in ends))
        return np.where(known, own, np.minimum(ends[0][1], ends[1][1]) if side else least)

    return rule


def _whole_gcd(one: Any, other: Any) -> Any:
    return whole(_gcd, one, other)


def _gcd(one: Any, other: Any) -> Any:
    return np.gcd(*(np.asarray(number).astype(np.int64) for number in (one, other)))


def _equal(side: Side, one: Any, other: Any) -> Any:
    if side:
        return (_end(one, 0) <= _end(other, 1)) & (_end(other, 0) <= _end(one, 1))
    low, high = (np.equal(_end(one, 0), _end(other, end)) for end in (0, 1))
    return low & high & (_end(one, 0) == _end(one, 1))


def _not_equal(side: Side, one: Any, other: Any) -> Any:
    return np.logical_not(_equal(1 - side, one, other))


def _mixture(side: Side, share: Any, there: Any, elsewhere: Any) -> Any:
    one, other = _end(there, side), _end(elsewhere, side)
    found = [one * own + other * (1.0 - own) for own in (_end(share, 0), _end(share, 1))]
    return (np.maximum if side else np.minimum)(*found)


_RULES: Mapping[Any, Rule] = {
    **{
        one: _rising(one)
        for one in (np.add, np.minimum, np.maximum, np.ceil, np.floor, np.rint, np.log2)
    },
    **{one: _rising(one) for one in (np.bitwise_and, np.bitwise_or)},
    **{one: _falling(one) for one in (np.subtract, np.greater, np.greater_equal)},
    np.multiply: _product,
    np.divide: _quotient,
    np.floor_divide: lambda side, one, other: np.floor(_quotient(side, one, other)),
    np.less: lambda side, one, other: _falling(np.greater)(side, other, one),
    np.less_equal: lambda side, one, other: _falling(np.greater_equal)(side, other, one),
    np.remainder: _known(np.remainder, least=0.0),
    np.gcd: _known(_whole_gcd, least=1.0),
    np.equal: _equal,
    np.not_equal: _not_equal,
    np.invert: lambda side, one: np.logical_not(_end(one, 1 - side)),
    np.negative: lambda side, one: -_end(one, 1 - side),
    np.power: _rising(np.power),  # of numbers above 1, or to a power above 0
    np.where: _where,
    mixed: _mixture,
    within: lambda side, one, other: (
        np.minimum(_end(one, 1), _end(other, 1)) if side else _end(one, 0)
    ),
    beyond: lambda side, one, other: np.maximum(0.0, _falling(np.subtract)(side, one, other)),
    both: lambda side, one, other: (np.minimum if side else np.maximum)(
        _end(one, side), _end(other, side)
    ),
}
"""What becomes of intervals, by function of NumPy, or of this file."""

_KEEP_SIGN = frozenset(
    (np.add, np.minimum, np.maximum, np.ceil, np.floor, np.multiply, np.divide, np.floor_divide,
     np.remainder, np.rint, np.where, mixed, both, within)
)  # fmt: skip
"""Functions of numbers none of which is negative that give no negative one."""

_NEVER_NEGATIVE = frozenset(
    (beyond, np.gcd, np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal,
     np.invert, np.bitwise_and, np.bitwise_or)
)  # fmt: skip

_CANCELS = frozenset((np.multiply, np.divide))
"""Functions in whose monomials sizes cancel: those of others say no more than their ends."""


# -- monomials ------------------------------------------------------------------------------------

_SOME = 9
"""Entries by which monomials are compared."""


class _Operand:
    """A number that is not negative, with its monomials: else those of its ends."""

    def __init__(self, box: Box, number: Any) -> None:
        self.box, self.number = box, number

    def end(self, side: Side) -> Any:
        """Return the least or the greatest number."""
        return _end(self.number, side)

    def side(self, side: Side) -> Monomials:
        """Return monomials on one side."""
        known = self.number.side(side) if isinstance(self.number, Interval) else ()
        return known or (Monomial((), partial(self.end, side)),)

    def coefficient(self, side: Side, exponents: Exponents) -> Any:
        """Return a coefficient with which a monomial is on a side of the number."""
        found = self.end(side) / self.box.end(exponents, 1 - side)
        for own in self.side(side):
            if own.exponents == exponents:
                found = (np.fmin if side else np.fmax)(found, own.coefficient)
        return found


_Found: TypeAlias = tuple[Sequence[Monomial], int]

MonomialRule: TypeAlias = Callable[..., _Found]
"""Takes a side and numbers; returns monomials, and how many of them come first."""

_MOST = 2
"""Monomials that are kept on a side: entries differ in which says most."""


def _size(one: Monomial, box: Box) -> float:
    """Return how much a monomial says in the middle of boxes, as a logarithm."""
    said: list[float] = sorted(map(add, one.logarithms, box.middle(one.exponents)))
    return said[len(said) // 2]


def _some(column: Any) -> list[float]:
    """Return some entries of a column, as many of all."""
    if not np.ndim(column):
        return [float(column)] * _SOME
    found: list[float] = column[np.arange(_SOME) * (len(column) - 1) // (_SOME - 1)].tolist()
    return found


def _kept(side: Side, box: Box, found: Sequence[Monomial], firsts: int) -> Monomials:
    """Return of the first monomials the one that says most, and of the others."""
    if len(found) <= max(1, _MOST - (firsts - 1)):
        return tuple(found)
    ordered = sorted(found, key=lambda own: _size(own, box), reverse=not side)
    best = next(own for own in ordered if own in found[:firsts])
    return (best, *[own for own in ordered if own is not best][: _MOST - 1])


def _each(joined: Callable[[Side], Callable[[Any, Any], Any]]) -> MonomialRule:
    """Return the rule that joins coefficients, in the exponents of either number."""

    def rule(side: Side, one: _Operand, other: _Operand) -> _Found:
        join = joined(side)
        sides = one.side(side), other.side(side)
        firsts = dict.fromkeys(own[0].exponents for own in sides)
        kinds = firsts
        if len(firsts) < _MOST:
            kinds = firsts | dict.fromkeys(own.exponents for x in sides for own in x)

        def coefficient(own: Exponents) -> Any:
            return join(one.coefficient(side, own), other.coefficient(side, own))

        return [Monomial(own, partial(coefficient, own)) for own in kinds], len(firsts)

    return rule


@lru_cache(maxsize=1 << 16)
def _joined(one: Exponents, other: Exponents, sign: int) -> Exponents:
    powers = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0.0) + sign * power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _join(box: Box, one: Monomial, other: Monomial, sign: int, made: Callable[[], Any]) -> Monomial:
    found = _joined(one.exponents, other.exponents, sign)
    cancels = box.cancels(one.exponents, other.exponents, sign)
    return Monomial(found, made, cancels, (one, other, sign))


def _pairs(
    side: Side, one: _Operand, other: _Operand, sign: int, of: Callable[[Any, Any], Any]
) -> _Found:
    """Return products, or with -1 quotients, of each monomial and each of the other number."""

    def coefficient(a: Monomial, b: Monomial) -> Any:
        return of(a.coefficient, b.coefficient)

    return [
        _join(one.box, a, b, sign, partial(coefficient, a, b))
        for a in one.side(side)
        for b in other.side(side if sign > 0 else 1 - side)
    ], 1


def _of_quotient(side: Side, one: _Operand, other: _Operand) -> _Found:
    none = np.inf if side else 0.0
    return _pairs(side, one, other, -1, lambda a, b: np.where(b > 0, a / b, none))


def _scaled(factor: Callable[..., Any]) -> MonomialRule:
    """Return the rule that multiplies the first number's coefficients by a factor of them all."""

    def rule(side: Side, number: _Operand, *others: _Operand) -> _Found:
        def coefficient(own: Monomial) -> Any:
            return own.coefficient * factor(side, number, *others)

        return [Monomial(own.exponents, partial(coefficient, own)) for own in number.side(side)], 1

    return rule


def _left(side: Side, one: _Operand, other: _Operand) -> Any:
    end = one.end(side)
    left = np.maximum(0.0, 1.0 - other.end(1 - side) / end)
    return np.where(end > 0, left, float(side))


def _raised(side: Side, number: _Operand) -> Any:
    least = number.end(0)
    return np.where(least > 0, 1.0 + 1.0 / least, np.inf) if side else 1.0


def _lowered(side: Side, number: _Operand) -> Any:
    whole = np.floor(number.end(0))
    return 1.0 if side else whole / (whole + 1.0)


def _rounded(side: Side, number: _Operand) -> Any:
    most = np.where(number.end(0) > 0, 0.5 / number.end(0), np.inf)
    return 1.0 + most if side else np.maximum(0.0, 1.0 - most)


_of_surplus = _scaled(_left)


def _of_difference(side: Side, one: _Operand, other: _Operand) -> _Found:
    if not side and not never(one.end(0) < other.end(1)):  # it may be negative
        return [], 1
    return _of_surplus(side, one, other)


_EITHER = _each(lambda side: np.maximum if side else np.minimum)

_MONOMIALS: Mapping[Any, MonomialRule] = {
    np.add: _each(lambda _: np.add),
    np.minimum: _each(lambda _: np.minimum),
    np.maximum: _each(lambda _: np.maximum),
    np.multiply: lambda side, one, other: _pairs(side, one, other, 1, mul),
    np.divide: _of_quotient,
    np.subtract: _of_difference,
    beyond: _of_surplus,
    np.ceil: _scaled(_raised),
    np.floor: _scaled(_lowered),
    np.rint: _scaled(_rounded),
    np.where: lambda side, flag, there, elsewhere: _each(
        lambda _: lambda one, other: _chosen(side, flag.number, one, other)
    )(side, there, elsewhere),
    mixed: lambda side, _, there, elsewhere: _EITHER(side, there, elsewhere),
    within: lambda side, one, _: (one.side(side), 1),
    both: lambda side, one, _: (one.side(side), 1),
}
"""What becomes of monomials: of a side, and numbers none of which is negative."""
