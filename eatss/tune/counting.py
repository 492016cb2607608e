"""How many points a space has below prefixes, and which: exact, by enumeration in blocks.

Iterators that no expression ties together multiply. Of those that are tied, the values of the first
one are enumerated below all prefixes at once, and the others are counted below these; prefixes that
nothing later tells apart are counted once. Without filters that gives the raw points, with all of
them those that are kept, and with the first few what each of them removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from eatss.base.frozen import frozen
from eatss.tune.expressions import Column, Expression, evaluate, truth
from eatss.tune.iterators import Dimension, Integers
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
    position: dict[str, int] = field(init=False, repr=False)
    _parts: dict[object, list[tuple[Steps, Tests, list[str]]]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        position = {dimension.name: at for at, dimension in enumerate(self.dimensions)}
        object.__setattr__(self, "position", position)

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
                found[found] = truth(test.condition, evaluate(test.condition, columns, own.rows))
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
        key = (steps, tuple(map(id, tests)))
        if key not in self._parts:
            graph: nx.Graph = nx.Graph()
            graph.add_nodes_from(steps)
            ties = [(step, *self._used(self.dimensions[step].names)) for step in steps]
            ties += [self._used(test.condition.names) for test in tests]
            for tie in ties:
                nx.add_path(graph, [step for step in tie if step in steps])
            found = []
            for part in sorted(tuple(sorted(part)) for part in nx.connected_components(graph)):
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

    def at(self, ranks: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the points of ranks, a number for each iterator, in the order of the ranks.

        Step by step it is counted how many points are left below each value of one more iterator,
        and only those prefixes are followed that a rank falls on.
        """
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        left = [ranks[at] for at in order]
        block, rows = ROOT, [0] * len(left)
        for step in self.steps:
            name = self.dimensions[step].name
            grown = list(self.grown(step, self.of_step(step), block))
            parents = np.concatenate([own for own, _ in grown])
            children = Block(
                columns={
                    own: np.concatenate([one.columns[own] for _, one in grown])
                    for own in (*block.columns, name)
                },
                rows=len(parents),
            )
            later = tuple(test for test in self.tests if test.step > step)
            counts = self.below(self.steps[step + 1 :], later, children).astype(object)
            ends = np.concatenate([np.zeros(1, dtype=object), np.cumsum(counts)])
            starts = np.searchsorted(parents, np.arange(block.rows + 1))
            targets = [ends[starts[row]] + rank for row, rank in zip(rows, left, strict=True)]
            hits = [int(np.searchsorted(ends, target, side="right")) - 1 for target in targets]
            left = [int(target - ends[at]) for target, at in zip(targets, hits, strict=True)]
            wanted, which = np.unique(np.array(hits, dtype=np.int64), return_inverse=True)
            block, rows = children.some(wanted), which.reshape(-1).tolist()
        columns = [block.columns[one.name].tolist() for one in self.dimensions]
        found = {
            at: tuple(own[row] for own in columns) for at, row in zip(order, rows, strict=True)
        }
        return [found[at] for at in range(len(ranks))]


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
