"""Values of iterators below prefixes of points, and how many points a space has, exactly.

Iterators that no expression ties together are parts of their own, whose numbers of points multiply.
The prefixes of a part are walked, in blocks, as far as filters are left; what comes after the last
filter is counted by the lengths of ranges and lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.classes import Classes
from eatss.base.frozen import Names, Numbers, frozen
from eatss.tune.expressions import Column, Expression, Named, column_of, evaluate, holds
from eatss.tune.points import Value

CHUNK = 1 << 17
"""Rows that are looked at together: columns of them stay in the cache of a processor."""

Integers = npt.NDArray[np.int64]

Weights: TypeAlias = npt.NDArray[Any]
"""Numbers of points: ``int64``, or Python's integers where they are larger."""


def _powers(base: int, first: int, last: int) -> Iterator[int]:
    if base < 2:
        raise ValueError(f"powers of {base}: a base is 2 or more")
    power = 1
    while power <= last:
        if power >= first:
            yield power
        power *= base


def _divisors(number: int) -> list[int]:
    if not 1 <= number <= 1 << 40:
        raise ValueError(f"divisors of {number}: a number from 1 to 2^40 has some")
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


GENERATORS: Mapping[str, Callable[..., Iterable[int]]] = {
    "powers": _powers,
    "divisors": _divisors,
}
"""What yields the values of an iterator, each once, in order."""

ARGUMENTS: Mapping[str, Names] = {
    "powers": ("base", "first", "last"),
    "divisors": ("number",),
}
"""What a generator takes; ``last`` is included."""


@lru_cache(maxsize=4096)
def _generated(name: str, *arguments: int) -> Numbers:
    """Return the values of a generator, in order; ``ValueError`` where the arguments give none."""
    return tuple(GENERATORS[name](*arguments))


@frozen
class Below:
    """The values of an iterator below prefixes, a row each.

    That at an offset is ``first + offset * step``, or stands there in the table.
    """

    first: Integers
    step: Integers
    sizes: Integers
    table: Column | None = None

    def at(self, rows: Integers, offsets: Integers) -> Column:
        """Return the value at an offset below a row, for each pair of them."""
        place = self.first[rows] + offsets * self.step[rows]
        return place if self.table is None else self.table[place]


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
    over: str = ""
    expressions: tuple[Expression, ...] = ()

    @property
    def names(self) -> Names:
        """The names that its values depend on."""
        return tuple(dict.fromkeys(name for one in self.expressions for name in one.names))

    def values(self, known: Mapping[str, Value]) -> Sequence[Value]:
        """Return its values below one prefix."""
        below = self.below(known, 1)
        if below.table is not None:
            return tuple(below.table.tolist())
        first, step, size = (int(one[0]) for one in (below.first, below.step, below.sizes))
        return range(first, first + size * step, step)

    def below(self, columns: Named, rows: int) -> Below:
        """Return its values below prefixes."""
        one = np.ones(rows, dtype=np.int64)
        if self.listed:
            table = column_of(self.listed)
            return Below(first=0 * one, step=one, sizes=len(table) * one, table=table)
        given = [_whole(each, evaluate(each, columns, rows)) for each in self.expressions]
        if self.over == "range":
            start, stop, step = given
            if not step.all():
                raise self.expressions[2].error("EATSS-S011", "a step of 0 goes nowhere")
            return Below(first=start, step=step, sizes=np.maximum((stop - start) // step + 1, 0))
        try:
            lists = [_generated(self.over, *own) for own in np.stack(given, axis=1).tolist()]
        except ValueError as error:
            raise self.expressions[0].error("EATSS-S011", str(error)) from None
        sizes = np.array([*map(len, lists)], dtype=np.int64)
        table = np.array([value for own in lists for value in own], dtype=np.int64)
        return Below(first=np.cumsum(sizes) - sizes, step=one, sizes=sizes, table=table)


def _whole(expression: Expression, column: Column) -> Integers:
    """Return a column as whole numbers."""
    if column.dtype.kind not in "bi":
        raise expression.error(
            "EATSS-S011",
            "the values of an iterator are whole numbers",
            hint="write //, floor or ceil; other values are listed: [0.25, 0.5]",
        )
    return column.astype(np.int64)


@frozen
class Block:
    """Prefixes, a row each: columns by the names of iterators."""

    columns: Mapping[str, Column]
    rows: int

    def some(self, chosen: Integers, names: Iterable[str] | None = None) -> Block:
        """Return some of the rows, of all columns or of those with some names."""
        wanted = self.columns.keys() if names is None else self.columns.keys() & {*names}
        return Block(columns={n: self.columns[n][chosen] for n in wanted}, rows=len(chosen))


ROOT = Block(columns={}, rows=1)
"""The prefix that has no values yet."""


@frozen
class Test:
    """A filter, and the step after which all that it names is known: -1 before the first."""

    name: str
    condition: Expression
    step: int


@frozen
class Part:
    """Iterators that are tied together, and the filters that name them."""

    steps: Numbers
    tests: tuple[Test, ...] = ()


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
    tests: tuple[Test, ...]

    @cached_property
    def position(self) -> dict[str, int]:
        """The step of each iterator."""
        return {dimension.name: at for at, dimension in enumerate(self.dimensions)}

    @cached_property
    def whole(self) -> Part:
        """All iterators and filters."""
        return Part(steps=tuple(range(len(self.dimensions))), tests=self.tests)

    def apart(self, part: Part) -> list[Part]:
        """Return the iterators of a part that nothing ties together, and their filters."""
        tied = Classes(part.steps)
        ties = [(step, *self._steps_of(self.dimensions[step].names)) for step in part.steps]
        ties += [self._steps_of(test.condition.names) for test in part.tests]
        for tie in ties:
            tied.join(*(step for step in tie if step in part.steps))
        return [
            Part(steps=own, tests=tuple(test for test in part.tests if test.step in own))
            for own in sorted(tuple(sorted(steps)) for steps in tied.sets())
        ]

    def _steps_of(self, names: Iterable[str]) -> Numbers:
        return tuple(self.position[name] for name in names if name in self.position)

    def _seen(self, names: Iterable[str], block: Block) -> dict[str, Column | Value]:
        """Return what expressions see of some names."""
        known = {**self.constants, **block.columns}
        return {name: known[name] for name in names}

    def _longer(self, step: int, block: Block) -> Iterator[tuple[Integers, Block]]:
        """Yield prefixes with one more iterator, and the rows that they are below, in order."""
        dimension = self.dimensions[step]
        below = dimension.below(self._seen(dimension.names, block), block.rows)
        for parents, offsets in pieces(below.sizes):
            columns = {**block.some(parents).columns, dimension.name: below.at(parents, offsets)}
            yield parents, Block(columns=columns, rows=len(parents))

    def _tried(
        self, part: Part, step: int, block: Block, removed: Counter[str] | None = None
    ) -> Block:
        """Return the rows that meet the filters of a step, each tried where those before are met.

        ``removed`` gains the raw points of the part that begin with a row that does not meet one.
        """
        left = np.arange(block.rows)
        for test in part.tests:
            if test.step == step and left.size:
                names = test.condition.names
                own = block.some(left, names)
                met = holds(test.condition, self._seen(names, own), own.rows)
                if removed is not None and not met.all():
                    rest = tuple(later for later in part.steps if later > step)
                    names = tuple(name for at in rest for name in self.dimensions[at].names)
                    failing = block.some(left[~met], names)
                    removed[test.name] += total(self._raw(Part(steps=rest), failing))
                left = left[met]
        return block.some(left)

    def _grown(
        self, part: Part, block: Block, removed: Counter[str] | None = None
    ) -> Iterator[tuple[Part, Block]]:
        """Yield the prefixes with one more iterator that meet filters, and what is left to do."""
        step, *later = part.steps
        rest = Part(steps=tuple(later), tests=tuple(x for x in part.tests if x.step > step))
        for _, longer in self._longer(step, block):
            if (found := self._tried(part, step, longer, removed)).rows:
                yield rest, found

    def points(self, part: Part | None = None, block: Block = ROOT) -> Iterator[Block]:
        """Yield the points of a part, by default of all: the last iterator changes fastest."""
        if part is None:
            part, block = self.whole, self._tried(self.whole, -1, ROOT)
        if not part.steps:
            yield block
        else:
            for rest, grown in self._grown(part, block):
                yield from self.points(rest, grown)

    def _count(self, part: Part, block: Block, removed: Counter[str]) -> int:
        """Return how many points of a part begin with prefixes."""
        if not part.tests:
            return total(self._raw(part, block))
        if not part.steps:
            return self._tried(part, -1, block, removed).rows
        every = self._grown(part, block, removed)
        return sum(self._count(rest, grown, removed) for rest, grown in every)

    def _raw(self, part: Part, block: Block) -> Weights:
        """Return how many points there are below each row without filters."""
        counts: Weights = np.ones(block.rows, dtype=np.int64)
        for own in self.apart(part):
            step, *later = own.steps
            dimension = self.dimensions[step]
            if later:
                found: Weights = np.zeros(block.rows, dtype=object)
                for parents, longer in self._longer(step, block):
                    ways = self._raw(Part(steps=tuple(later)), longer)
                    np.add.at(found, parents, ways.astype(object))
            else:
                seen = self._seen(dimension.names, block)
                found = dimension.below(seen, block.rows).sizes
            is_safe = float(counts.max(initial=0)) * float(found.max(initial=0)) < 1 << 62
            counts = counts * (found if is_safe else found.astype(object))
        return counts

    @cached_property
    def parts(self) -> list[Part]:
        """What nothing ties together; filters of constants are a part without iterators."""
        first = tuple(test for test in self.tests if test.step < 0)
        return [Part(steps=(), tests=first), *self.apart(self.whole)]

    @cached_property
    def counts(self) -> tuple[int, Counter[str], list[int]]:
        """The raw points, those that each filter removes, and those that are left of each part."""
        removed = Counter[str]()
        left = [self.raw(Part(steps=part.steps)) for part in self.parts]
        raw = prod(left)
        for part in self.parts:
            self._count(part, ROOT, removed)
        for test in self.tests:
            at = next(n for n, part in enumerate(self.parts) if test in part.tests)
            alone = removed[test.name]
            removed[test.name] = alone * prod(left[:at] + left[at + 1 :])
            left[at] -= alone
        return raw, removed, left

    def raw(self, part: Part) -> int:
        """Return how many points iterators have without filters."""
        return total(self._raw(part, ROOT))

    def at(self, ranks: Sequence[int]) -> Block:
        """Return points by numbers below the number of points that are left: each has its own."""
        columns: dict[str, Column] = {}
        left = np.array(ranks, dtype=object)
        for part, kept in reversed([*zip(self.parts, self.counts[2], strict=True)]):
            columns |= self._of_part(part, left % kept)
            left //= kept
        return Block(columns=columns, rows=len(ranks))

    def _of_part(self, part: Part, places: Weights) -> Mapping[str, Column]:
        """Return the points of a part at places in their order."""
        order = np.argsort(places)
        found, _ = self._at(part, ROOT, places[order])
        back, names = np.argsort(order), found[0].columns
        return {n: np.concatenate([own.columns[n] for own in found])[back] for n in names}

    def _at(self, part: Part, block: Block, places: Weights) -> tuple[list[Block], int]:
        """Return the points of a part at places, in order, below prefixes, and how many it has.

        What no filter names any more is not walked: places are found by counting.
        """
        if not part.steps:
            return [block.some(places[places < block.rows].astype(np.int64))], block.rows
        if len(part.steps) == 1 and not part.tests:
            dimension = self.dimensions[part.steps[0]]
            below = dimension.below(self._seen(dimension.names, block), block.rows)
            rows, offsets, count = _rows_of(places, below.sizes)
            columns = {
                **block.some(rows).columns,
                dimension.name: below.at(rows, offsets.astype(np.int64)),
            }
            return [Block(columns=columns, rows=len(rows))], count
        found, passed = list[Block](), 0
        for rest, grown in self._grown(part, block):
            left = places[places >= passed] - passed
            if rest.tests:
                own, count = self._at(rest, grown, left)
            else:
                counts = self._raw(rest, grown)
                rows, offsets, count = _rows_of(left, counts)
                wanted, again = np.unique(rows, return_inverse=True)
                kept = counts[wanted].astype(object)
                below_these = (np.cumsum(kept) - kept)[again] + offsets
                own = self._at(rest, grown.some(wanted), below_these)[0] if len(rows) else []
            found, passed = found + own, passed + count
        return found, passed


def _rows_of(places: Weights, counts: Weights) -> tuple[Integers, Weights, int]:
    """Return in which rows places are, their offsets there, and how many places there are."""
    ends = np.cumsum(counts.astype(object))
    inside = places[places < ends[-1]]
    rows = np.searchsorted(ends, inside, side="right")
    return rows, inside - (ends - counts)[rows], int(ends[-1])


def total(counts: Weights) -> int:
    """Return the sum of numbers of points."""
    is_safe = float(counts.max(initial=0)) * len(counts) < 1 << 62
    return int(counts.sum() if is_safe else counts.astype(object).sum())


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
    """Yield rows, each as often as its size, and offsets, ``CHUNK`` at a time at most."""
    ends, most = np.cumsum(sizes), int(sizes.sum())
    for start in range(0, most, CHUNK):
        places = np.arange(start, min(start + CHUNK, most))
        rows = np.searchsorted(ends, places, side="right")
        yield rows, places - (ends - sizes)[rows]
