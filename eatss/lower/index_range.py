"""How large the indices of printed code become, and the sizes for which 32 bits hold them.

Every expression that a kernel prints is remembered. Its operands and whatever is computed on the
way are bounded by intervals around 0: of sizes, of the loops of the schedule and the counters of
statements over these sizes, of constants. Sizes that nobody passes, because they are products of
others, are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from functools import reduce
from typing import Literal

from eatss.analysis.variant import MAX_STAGES
from eatss.base.frozen import Names, complete, fixed, frozen
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import Piece
from eatss.polyhedral.isl_names import extremes, parameter_extremes, parameters_set
from eatss.polyhedral.scop import SizeProduct
from eatss.program import (
    INTEGERS,
    Apply,
    Constant,
    Entry,
    IntExpr,
    Name,
    Operator,
    Work,
    at_least,
    multiplied,
    names_in,
    substitute,
)
from eatss.program.expression import Environment, OwnSizes
from eatss.program.tokens import converted


def product_values(products: Sequence[SizeProduct]) -> Environment:
    """Return what each product is, by its name.

    Loops of a negative length do not run, so two such factors make none that does.
    """
    return {one.name: reduce(multiplied, factors_of(one)) for one in products}


def factors_of(product: SizeProduct) -> list[IntExpr]:
    """Return the factors of a product, none of which is negative."""
    return [
        at_least(Name(one) if isinstance(one, str) else Constant(one), 0) for one in product.factors
    ]


def shared_tile(product: SizeProduct, tile: int) -> OwnSizes:
    """Return a tile along each size of a product, so that together they are a tile of its loop."""
    names = [one for one in product.factors if isinstance(one, str)]
    found = {}
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        part = max(k for k in range(1, tile + 1) if tile % k == 0 and k**left <= tile)
        found[name], tile = part, tile // part
    return found


def written_out(entry: Entry, products: Sequence[SizeProduct]) -> Entry:
    """Return an entry that names the factors of products alone."""
    if not products:
        return entry
    values = product_values(products)

    def out(expression: IntExpr) -> IntExpr:
        return substitute(expression, values)

    return replace(
        entry,
        assumptions=tuple(INTEGERS.rebuilt(one, out) for one in entry.assumptions),
        body=tuple(INTEGERS.rebuilt(one, out) for one in entry.body),
    )


def work_written_out(work: Work, products: Sequence[SizeProduct]) -> Work:
    """Return counts that name the factors of products alone."""
    values = product_values(products)
    return INTEGERS.rebuilt(work, lambda count: substitute(count, values))


def multiplies_sizes(expression: IntExpr) -> bool:
    """Tell whether an expression multiplies what are no constants."""
    if not isinstance(expression, Apply):
        return False
    variable = [one for one in expression.operands if not isinstance(one, Constant)]
    own = expression.operator is Operator.MUL and len(variable) > 1
    return own or any(map(multiplies_sizes, variable))


INT_MAX = 2**31 - 1

MOST_SIZE = 2**29
"""Sizes that 32-bit indices are made for, unless coefficients need room."""

LEAST_SIZE = 2**25
"""Where 32 bits do not even hold the indices of such sizes, indices have 64."""

_FITTING = tuple(MOST_SIZE >> n for n in range((MOST_SIZE // LEAST_SIZE).bit_length()))

_THREADS = 1024
"""Threads of a block at most."""

_CONDITIONS = frozenset(
    {Operator.EQ, Operator.LE, Operator.LT, Operator.GE, Operator.GT, Operator.AND, Operator.OR}
)


@fixed
class Range:
    """The integers from ``low`` to ``high``."""

    low: int
    high: int

    def joined(self, other: Range) -> Range:
        """Return the least range that has both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def wider(self, room: int) -> Range:
        """Return the range with room at both ends."""
        return Range(self.low - room, self.high + room)

    @property
    def fits(self) -> bool:
        """Whether 32 bits hold it."""
        return self.low >= -INT_MAX and self.high <= INT_MAX


@frozen
class Sizes:
    """Sizes for which 32 bits hold indices: up to ``largest``.

    Those that are ``bounded_below`` must be at least ``-largest``.
    """

    largest: int
    bounded_below: Names


class Indices:
    """Remembers the expressions of indices that a kernel has. ``bits`` are those of an index."""

    def __init__(self, bits: Literal[32, 64]) -> None:
        """Begin with none."""
        self.bits = bits
        self._printed: list[IntExpr] = []
        self._meaning: Environment = {}
        self._small: OwnSizes = {}
        self._room = _THREADS

    def __call__(self, expression: IntExpr) -> IntExpr:
        """Remember an expression and return it."""
        self.note(expression)
        return expression

    def note(self, *expressions: IntExpr) -> None:
        """Remember expressions that are computed as parts of others."""
        self._printed.extend(expressions)

    def define(self, name: str, value: IntExpr) -> None:
        """Remember a variable that is no loop: it is at most ``value`` and the room of a tile."""
        self.note(value)
        self._meaning[name] = value

    def note_mapping(self, mapping: Mapping) -> None:
        """Remember threads, points and tiles; points may stand a tile beyond a loop's values."""
        for loop in mapping.spread:
            self._count({loop.thread: loop.threads, loop.point: loop.points})
        self._room = max(self._room, *(tile for _, tile in mapping.tiles), 0)
        if mapping.shared is not None:  # copies ahead look so many iterations beyond the last tile
            shared = mapping.shared
            self._room = max(self._room, MAX_STAGES * shared.blocks * shared.tile)

    def _count(self, counts: Dictionary[str, int]) -> None:
        for name, count in counts.items():
            self._small[name] = max(self._small.get(name, 0), count)

    def joined(self, other: Indices) -> Indices:
        """Return what both remember; names of both mean the same."""
        both = Indices(self.bits)
        both._printed = [*self._printed, *other._printed]
        both._meaning = {**self._meaning, **other._meaning}
        both._count(self._small)
        both._count(other._small)
        both._room = max(self._room, other._room)
        return both

    def fits(self, sizes: Dictionary[str, Range], loops: Range) -> bool:
        """Tell whether 32 bits hold all that is printed.

        Args:
            sizes: the values of parameters.
            loops: those of all loops and counters.
        """
        usual = loops.wider(2 * self._room)
        if not usual.wider(usual.high - usual.low).fits:
            return False  # a block's stride leads beyond the last tile once
        ranges = {**sizes, **{name: Range(0, most) for name, most in self._small.items()}}
        for name, value in self._meaning.items():
            found = range_of(value, ranges, usual)
            if found is None:
                return False
            ranges[name] = found.wider(self._room)
        return all(range_of(one, ranges, usual) is not None for one in self._printed)


def common_sizes(
    texts: Iterable[tuple[Indices, Sequence[Piece]]], parameters: Sequence[str]
) -> Sizes | None:
    """Return the sizes for which 32 bits hold all indices, ``None`` for hardly any.

    Args:
        texts: what is printed, and what it is printed for.
        parameters: the sizes.
    """
    largest = MOST_SIZE
    below: dict[str, None] = {}
    for text, pieces in texts:
        found = _largest(text, pieces, parameters, largest)
        if found is None:
            return None
        largest = found.largest
        below.update(dict.fromkeys(found.bounded_below))
    return Sizes(largest=largest, bounded_below=tuple(below))


def _largest(
    text: Indices, pieces: Sequence[Piece], parameters: Sequence[str], most: int
) -> Sizes | None:
    for size in _FITTING:
        for least in (-INT_MAX - 1, -size) if size <= most else ():
            known = _values(pieces, parameters, Range(least, size))
            if known is None or not text.fits(*known):
                continue
            below = _running_below(pieces, parameters, -size) if least == -size else ()
            return Sizes(largest=size, bounded_below=below)
    return None


def _running_below(pieces: Sequence[Piece], parameters: Sequence[str], least: int) -> Names:
    """Return the parameters for which there are instances though they are below ``least``."""
    found = []
    for name in parameters:
        for piece in pieces:
            domains = [piece.instances(statement) for statement in piece.statements]
            low = parameters_set(domains[0].get_ctx(), (name,), f"{name} < {least}")
            if not all(domain.intersect_params(low).is_empty() for domain in domains):
                found.append(name)
                break
    return tuple(found)


def range_of(expression: IntExpr, ranges: Dictionary[str, Range], usual: Range) -> Range | None:
    """Return what values an expression has, ``None`` where it or a part of it may pass 32 bits.

    Args:
        expression: what is printed.
        ranges: the values of names.
        usual: those of any other name.
    """
    match expression:
        case Constant(value):
            return _checked(Range(value, value))
        case Name(name):
            return _checked(ranges.get(name, usual))
    known = complete(range_of(operand, ranges, usual) for operand in expression.operands)
    if known is None:
        return None
    operator = expression.operator
    if operator in _CONDITIONS:
        return Range(0, 1)
    first, *others = known[1:] if operator is Operator.SELECT else known
    if operator is Operator.SUB and not others:
        first, others = Range(0, 0), [first]
    found: Range | None = first
    for other in others:
        found = found and _checked(_OF_TWO[operator](found, other))
    return found


def _product(one: Range, other: Range) -> Range:
    ends = [x * y for x in (one.low, one.high) for y in (other.low, other.high)]
    return Range(min(ends), max(ends))


def _quotient(one: Range, divisor: Range) -> Range:
    by = (max(1, divisor.low), max(1, divisor.high))
    ends = [x // y for x in (one.low, one.high) for y in by]
    beyond = one.wider(divisor.high)  # rounding down adds or takes the divisor on the way
    return Range(min(ends), max(ends) + 1) if beyond.fits else beyond


def _remainder(_: Range, divisor: Range) -> Range:
    return Range(-divisor.high, divisor.high)


_OF_TWO: Dictionary[Operator, Callable[[Range, Range], Range]] = {
    Operator.ADD: lambda one, other: Range(one.low + other.low, one.high + other.high),
    Operator.SUB: lambda one, other: Range(one.low - other.high, one.high - other.low),
    Operator.MUL: _product,
    Operator.SELECT: Range.joined,
    Operator.MIN: lambda one, other: Range(min(one.low, other.low), min(one.high, other.high)),
    Operator.MAX: lambda one, other: Range(max(one.low, other.low), max(one.high, other.high)),
    Operator.FLOORDIV: _quotient,
    Operator.QUOTIENT: _quotient,
    Operator.MOD: _remainder,
    Operator.REMAINDER: _remainder,
}
"""What values an operation on two has, divisors positive; each on the way to more is held to 32
bits."""


def _checked(value: Range) -> Range | None:
    return value if value.fits else None


def widened(expression: IntExpr, sizes: Iterable[str]) -> IntExpr:
    """Return an expression of the host computed in 64 bits where 32 might not hold it.

    Args:
        expression: what is printed.
        sizes: names that may have any value of 32 bits; others are counters.
    """
    anything = Range(-INT_MAX - 1, INT_MAX)
    counters = Range(-2 * MOST_SIZE, 2 * MOST_SIZE)
    if _plain(expression) or range_of(expression, dict.fromkeys(sizes, anything), counters):
        return expression
    return substitute(expression, {name: converted("long", name) for name in names_in(expression)})


def _plain(expression: IntExpr) -> bool:
    """Tell whether an expression only compares names and constants."""
    if not isinstance(expression, Apply):
        return True
    return expression.operator in _CONDITIONS and all(_plain(o) for o in expression.operands)


def _values(
    pieces: Sequence[Piece], parameters: Sequence[str], allowed: Range
) -> tuple[dict[str, Range], Range] | None:
    """Return the values of parameters and of loops, for allowed sizes that run something.

    ``None`` where a loop has no bound.
    """
    within = " and ".join(f"{allowed.low} <= {name} <= {allowed.high}" for name in parameters)
    sizes: dict[str, Range] = {}
    loops = Range(0, 0)
    for piece in pieces:
        small = parameters_set(piece.placed[0].get_ctx(), parameters, within)
        functions = [loop.member.function for loop in (*piece.host, *piece.loops)]
        for statement in piece.statements:
            domain = piece.instances(statement).intersect_params(small)
            if domain.is_empty():
                continue
            found = extremes(domain, functions)
            if found is None:
                return None
            loops = loops.joined(Range(*found))
            for name in parameters:
                here = Range(*parameter_extremes(domain, name))
                sizes[name] = sizes[name].joined(here) if name in sizes else here
    return {name: sizes.get(name, allowed) for name in parameters}, loops
