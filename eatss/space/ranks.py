"""Points by their place in the order of a space, found without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from eatss.space.dimensions import Integers
from eatss.space.levels import Block, Levels, root
from eatss.space.remaining import Remaining
from eatss.space.weights import total

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
