"""Values of iterators below prefixes of points, and how many points a space has, exactly.

Iterators that no expression ties together are parts of their own, whose numbers of points multiply.
The prefixes of a part are walked, in blocks, as far as filters are left; what comes after the last
filter is counted by the lengths of ranges and lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from math import prod
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.classes import Classes
from eatss.base.frozen import Names, Numbers, frozen
from eatss.tune.expressions import Column, Expression, column_of, evaluate, which_hold
from eatss.tune.points import Configuration, Value

CHUNK = 1 << 17
"""Rows that are looked at together, about."""

Rows: TypeAlias = npt.NDArray[Any]
"""Which rows: their numbers, or a truth for each."""


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


def _range(start: int, stop: int, step: int) -> range:
    if step == 0:
        raise ValueError("a step of 0 goes nowhere")
    return range(start, stop + (1 if step > 0 else -1), step)


GENERATORS: Mapping[str, Callable[..., Iterable[int]]] = {
    "range": _range,
    "powers": _powers,
    "divisors": _divisors,
}
"""What yields the values of an iterator, each once, in order."""

ARGUMENTS: Mapping[str, Names] = {
    "powers": ("base", "first", "last"),
    "divisors": ("number",),
}
"""What a generator takes besides a range; ``last`` is included."""


@lru_cache(maxsize=4096)
def _generated(name: str, *arguments: int) -> Sequence[int]:
    """Return the values of a generator, in order; ``ValueError`` where the arguments give none."""
    found = GENERATORS[name](*arguments)
    return found if isinstance(found, range) else tuple(found)


@frozen
class Dimension:
    """An iterator: over listed values, or over numbers that a generator computes.

    Attributes:
        name: What it is called.
        listed: Its values, where they are listed.
        over: A generator.
        expressions: The arguments of that.
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
        if self.listed:
            return self.listed
        arguments = [_whole(each, evaluate(each, known)) for each in self.expressions]
        try:
            return _generated(self.over, *arguments)
        except ValueError as error:
            at = 2 if self.over == "range" else 0
            raise self.expressions[at].error("EATSS-S011", str(error)) from None


def _whole(expression: Expression, value: Value) -> int:
    if not isinstance(value, int):
        raise expression.error(
            "EATSS-S011",
            "the values of an iterator are whole numbers",
            hint="write //, floor or ceil; other values are listed: [0.25, 0.5]",
        )
    return int(value)


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

    def after(self, step: int) -> Part:
        """Return what is left to do once an iterator has a value."""
        steps = tuple(later for later in self.steps if later > step)
        return Part(steps=steps, tests=tuple(test for test in self.tests if test.step > step))


@frozen
class Block:
    """Prefixes, a row each: columns by the names of iterators."""

    columns: Mapping[str, Column]
    rows: int

    def some(self, chosen: Rows) -> Block:
        """Return some of the rows."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        rows = int(chosen.sum()) if chosen.dtype == bool else len(chosen)
        return Block(columns=columns, rows=rows)

    def named(self, names: Iterable[str]) -> list[str]:
        """Return those of some names that are iterators which have values."""
        return [name for name in names if name in self.columns]

    def each(self, names: Iterable[str]) -> Iterable[tuple[Value, ...]]:
        """Return the values of those in each row."""
        own = [self.columns[name] for name in self.named(names)]
        return zip(*own, strict=True) if own else [()] * self.rows


ROOT = Block(columns={}, rows=1)
"""The prefix that has no values yet."""


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
    _apart: dict[Part, list[Part]] = field(default_factory=dict)
    _raw: dict[Part, dict[tuple[Value, ...], int]] = field(default_factory=dict)

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
        if part not in self._apart:
            tied = Classes(part.steps)
            ties = [(step, *self._steps_of(self.dimensions[step].names)) for step in part.steps]
            ties += [self._steps_of(test.condition.names) for test in part.tests]
            for tie in ties:
                tied.join(*(step for step in tie if step in part.steps))
            self._apart[part] = [
                Part(steps=own, tests=tuple(test for test in part.tests if test.step in own))
                for own in sorted(tuple(sorted(steps)) for steps in tied.sets())
            ]
        return self._apart[part]

    def _steps_of(self, names: Iterable[str]) -> Numbers:
        return tuple(self.position[name] for name in names if name in self.position)

    def _longer(self, step: int, block: Block) -> Iterator[Block]:
        """Yield prefixes with one more iterator, in order."""
        dimension, lists = self.dimensions[step], list[Column]()
        known: dict[tuple[Value, ...], Column] = {}
        for row in block.each(dimension.names):
            if row not in known:
                named = dict(zip(block.named(dimension.names), row, strict=True))
                known[row] = column_of(dimension.values({**self.constants, **named}))
            lists.append(known[row])
        sizes = np.array([*map(len, lists)])
        ends = np.flatnonzero(np.diff(np.cumsum(sizes) // CHUNK)) + 1
        for rows in np.split(np.arange(block.rows), ends):
            parents = np.repeat(rows, sizes[rows])
            column = np.concatenate([lists[row] for row in rows])
            columns = {**block.some(parents).columns, dimension.name: column}
            yield Block(columns=columns, rows=len(parents))

    def _tried(
        self, part: Part, step: int, block: Block, removed: Counter[str] | None = None
    ) -> Block:
        """Return the rows that meet the filters of a step, each tried where those before are met.

        ``removed`` gains the raw points of the part that begin with a row that does not meet one.
        """
        for test in part.tests:
            if test.step == step and block.rows:
                met = which_hold(test.condition, {**self.constants, **block.columns}, block.rows)
                if removed is not None and not met.all():
                    removed[test.name] += self.raw(part.after(step), block.some(~met))
                block = block.some(met)
        return block

    def _grown(
        self, part: Part, block: Block, removed: Counter[str] | None = None
    ) -> Iterator[tuple[Part, Block]]:
        """Yield the prefixes with one more iterator that meet filters, and what is left to do."""
        step = part.steps[0]
        for longer in self._longer(step, block):
            if (found := self._tried(part, step, longer, removed)).rows:
                yield part.after(step), found

    def points(self, part: Part | None = None) -> Iterator[Configuration]:
        """Yield the points of a part, by default of all: the last iterator changes fastest."""
        own = part or self.whole
        start = self._tried(own, -1, ROOT)
        for block in self._points(own, start) if start.rows else ():
            for values in block.each(block.columns):
                yield dict(zip(block.columns, values, strict=True))

    def _points(self, part: Part, block: Block) -> Iterator[Block]:
        if not part.steps:
            yield block
        else:
            for rest, grown in self._grown(part, block):
                yield from self._points(rest, grown)

    def _count(self, part: Part, block: Block, removed: Counter[str]) -> int:
        """Return how many points of a part begin with prefixes."""
        if not part.tests:
            return self.raw(part, block)
        if not part.steps:
            return self._tried(part, -1, block, removed).rows
        every = self._grown(part, block, removed)
        return sum(self._count(rest, grown, removed) for rest, grown in every)

    def raw(self, part: Part, block: Block) -> int:
        """Return how many points of a part begin with prefixes, whatever filters say."""
        outer = block.named(sorted(self._named(part)))
        counts = [self._raw_below(one, outer) for one in self.apart(Part(steps=part.steps))]
        rows = Counter(block.each(outer)).items()
        return sum(times * prod([count(row) for count in counts]) for row, times in rows)

    def _named(self, part: Part) -> set[str]:
        """Return what the values of iterators of a part depend on."""
        return {name for step in part.steps for name in self.dimensions[step].names}

    def _raw_below(self, part: Part, outer: list[str]) -> Callable[[tuple[Value, ...]], int]:
        """Return what counts the points that iterators tied together have below a prefix."""
        named, known = self._named(part), self._raw.setdefault(part, {})
        own = {name: place for place, name in enumerate(outer) if name in named}
        places = [*own.values()]

        def count(row: tuple[Value, ...]) -> int:
            values = tuple([row[place] for place in places])
            if values not in known:
                known[values] = self._raw_of(part, dict(zip(own, values, strict=True)))
            return known[values]

        return count

    def _raw_of(self, part: Part, outer: Configuration) -> int:
        """Return how many points iterators that are tied together have below one prefix."""
        step, *later = part.steps
        dimension = self.dimensions[step]
        values = dimension.values({**self.constants, **outer})
        if not later:
            return len(values)
        columns = {name: column_of([value] * len(values)) for name, value in outer.items()}
        columns[dimension.name] = column_of(values)
        return self.raw(Part(steps=tuple(later)), Block(columns=columns, rows=len(values)))

    @cached_property
    def parts(self) -> list[Part]:
        """What nothing ties together; filters of constants are a part without iterators."""
        first = tuple(test for test in self.tests if test.step < 0)
        return [Part(steps=(), tests=first), *self.apart(self.whole)]

    @cached_property
    def counts(self) -> tuple[int, Counter[str], list[int]]:
        """The raw points, those that each filter removes, and those that are left of each part."""
        removed = Counter[str]()
        left = [self.raw(part, ROOT) for part in self.parts]
        raw = prod(left)
        for part in self.parts:
            self._count(part, ROOT, removed)
        for test in self.tests:
            at = next(n for n, part in enumerate(self.parts) if test in part.tests)
            alone = removed[test.name]
            removed[test.name] = alone * prod(left[:at] + left[at + 1 :])
            left[at] -= alone
        return raw, removed, left

    def at(self, ranks: Sequence[int]) -> list[Configuration]:
        """Return points by numbers below the number of points that are left: each has its own."""
        found: list[Configuration] = [{} for _ in ranks]
        left = [*ranks]
        for part, kept in reversed([*zip(self.parts, self.counts[2], strict=True)]):
            places = [rank % kept for rank in left]
            left = [rank // kept for rank in left]
            wanted, every = {*places}, islice(self.points(part), max(places) + 1)
            own = {at: point for at, point in enumerate(every) if at in wanted}
            found = [{**own[place], **one} for place, one in zip(places, found, strict=True)]
        return found


def drawn_ranks(kept: int, count: int, seed: int) -> list[int]:
    """Return distinct numbers below ``kept``, each set of them as likely as any other, drawn."""
    random = Random(seed)  # noqa: S311 - no secret
    if count * 2 > kept:
        return random.sample(range(kept), min(count, kept))
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.setdefault(random.randrange(kept))
    return list(drawn)
