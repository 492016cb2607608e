"""How many points a space has, and what each filter removes: exact.

How many points of the iterators alone, whatever filters say, begin with a prefix.

Iterators that do not depend on each other multiply, and only the values of names that others depend
on are enumerated: the number of ``blk_m`` and ``blk_n`` below ``dim_m, dim_n`` is that of the one
times that of the other, and each is found once for each ``dim_m`` and once for each ``dim_n``.

How many points are kept below a prefix.

Prefixes that nothing later tells apart have the same points below them: those are counted once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from eatss.diagnostics import Diagnostic, NoSolutionError
from eatss.gpu.findings import finding
from eatss.space.dimensions import Integers
from eatss.space.expressions import origin_of
from eatss.space.levels import CHUNK, Block, Levels, Test, pieces, root
from eatss.space.nouns import FilterCount, Space, SpaceCount
from eatss.space.weights import Weights, added, distinct, repeated, summed, total, tuples

_MOST_KNOWN = 1 << 20

Steps = tuple[int, ...]


@dataclass(slots=True)
class Completions:
    """Counts what begins with prefixes; what was counted once is kept."""

    levels: Levels
    known: dict[Steps, dict[tuple[int, ...], int]] = field(default_factory=dict)
    parts: dict[Steps, list[Steps]] = field(default_factory=dict)

    def after(self, step: int, columns: Mapping[str, Integers], rows: int) -> Weights:
        """Return for each prefix how many ways there are to go on after a step."""
        return self._ways(tuple(range(step + 1, len(self.levels.dimensions))), columns, rows)

    def _ways(self, steps: Steps, columns: Mapping[str, Integers], rows: int) -> Weights:
        """Return for each row the number of values of some iterators together."""
        ways: Weights = np.ones(rows, dtype=np.int64)
        for part in self._independent(steps):
            ways = repeated(ways, self._of_part(part, columns, rows))
        return ways

    def _of_part(self, part: Steps, columns: Mapping[str, Integers], rows: int) -> Weights:
        first, *others = part
        if not others:
            return self.levels.below(first, columns, rows).sizes
        names = {name for step in part for name in self.levels.dimensions[step].names}
        own = {name: columns[name] for name in sorted(names & columns.keys())}
        firsts, kinds = distinct(own, rows)
        own = {name: column[firsts] for name, column in own.items()}
        known = self.known.setdefault(part, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        rows_of = tuples(own, len(firsts))
        missing = [at for at, row in enumerate(rows_of) if row not in known]
        if missing:
            asked = np.array(missing, dtype=np.int64)
            lacking = {name: column[asked] for name, column in own.items()}
            found = self._enumerated(first, tuple(others), lacking, len(missing))
            known.update(zip((rows_of[at] for at in missing), found.tolist(), strict=True))
        counts = [known[row] for row in rows_of]
        small = max(counts, default=0) < 1 << 62
        return np.array(counts, dtype=np.int64 if small else object)[kinds]

    def _enumerated(
        self, step: int, others: Steps, columns: Mapping[str, Integers], rows: int
    ) -> Weights:
        """Return the sum over the values of one iterator of the ways of others."""
        sums: Weights = np.zeros(rows, dtype=np.int64)
        below = self.levels.below(step, columns, rows)
        for parents, offsets in pieces(below.sizes, CHUNK):
            grown = {name: column[parents] for name, column in columns.items()}
            grown[self.levels.dimensions[step].name] = below.at(parents, offsets)
            ways = self._ways(others, grown, len(parents))
            sums = added(sums, summed(ways, parents, rows))
        return sums

    def _independent(self, steps: Steps) -> list[Steps]:
        """Return the iterators in parts of which none depends on another."""
        if steps not in self.parts:
            graph: nx.Graph = nx.Graph()
            graph.add_nodes_from(steps)
            position = self.levels.position
            for step in steps:
                used = (position.get(name) for name in self.levels.dimensions[step].names)
                graph.add_edges_from((step, other) for other in used if other in steps)
            parts = [tuple(sorted(part)) for part in nx.connected_components(graph)]
            self.parts[steps] = sorted(parts)
        return self.parts[steps]


Progress: TypeAlias = Callable[[int, int], None]
"""Told how many of the raw points are done, and of how many."""


def counted(space: Space, levels: Levels, progress: Progress | None = None) -> SpaceCount:
    """Count a space, prefix by prefix.

    A filter removes prefixes as soon as all that it names is known; prefixes that nothing later
    tells apart are counted together, and iterators that nothing names are not enumerated.
    """
    began = time.perf_counter()
    completions = Completions(levels)
    start = root()
    raw = total(completions.after(-1, start.columns, start.rows))
    removed: Counter[str] = Counter()

    def note(test: Test, block: Block) -> None:
        ways = completions.after(test.step, block.columns, block.rows)
        removed[test.name] += total(repeated(block.weights, ways))
        if progress is not None:
            progress(removed.total(), raw)

    first = levels.passed(-1, start, note)
    blocks = iter([first] if first.rows else [])
    for step in range(len(levels.dimensions)):
        blocks = levels.walked(blocks, step, removed=note)
    kept = 0
    for block in blocks:
        kept += total(block.weights)
        if progress is not None:
            progress(removed.total() + kept, raw)
    return SpaceCount(
        name=space.name,
        raw=raw,
        kept=kept,
        filters=tuple(
            FilterCount(name=one.name, condition=one.condition, removed=removed[one.name])
            for one in space.filters
        ),
        seconds=time.perf_counter() - began,
    )


def emptiness(space: Space, levels: Levels, count: SpaceCount) -> NoSolutionError | None:
    """Return why a space has no points, ``None`` if it has some."""
    if count.kept:
        return None
    if not count.raw:
        return NoSolutionError(_without_values(space, levels))
    removed = {one.name: one.removed for one in count.filters}
    tried = sorted(levels.tests, key=lambda test: test.step)
    last = [test.name for test in tried if removed[test.name]][-1]
    message = f'no point is left: "{last}" removes the last {removed[last]} of {count.raw}'
    hint = "eatss space counts what each filter removes"
    found = finding("EATSS-S017", message, ("filters", last), origin_of(space), hint)
    return NoSolutionError(found)


def _without_values(space: Space, levels: Levels) -> Diagnostic:
    """Return which iterator has no values below any prefix of the ones before it."""
    start = root()
    names = [dimension.name for dimension in levels.dimensions]
    for step in range(len(names)):
        first = Levels(
            constants=levels.constants, dimensions=levels.dimensions[: step + 1], tests=()
        )
        if not total(Completions(first).after(-1, start.columns, start.rows)):
            break
    message = f"{names[step]} has no values"
    return finding("EATSS-S016", message, ("iterators", names[step]), origin_of(space))


_MOST_REMAINING = 1 << 18


@dataclass(slots=True)
class Remaining:
    """Counts the kept points below prefixes; what was counted is kept, up to a size."""

    levels: Levels
    known: dict[int, dict[tuple[int, ...], int]] = field(default_factory=dict)

    def after(self, step: int, block: Block) -> Weights:
        """Return for each prefix, which has met all filters up to a step, the points below it."""
        if step + 1 == len(self.levels.dimensions):
            return np.ones(block.rows, dtype=np.int64)
        own = block.only(self.levels.live[step])
        firsts, kinds = distinct(own.columns, block.rows)
        own = own.some(firsts)
        if own.rows > _MOST_REMAINING:
            return np.asarray(self._enumerated(step + 1, own)[kinds])
        known = self.known.setdefault(step, {})
        if len(known) > _MOST_REMAINING:
            known.clear()
        names = tuples(own.columns, own.rows)
        missing = [at for at, name in enumerate(names) if name not in known]
        if missing:
            found = self._enumerated(step + 1, own.some(np.array(missing, dtype=np.int64)))
            known.update(zip((names[at] for at in missing), found.tolist(), strict=True))
        counts = [known[name] for name in names]
        small = max(counts, default=0) < 1 << 62
        return np.array(counts, dtype=np.int64 if small else object)[kinds]

    def _enumerated(self, step: int, block: Block) -> Weights:
        """Return the points below prefixes by going through the values of one more iterator."""
        levels = self.levels
        name = levels.dimensions[step].name
        below = levels.below(step, block.columns, block.rows)
        tested = any(name in test.condition.names for test in levels.tests_after(step))
        if not tested and name not in levels.live[step]:
            return repeated(below.sizes, self.after(step, block))
        sums: Weights = np.zeros(block.rows, dtype=np.int64)
        for parents, offsets in pieces(below.sizes, CHUNK):
            columns = {own: column[parents] for own, column in block.columns.items()}
            columns[name] = below.at(parents, offsets)
            grown = Block(rows=len(parents), columns=columns, weights=parents)
            passed = levels.passed(step, grown)  # its weights say which prefix a row is below
            if passed.rows:
                ways = summed(self.after(step, passed), passed.weights, block.rows)
                sums = added(sums, ways)
        return sums


ENUMERATED = 1 << 20
"""So few points below prefixes are looked at one by one."""

_ROW = "#row"


def drawn_ranks(kept: int, count: int, seed: int) -> list[int]:
    """Return distinct numbers below ``kept``, each set of them as likely as any other, drawn."""
    random = Random(seed)  # noqa: S311 - no secret
    if count * 2 > kept:
        return random.sample(range(kept), min(count, kept))
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.setdefault(random.randrange(kept))
    return list(drawn)


def points_at(levels: Levels, ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the points of ranks, numbers of their iterators each, in the order of the ranks.

    Step by step it is counted how many points are left below each value of one more iterator, and
    only those prefixes are followed that a rank falls on.
    """
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    left = [ranks[at] for at in order]
    remaining = Remaining(levels)
    block = levels.passed(-1, root())
    rows = [0] * len(left)
    for step in range(len(levels.dimensions)):
        children = _children(levels, step, block)
        counts = remaining.after(step, children).astype(object)
        block, rows, left = _followed(children, counts, rows, left)
        if step + 1 < len(levels.dimensions) and total(counts[np.unique(_chosen(block))]) <= (
            ENUMERATED
        ):
            found = _enumerated(levels, step, block, rows, left)
            break
    else:
        columns = [block.columns[dimension.name] for dimension in levels.dimensions]
        found = [tuple(int(column[row]) for column in columns) for row in rows]
    placed: list[tuple[int, ...]] = [()] * len(ranks)
    for at, point in zip(order, found, strict=True):
        placed[at] = point
    return placed


def every_block(levels: Levels, blocks: Iterator[Block], after: int) -> Iterator[Block]:
    """Yield all points below prefixes, in order, by blocks with all columns."""
    for step in range(after + 1, len(levels.dimensions)):
        blocks = levels.walked(blocks, step, group=False)
    return blocks


def _chosen(block: Block) -> Integers:
    return block.columns[_ROW]


def _children(levels: Levels, step: int, block: Block) -> Block:
    """Return the prefixes below those of a block, with the row that each is below."""
    numbered = dict(block.columns) | {_ROW: np.arange(block.rows, dtype=np.int64)}
    start = Block(rows=block.rows, columns=numbered, weights=np.ones(block.rows, dtype=np.int64))
    grown = [levels.passed(step, one) for one in levels.expanded(step, start)]
    columns = {
        name: np.concatenate([one.columns[name] for one in grown])
        for name in (*numbered, levels.dimensions[step].name)
    }
    rows = sum(one.rows for one in grown)
    return Block(rows=rows, columns=columns, weights=np.ones(rows, dtype=np.int64))


def _followed(
    children: Block, counts: npt.NDArray[np.object_], rows: list[int], left: list[int]
) -> tuple[Block, list[int], list[int]]:
    """Return the prefixes that ranks fall on, with which of them each falls on, and where in it.

    ``rows`` and ``left`` say the same of the prefixes before: they are in order.
    """
    parents = children.columns[_ROW]
    starts = np.searchsorted(parents, np.arange(max(rows) + 2))
    ends = np.concatenate([np.zeros(1, dtype=object), np.cumsum(counts)])
    hits: list[int] = []
    rest: list[int] = []
    for row, rank in zip(rows, left, strict=True):
        target = ends[starts[row]] + rank
        at = int(np.searchsorted(ends, target, side="right")) - 1
        hits.append(at)
        rest.append(int(target - ends[at]))
    wanted, which = np.unique(np.array(hits, dtype=np.int64), return_inverse=True)
    block = children.some(wanted)
    columns = dict(block.columns) | {_ROW: wanted}
    followed = Block(rows=block.rows, columns=columns, weights=block.weights)
    return followed, which.reshape(-1).tolist(), rest


def _enumerated(
    levels: Levels, step: int, block: Block, rows: list[int], left: list[int]
) -> list[tuple[int, ...]]:
    """Return the points of ranks below prefixes by looking at all of them."""
    wanted = set(zip(rows, left, strict=True))
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    numbered = dict(block.columns) | {_ROW: np.arange(block.rows, dtype=np.int64)}
    start = Block(rows=block.rows, columns=numbered, weights=block.weights)
    seen = 0
    last = -1
    for one in every_block(levels, iter([start]), step):
        own = one.columns[_ROW].tolist()
        columns = [one.columns[dimension.name].tolist() for dimension in levels.dimensions]
        for at, row in enumerate(own):
            seen = seen + 1 if row == last else 0
            last = row
            if (row, seen) in wanted:
                found[row, seen] = tuple(column[at] for column in columns)
    return [found[key] for key in zip(rows, left, strict=True)]
