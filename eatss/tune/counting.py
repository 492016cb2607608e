"""Values of iterators below prefixes of points, and how many points a space has, exactly.

Iterators that no expression ties together multiply. Of those that are tied, the values of the first
one are enumerated below all prefixes at once, in blocks, and the others are counted below these;
prefixes that nothing later tells apart are counted once. Without filters that gives the raw points,
with all of them those that are kept, and with the first few what each of them removes.

An iterator's column has whole numbers: the values themselves, or for listed values their positions
in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isqrt
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.classes import Classes
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.text import Texts
from eatss.tune.expressions import (
    Column,
    Expression,
    Named,
    at_first,
    column_of,
    evaluate,
    holds,
)
from eatss.tune.points import Value

CHUNK = 1 << 17
"""Rows that are looked at together: columns of them stay in the cache of a processor."""

Weights: TypeAlias = npt.NDArray[Any]
"""Numbers of points: ``int64``, or Python's integers where they are larger."""

_SAFE = float(1 << 62)


@frozen
class Block:
    """Prefixes, a row each: columns by the names of iterators."""

    columns: Mapping[str, Integers]
    rows: int

    def some(self, chosen: npt.NDArray[np.bool_] | Integers) -> Block:
        """Return some of the rows."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        rows = int(chosen.sum()) if chosen.dtype == np.bool_ else len(chosen)
        return Block(columns=columns, rows=rows)


ROOT = Block(columns={}, rows=1)
"""The prefix that has no values yet."""


@frozen
class Test:
    """A filter, and the step after which all that it names is known: -1 before the first."""

    name: str
    condition: Expression
    step: int


Steps: TypeAlias = tuple[int, ...]
Tests: TypeAlias = tuple[Test, ...]


@dataclass(frozen=True, kw_only=True)
class Walk:
    """Goes through the points of a space, and counts them.

    Attributes:
        constants: Values by name.
        dimensions: The iterators in order.
        tests: The filters in the order in which they are tried.
    """

    constants: Mapping[str, Value]
    dimensions: tuple[Dimension, ...]
    tests: Tests
    _parts: dict[object, list[tuple[Steps, Tests, list[str]]]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def position(self) -> dict[str, int]:
        """The step of each iterator."""
        return {dimension.name: at for at, dimension in enumerate(self.dimensions)}

    @property
    def steps(self) -> Steps:
        """All steps."""
        return tuple(range(len(self.dimensions)))

    # -- walking ------------------------------------------------------------------------------

    def seen(self, names: Iterable[str], block: Block) -> dict[str, Column | Value]:
        """Return what expressions see of some names."""
        return {
            name: self.constants[name]
            if (at := self.position.get(name)) is None
            else self.dimensions[at].decoded(block.columns[name])
            for name in names
        }

    def met(self, tests: Iterable[Test], block: Block) -> npt.NDArray[np.bool_]:
        """Return which rows meet filters; each is tried where those before it are met."""
        found = np.ones(block.rows, dtype=np.bool_)
        for test in tests:
            own = block if found.all() else block.some(found)
            if own.rows:
                columns = self.seen(test.condition.names, own)
                found[found] = holds(test.condition, columns, own.rows)
        return found

    def grown(
        self, step: int, tests: Sequence[Test], block: Block
    ) -> Iterator[tuple[Integers, Block]]:
        """Yield the prefixes with one more iterator that meet filters, about ``CHUNK`` at a time.

        They come in order, each block with the rows that its prefixes are below.
        """
        dimension = self.dimensions[step]
        below = dimension.below(self.seen(dimension.names, block), block.rows)
        for parents, offsets in pieces(below.sizes):
            longer = {**block.some(parents).columns, dimension.name: below.at(parents, offsets)}
            found = Block(columns=longer, rows=len(parents))
            met = self.met(tests, found)
            if met.any():
                yield parents[met], found.some(met)

    def points(self, step: int = 0, block: Block = ROOT) -> Iterator[Block]:
        """Yield all points, the last iterator changes fastest."""
        if step == 0 and not self.met(self.of_step(-1), block).all():
            return
        if step == len(self.dimensions):
            yield block
            return
        for _, grown in self.grown(step, self.of_step(step), block):
            yield from self.points(step + 1, grown)

    def of_step(self, step: int) -> Tests:
        """Return the filters that are tried after a step."""
        return tuple(test for test in self.tests if test.step == step)

    # -- counting -----------------------------------------------------------------------------

    def count(self, tests: Tests) -> int:
        """Return how many points meet filters."""
        first = tuple(test for test in tests if test.step < 0)
        if not self.met(first, ROOT).all():
            return 0
        return int(self.below(self.steps, tests[len(first) :], ROOT)[0])

    def below(self, steps: Steps, tests: Tests, block: Block) -> Weights:
        """Return how many values some iterators have together below each row."""
        counts: Weights = np.ones(block.rows, dtype=np.int64)
        for part, own, names in self._independent(steps, tests):
            counts = times(counts, self._of_part(part, own, names, block))
        return counts

    def _independent(self, steps: Steps, tests: Tests) -> list[tuple[Steps, Tests, list[str]]]:
        """Return iterators in parts that nothing ties together, with what each needs to know."""
        key = (steps, tuple(test.name for test in tests))
        if key not in self._parts:
            tied = Classes(steps)
            ties = [(step, *self._used(self.dimensions[step].names)) for step in steps]
            ties += [self._used(test.condition.names) for test in tests]
            for tie in ties:
                tied.join(*(step for step in tie if step in steps))
            found = []
            for part in sorted(tuple(sorted(part)) for part in tied.sets()):
                own = tuple(x for x in tests if {*self._used(x.condition.names)} & {*part})
                used = {*(n for x in own for n in x.condition.names)}
                used |= {name for step in part for name in self.dimensions[step].names}
                needed = sorted({*self._used(used)} - {*part})
                found.append((part, own, [self.dimensions[step].name for step in needed]))
            self._parts[key] = found
        return self._parts[key]

    def _used(self, names: Iterable[str]) -> Steps:
        return tuple(self.position[name] for name in names if name in self.position)

    def _of_part(self, part: Steps, tests: Tests, names: list[str], block: Block) -> Weights:
        """Return the numbers below prefixes, of which those that are alike are counted once."""
        first, *rest = part
        firsts, kinds = distinct([block.columns[name] for name in names], block.rows)
        own = Block(columns={name: block.columns[name][firsts] for name in names}, rows=len(firsts))
        if not rest and not tests:
            dimension = self.dimensions[first]
            sizes = dimension.below(self.seen(dimension.names, own), own.rows).sizes
            return np.asarray(sizes[kinds])
        return self._enumerated(part, tests, own)[kinds]

    def _enumerated(self, part: Steps, tests: Tests, block: Block) -> Weights:
        """Return the numbers by going through the values of the first iterator of a part."""
        first, rest = part[0], part[1:]
        now = tuple(x for x in tests if not {*self._used(x.condition.names)} & {*rest})
        later = tuple(test for test in tests if test not in now)
        sums = np.zeros(block.rows, dtype=object)
        for parents, grown in self.grown(first, now, block):
            low, high = int(parents[0]), int(parents[-1]) + 1
            ways = self.below(rest, later, grown)
            sums[low:high] += summed(ways, parents - low, high - low)
        return narrow(sums)

    # -- drawing ------------------------------------------------------------------------------

    def at(self, ranks: Sequence[int]) -> list[Numbers]:
        """Return the points of ranks, a number for each iterator, in the order of the ranks.

        Step by step it is counted how many points are left below each value of one more iterator,
        and only those prefixes are followed that a rank falls on.
        """
        block = ROOT
        rows, left = np.zeros(len(ranks), dtype=np.int64), np.array(ranks, dtype=object)
        for step in self.steps:
            grown = list(self.grown(step, self.of_step(step), block))
            parents = np.concatenate([own for own, _ in grown])
            names = (*block.columns, self.dimensions[step].name)
            every = {n: np.concatenate([one.columns[n] for _, one in grown]) for n in names}
            children = Block(columns=every, rows=len(parents))
            later = tuple(test for test in self.tests if test.step > step)
            counts = self.below(self.steps[step + 1 :], later, children)
            ends = np.concatenate([[0], np.cumsum(counts.astype(object))])
            left += ends[np.searchsorted(parents, rows)]
            hits = np.searchsorted(ends, left, side="right") - 1
            left -= ends[hits]
            wanted, rows = np.unique(hits, return_inverse=True)
            block = children.some(wanted)
        columns = [block.columns[one.name][rows].tolist() for one in self.dimensions]
        return list(zip(*columns, strict=True))


def drawn_ranks(kept: int, count: int, seed: int) -> list[int]:
    """Return distinct numbers below ``kept``, each set of them as likely as any other, drawn."""
    random = Random(seed)  # noqa: S311 - no secret
    if count * 2 > kept:
        return random.sample(range(kept), min(count, kept))
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.setdefault(random.randrange(kept))
    return list(drawn)


def pieces(sizes: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield rows, each as often as its size, and offsets, about ``CHUNK`` at a time."""
    first = 0
    while first < len(sizes):
        ends = np.cumsum(np.minimum(sizes[first : first + CHUNK], CHUNK))
        last = first + max(1, int(np.searchsorted(ends, CHUNK, side="right")))
        for start in range(0, int(sizes[first:last].max()), CHUNK):  # only one row may have more
            own = np.clip(sizes[first:last] - start, 0, CHUNK)
            parents = np.repeat(np.arange(first, last, dtype=np.int64), own)
            starts = np.cumsum(own) - own
            offsets = np.arange(len(parents), dtype=np.int64) - np.repeat(starts, own) + start
            if len(parents):
                yield parents, offsets
        first = last


def times(first: Weights, second: Weights) -> Weights:
    """Return the products, row by row."""
    if object not in (first.dtype, second.dtype) and (
        float(first.max(initial=0)) * float(second.max(initial=0)) < _SAFE
    ):
        return first * second
    return np.asarray(first.astype(object) * second.astype(object))


def summed(weights: Weights, group: Integers, groups: int) -> Weights:
    """Return the sum of the weights of each group; ``group`` says which each is in."""
    safe = weights.dtype != object and float(weights.sum(dtype=np.float64)) < _SAFE
    sums = np.zeros(groups, dtype=np.int64 if safe else object)
    np.add.at(sums, group, weights if safe else weights.astype(object))
    return sums


def narrow(weights: Weights) -> Weights:
    """Return Python's integers as 64-bit ones, where these hold them."""
    return weights.astype(np.int64) if max(weights, default=0) < _SAFE else weights


def distinct(columns: Sequence[Integers], rows: int) -> tuple[Integers, Integers]:
    """Return one row of each kind, and the kind of each row."""
    if not columns or not rows:
        return np.zeros(min(rows, 1), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    spans = [(int(own.min()), int(own.max()) - int(own.min()) + 1) for own in columns]
    key: Any = 0
    if np.prod([float(span) for _, span in spans]) < _SAFE:  # one number tells a row
        for own, (least, span) in zip(columns, spans, strict=True):
            key = key * span + (own - least)
        _, firsts, kinds = np.unique(key, return_index=True, return_inverse=True)
    else:
        table = np.stack(columns, axis=1)
        _, firsts, kinds = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), kinds.reshape(-1).astype(np.int64)


_LARGEST_DIVIDED = 1 << 40

Integers = npt.NDArray[np.int64]


@frozen
class Generator:
    """A generator: how its arguments are called, and the values that it yields, each once."""

    arguments: Texts
    values: Callable[..., Sequence[int]]


def _powers(base: int, first: int, last: int) -> Sequence[int]:
    if base < 2:
        raise ValueError(f"powers of {base}: a base is 2 or more")
    found, power = [], 1
    while power <= last:
        if power >= first:
            found.append(power)
        power *= base
    return found


def _divisors(number: int) -> Sequence[int]:
    if not 1 <= number <= _LARGEST_DIVIDED:
        raise ValueError(f"divisors of {number}: a number from 1 to 2^40 has some")
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


GENERATORS: dict[str, Generator] = {
    "powers": Generator(arguments=("base", "first", "last"), values=_powers),
    "divisors": Generator(arguments=("number",), values=_divisors),
}


@lru_cache(maxsize=4096)
def generated(name: str, arguments: Numbers) -> Numbers:
    """Return the values of a generator, in order; ``ValueError`` where the arguments give none."""
    return tuple(GENERATORS[name].values(*arguments))


@frozen
class Below:
    """The values of an iterator below prefixes, a row each.

    That at an offset is ``first + offset * step``, or stands there in the table.
    """

    first: Integers
    step: Integers
    sizes: Integers
    table: Integers | None = None

    def at(self, rows: Integers, offsets: Integers) -> Integers:
        """Return the value at an offset below a row, for each pair of them."""
        place = self.first[rows] + offsets * self.step[rows]
        return place if self.table is None else self.table[place]


Over: TypeAlias = str
"""``"range"``, or the name of a generator."""


@frozen
class Dimension:
    """An iterator: over listed values, or over numbers that a range or generator computes.

    Attributes:
        name: What it is called.
        listed: Its values, where they are listed.
        over: ``"range"`` or a generator.
        expressions: The arguments of that; start, stop and step of a range.
    """

    name: str
    listed: tuple[Value, ...] = ()
    over: Over = ""
    expressions: tuple[Expression, ...] = ()

    @property
    def names(self) -> Names:
        """The names that its values depend on."""
        return tuple(dict.fromkeys(name for one in self.expressions for name in one.names))

    def value(self, number: int) -> Value:
        """Return one value of a column."""
        return self.listed[number] if self.listed else number

    def decoded(self, column: Integers) -> Column:
        """Return the column as expressions see it."""
        return np.asarray(column_of(self.listed)[column]) if self.listed else column

    def values(self, known: Mapping[str, Value]) -> Sequence[Value]:
        """Return its values below one prefix."""
        if self.listed:
            return self.listed
        below = self.below(known, 1)
        if below.table is not None:
            return tuple(below.table.tolist())
        first, step, size = (int(one[0]) for one in (below.first, below.step, below.sizes))
        return range(first, first + size * step, step)

    def below(self, columns: Named, rows: int) -> Below:
        """Return its values below prefixes."""
        one = np.ones(rows, dtype=np.int64)
        own = {name: columns[name] for name in self.names}
        if self.listed:
            return Below(first=0 * one, step=one, sizes=len(self.listed) * one)
        given = np.stack(
            [_whole(each, evaluate(each, columns, rows)) for each in self.expressions], axis=1
        )
        if self.over == "range":
            start, stop, step = given.T
            if not step.all():
                message = f"a step of 0 goes nowhere{at_first(step == 0, own)}"
                raise self.expressions[2].error("EATSS-S011", message)
            return Below(first=start, step=step, sizes=np.maximum((stop - start) // step + 1, 0))
        different, which = np.unique(given, axis=0, return_inverse=True)
        which = which.reshape(-1)
        tables = [
            self._generated(tuple(arguments), at_first(which == at, own))
            for at, arguments in enumerate(different.tolist())
        ]
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        return Below(
            first=(np.cumsum(lengths) - lengths)[which],
            step=one,
            sizes=lengths[which],
            table=np.array([value for table in tables for value in table], dtype=np.int64),
        )

    def _generated(self, given: Numbers, at: str) -> Numbers:
        try:
            return generated(self.over, given)
        except ValueError as error:
            raise self.expressions[0].error("EATSS-S011", f"{error}{at}") from None


def _whole(expression: Expression, column: Column) -> Integers:
    """Return a column as whole numbers."""
    if column.dtype.kind not in "bi":
        raise expression.error(
            "EATSS-S011",
            "the values of an iterator are whole numbers",
            hint="write //, floor or ceil; other values are listed: [0.25, 0.5]",
        )
    return column.astype(np.int64)
