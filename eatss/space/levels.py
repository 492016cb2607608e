"""The walk over a space: prefix by prefix, in blocks of columns.

A block has a row for each prefix of points: values of the first iterators. A step adds the values
of one more iterator and drops rows that a filter removes. Blocks have at most ``CHUNK`` rows or
little more, so that memory is bounded whatever the size of the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from eatss.frozen import frozen
from eatss.space.dimensions import Below, Dimension, Integers
from eatss.space.evaluation import Column, evaluate, truth
from eatss.space.expressions import Expression
from eatss.space.weights import Weights, grouped, repeated

CHUNK = 1 << 17
"""Rows that are looked at together: columns of them stay in the cache of a processor."""


@frozen
class Block:
    """Prefixes, a row each: columns by name, and how many points each row stands for."""

    rows: int
    columns: Mapping[str, Integers]
    weights: Weights

    def some(self, chosen: npt.NDArray[np.bool_] | Integers) -> Block:
        """Return some of the rows."""
        weights = self.weights[chosen]
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Block(rows=len(weights), columns=columns, weights=weights)

    def only(self, names: Iterable[str]) -> Block:
        """Return the block with some of its columns."""
        columns = {name: self.columns[name] for name in names if name in self.columns}
        return Block(rows=self.rows, columns=columns, weights=self.weights)


@frozen
class Test:
    """A filter, and the step after which all that it names is known: -1 before the first."""

    name: str
    condition: Expression
    step: int


Removed = Callable[[Test, Block], None]
"""Told of the rows that a filter removes."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The steps of the walk: constants, iterators in order, and filters."""

    constants: Mapping[str, Column]
    dimensions: tuple[Dimension, ...]
    tests: tuple[Test, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each iterator in the order."""
        return {dimension.name: at for at, dimension in enumerate(self.dimensions)}

    @cached_property
    def live(self) -> tuple[tuple[str, ...], ...]:
        """For each step the iterators up to it that later steps name."""
        found = []
        for step in range(len(self.dimensions)):
            used = {name for one in self.dimensions[step + 1 :] for name in one.names}
            used |= {n for test in self.tests if test.step > step for n in test.condition.names}
            earlier = self.dimensions[: step + 1]
            found.append(tuple(one.name for one in earlier if one.name in used))
        return tuple(found)

    def tests_after(self, step: int) -> tuple[Test, ...]:
        """Return the filters that are tried after a step, in their order."""
        return tuple(test for test in self.tests if test.step == step)

    def decoded(self, names: Iterable[str], columns: Mapping[str, Integers]) -> dict[str, Column]:
        """Return what expressions see of some names."""
        found: dict[str, Column] = {}
        for name in names:
            at = self.position.get(name)
            if at is None:
                found[name] = self.constants[name]
            else:
                found[name] = self.dimensions[at].decoded(columns[name])
        return found

    def below(self, step: int, columns: Mapping[str, Integers], rows: int) -> Below:
        """Return the values of the iterator of a step below each row."""
        dimension = self.dimensions[step]
        return dimension.below(self.decoded(dimension.names, columns), rows)

    def met(self, test: Test, block: Block) -> npt.NDArray[np.bool_]:
        """Return which rows meet a filter."""
        columns = self.decoded(test.condition.names, block.columns)
        found = truth(test.condition, evaluate(test.condition, columns, block.rows))
        return np.broadcast_to(found, (block.rows,))

    def passed(self, step: int, block: Block, removed: Removed | None = None) -> Block:
        """Return the rows that meet all filters of a step."""
        for test in self.tests_after(step):
            if not block.rows:
                break
            met = self.met(test, block)
            if met.all():
                continue
            if removed is not None:
                removed(test, block.some(~met))
            block = block.some(met)
        return block

    def expanded(self, step: int, block: Block) -> Iterator[Block]:
        """Yield the prefixes with one more iterator, in order, about ``CHUNK`` rows at a time."""
        name = self.dimensions[step].name
        below = self.below(step, block.columns, block.rows)
        for parents, offsets in pieces(below.sizes, CHUNK):
            columns = {own: column[parents] for own, column in block.columns.items()}
            columns[name] = below.at(parents, offsets)
            yield Block(rows=len(parents), columns=columns, weights=block.weights[parents])

    def walked(
        self,
        blocks: Iterable[Block],
        step: int,
        *,
        keep: Iterable[str] = (),
        group: bool = True,
        removed: Removed | None = None,
    ) -> Iterator[Block]:
        """Yield the prefixes of one more iterator that meet the filters of its step.

        Rows come in order. Where they are grouped, rows that later steps cannot tell apart become
        one row with the sum of their weights.

        Args:
            blocks: the prefixes.
            step: which iterator is added.
            keep: columns that are kept beside those that later steps name.
            group: whether rows are grouped and columns without use are dropped.
            removed: told of what filters remove.
        """
        kept = (*self.live[step], *keep) if group else None
        gathered: list[Block] = []
        for block in blocks:
            for grown in self._grown(block, step, kept):
                passed = self.passed(step, grown, removed)
                if not passed.rows:
                    continue
                gathered.append(passed if kept is None else _reduced(passed, kept))
                if sum(one.rows for one in gathered) >= CHUNK:
                    joined = _joined(gathered, kept)
                    gathered = [joined]
                    if joined.rows >= CHUNK // 2:
                        yield joined
                        gathered = []
        if gathered:
            yield _joined(gathered, kept)

    def _grown(self, block: Block, step: int, kept: tuple[str, ...] | None) -> Iterator[Block]:
        """Yield the prefixes with one more iterator; values that nothing names are only counted."""
        name = self.dimensions[step].name
        tested = any(name in test.condition.names for test in self.tests_after(step))
        if kept is None or tested or name in kept:
            yield from self.expanded(step, block)
            return
        sizes = self.below(step, block.columns, block.rows).sizes
        some = block.some(sizes > 0)
        if some.rows:
            weights = repeated(some.weights, sizes[sizes > 0])
            yield Block(rows=some.rows, columns=some.columns, weights=weights)


def root() -> Block:
    """Return the prefix that has no values yet."""
    return Block(rows=1, columns={}, weights=np.ones(1, dtype=np.int64))


def pieces(sizes: Integers, chunk: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield rows and offsets below them, ``chunk`` at a time: each row as often as its size."""
    first = 0
    while first < len(sizes):
        ends = np.cumsum(np.minimum(sizes[first : first + chunk], 4 * chunk))
        last = first + max(1, int(np.searchsorted(ends, chunk, side="right")))
        if last == first + 1 and sizes[first] > chunk:
            size = int(sizes[first])
            for start in range(0, size, chunk):
                offsets = np.arange(start, min(start + chunk, size), dtype=np.int64)
                yield np.full(len(offsets), first, dtype=np.int64), offsets
        else:
            own = sizes[first:last]
            starts = np.cumsum(own) - own
            parents = np.repeat(np.arange(first, last, dtype=np.int64), own)
            offsets = np.arange(len(parents), dtype=np.int64) - np.repeat(starts, own)
            if len(parents):
                yield parents, offsets
        first = last


def _reduced(block: Block, kept: tuple[str, ...]) -> Block:
    """Return the block with the columns that are kept, equal rows grouped if any was dropped."""
    own = block.only(kept)
    if len(own.columns) == len(block.columns):
        return own
    return _grouped(own)


def _grouped(block: Block) -> Block:
    columns, weights = grouped(block.columns, block.weights)
    return Block(rows=len(weights), columns=columns, weights=weights)


def _joined(blocks: list[Block], kept: tuple[str, ...] | None) -> Block:
    """Return blocks one after the other; grouped again where their rows are."""
    if len(blocks) == 1:
        return blocks[0]
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in blocks[0].columns
    }
    weights = np.concatenate([block.weights for block in blocks])
    joined = Block(rows=len(weights), columns=columns, weights=weights)
    return joined if kept is None else _grouped(joined)
