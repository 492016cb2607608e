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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TypeAlias

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, NoSolutionError
from eatss.cards.document import finding
from eatss.tune.dimensions import (
    Block,
    Integers,
    Levels,
    Test,
    Weights,
    added,
    distinct,
    repeated,
    root,
    summed,
    total,
    tuples,
)
from eatss.tune.expressions import origin_of
from eatss.tune.points import FilterCount, Space, SpaceCount

_MOST_KNOWN = 1 << 18

Steps: TypeAlias = tuple[int, ...]


class _Known:
    """Numbers of points below prefixes; what was counted is kept, up to a size."""

    def __init__(self) -> None:
        self._of: dict[object, dict[tuple[int, ...], int]] = {}

    def of(self, key: object, block: Block, counted: Callable[[Block], Weights]) -> Weights:
        """Return the numbers of prefixes, of which those that are alike are counted once."""
        firsts, kinds = distinct(block.columns, block.rows)
        own = block.some(firsts)
        if own.rows > _MOST_KNOWN:
            return np.asarray(counted(own)[kinds])
        known = self._of.setdefault(key, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        names = tuples(own.columns, own.rows)
        missing = [at for at, name in enumerate(names) if name not in known]
        if missing:
            found = counted(own.some(np.array(missing, dtype=np.int64)))
            known.update(zip((names[at] for at in missing), found.tolist(), strict=True))
        counts = [known[name] for name in names]
        small = max(counts, default=0) < 1 << 62
        return np.array(counts, dtype=np.int64 if small else object)[kinds]


@dataclass(slots=True)
class Completions:
    """Counts what begins with prefixes; what was counted once is kept."""

    levels: Levels
    known: _Known = field(default_factory=_Known)
    parts: dict[Steps, list[Steps]] = field(default_factory=dict)

    def after(self, step: int, block: Block) -> Weights:
        """Return for each prefix how many ways there are to go on after a step."""
        return self._ways(tuple(range(step + 1, len(self.levels.dimensions))), block)

    def _ways(self, steps: Steps, block: Block) -> Weights:
        """Return for each row the number of values of some iterators together."""
        ways: Weights = np.ones(block.rows, dtype=np.int64)
        for first, *others in self._independent(steps):
            if not others:
                ways = repeated(ways, self.levels.below(first, block).sizes)
                continue
            part = (first, *others)
            own = {name for step in part for name in self.levels.dimensions[step].names}
            enumerated = partial(self._enumerated, first, tuple(others))
            ways = repeated(ways, self.known.of(part, block.only(sorted(own)), enumerated))
        return ways

    def _enumerated(self, step: int, others: Steps, block: Block) -> Weights:
        """Return the sum over the values of one iterator of the ways of others."""
        sums: Weights = np.zeros(block.rows, dtype=np.int64)
        for grown in self.levels.expanded(step, block.numbered()):
            sums = added(sums, summed(self._ways(others, grown), grown.weights, block.rows))
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
    raw = total(completions.after(-1, start))
    removed: Counter[str] = Counter()

    def note(test: Test, block: Block) -> None:
        ways = completions.after(test.step, block)
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
    found = finding("EATSS-S016", message, ("filters", last), origin_of(space), hint)
    return NoSolutionError(found)


def _without_values(space: Space, levels: Levels) -> Diagnostic:
    """Return which iterator has no values below any prefix of the ones before it."""
    names = [dimension.name for dimension in levels.dimensions]
    for step in range(len(names)):
        first = Levels(
            constants=levels.constants, dimensions=levels.dimensions[: step + 1], tests=()
        )
        if not total(Completions(first).after(-1, root())):
            break
    message = f"{names[step]} has no values"
    return finding("EATSS-S016", message, ("iterators", names[step]), origin_of(space))


@dataclass(slots=True)
class Remaining:
    """Counts the kept points below prefixes."""

    levels: Levels
    known: _Known = field(default_factory=_Known)

    def after(self, step: int, block: Block) -> Weights:
        """Return for each prefix, which has met all filters up to a step, the points below it."""
        if step + 1 == len(self.levels.dimensions):
            return np.ones(block.rows, dtype=np.int64)
        own = block.only(self.levels.live[step])
        return self.known.of(step, own, partial(self._enumerated, step + 1))

    def _enumerated(self, step: int, block: Block) -> Weights:
        """Return the points below prefixes by going through the values of one more iterator."""
        levels = self.levels
        if not levels.is_told_apart(step):
            return repeated(levels.below(step, block).sizes, self.after(step, block))
        sums: Weights = np.zeros(block.rows, dtype=np.int64)
        for grown in levels.expanded(step, block.numbered()):
            passed = levels.passed(step, grown)
            if passed.rows:
                ways = summed(self.after(step, passed), passed.weights, block.rows)
                sums = added(sums, ways)
        return sums


ENUMERATED = 1 << 20
"""So few points below prefixes are looked at one by one."""


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
    names = [dimension.name for dimension in levels.dimensions]
    block = levels.passed(-1, root())
    rows = [0] * len(left)
    for step, name in enumerate(names):
        grown = [levels.passed(step, one) for one in levels.expanded(step, block.numbered())]
        columns = {
            own: np.concatenate([one.columns[own] for one in grown])
            for own in (*block.columns, name)
        }
        parents = np.concatenate([one.weights for one in grown])
        children = Block(columns=columns, weights=parents)
        counts = remaining.after(step, children).astype(object)
        hits, left = _hits(parents, counts, rows, left)
        wanted, which = np.unique(np.array(hits, dtype=np.int64), return_inverse=True)
        block, rows = children.some(wanted), which.reshape(-1).tolist()
        if step + 1 < len(names) and total(counts[wanted]) <= ENUMERATED:
            found = _enumerated(levels, step, block, rows, left)
            break
    else:
        found = [tuple(int(block.columns[name][row]) for name in names) for row in rows]
    points = dict(zip(order, found, strict=True))
    return [points[at] for at in range(len(ranks))]


def every_block(levels: Levels, blocks: Iterator[Block], after: int) -> Iterator[Block]:
    """Yield all points below prefixes, in order, by blocks with all columns."""
    for step in range(after + 1, len(levels.dimensions)):
        blocks = levels.walked(blocks, step, group=False)
    return blocks


def _hits(
    parents: Integers, counts: npt.NDArray[np.object_], rows: list[int], left: list[int]
) -> tuple[list[int], list[int]]:
    """Return the prefixes that ranks fall on, and where in it each falls.

    ``rows`` and ``left`` say the same of the prefixes before: they are in order.
    """
    starts = np.searchsorted(parents, np.arange(max(rows) + 2))
    ends = np.concatenate([np.zeros(1, dtype=object), np.cumsum(counts)])
    targets = [ends[starts[row]] + rank for row, rank in zip(rows, left, strict=True)]
    hits = [int(np.searchsorted(ends, target, side="right")) - 1 for target in targets]
    return hits, [int(target - ends[at]) for target, at in zip(targets, hits, strict=True)]


def _enumerated(
    levels: Levels, step: int, block: Block, rows: list[int], left: list[int]
) -> list[tuple[int, ...]]:
    """Return the points of ranks below prefixes by looking at all of them."""
    wanted = list(zip(rows, left, strict=True))
    every = set(wanted)
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    seen: Counter[int] = Counter()
    for one in every_block(levels, iter([block.numbered()]), step):
        columns = [one.columns[dimension.name].tolist() for dimension in levels.dimensions]
        for row, *point in zip(one.weights.tolist(), *columns, strict=True):
            if (row, seen[row]) in every:
                found[row, seen[row]] = tuple(point)
            seen[row] += 1
    return [found[key] for key in wanted]
