"""Sums that threads and blocks share: lanes and chunks (split-K), equal shares of steps (stream-K).

Lanes of a warp add up a sum together, and blocks of which each has a chunk of its steps. Or blocks
take whole tiles, one each, in waves, as long as there are twice as many left as blocks; of the
steps of all tiles that are left then each takes as many. Those rules are over numbers, columns of
them, and integer expressions of the code that computes them.

Uniformly generated references: those that differ by constants only, ``A[i-1]`` and ``A[i]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from eatss.analysis.facts import AccessFacts, StatementFacts, TouchedBox
from eatss.analysis.variant import LaunchFacts
from eatss.base.frozen import frozen
from eatss.base.targets import AXES, CUDA
from eatss.plan import intervals
from eatss.plan.numbers import Number, chosen, least, most
from eatss.program import Apply, Constant, Name, at_least

_AXES_BEFORE_Z = 2


def threads_beside_lanes(
    threads: Sequence[Number], lanes: Number, most_threads: int, most_along_z: int
) -> list[Number]:
    """Return the threads along loops beside the lanes that share a sum: as many as there is room.

    Args:
        threads: wanted along each loop, the one along x first. Lanes go before them, if there are
            several; from the third axis on loops share z.
        lanes: threads that share a sum.
        most_threads: of a block.
        most_along_z: of a block along z.
    """
    left, along_z = most(1, most_threads // lanes), 1
    found = []
    for position, wanted in enumerate(threads):
        is_z = position + (lanes > 1) >= _AXES_BEFORE_Z
        here = least(wanted, left)
        here = chosen(is_z, least(here, most_along_z // along_z), here)
        along_z = chosen(is_z, along_z * here, along_z)
        left = left // here
        found.append(here)
    return found


def block_along(threads: Number, tile: Number, loops: int, *, spread: bool) -> Number:
    """Return the threads of a block along a mapped loop: no more than its tile has points.

    Along the only loop there may be more where no sum is spread: those copy tiles, and do no more.
    """
    return threads if loops == 1 and not spread else least(threads, tile)


def lanes_of_warp(lanes: Number, beside: Number) -> Number:
    """Return how many lanes of a sum are in a warp in which so many sums lie side by side."""
    return least(lanes, most(1, CUDA.lanes // beside))


def rounds_across(before: Number, threads: Number) -> Number:
    """Return in how many rounds of shuffles the lanes of a warp along an axis make parts one.

    In each round half as many lanes are left. Others have no whole number of them in a warp.

    Args:
        before: threads of a block along the faster axes.
        threads: along this one.
    """
    sizes = (2**step for step in range(1, CUDA.lanes.bit_length()))
    fits = ((np.mod(threads, n) == 0) & (np.mod(CUDA.lanes, before * n) == 0) for n in sizes)
    return sum((1.0 * one for one in fits), start=0.0)


def takers_of_parts(warps: Number, lanes: Number) -> Number:
    """Return how many lanes of each sum add up what warps have of sums that lie side by side.

    So many ``lanes`` of each are in a warp, of which either all do or one.
    """
    return 1 + (lanes - 1) * (warps >= lanes)


def chunks_of(wanted: Number, trips: Number, tile: Number) -> Number:
    """Return how many blocks share a sum: as many as wanted, if each has a tile."""
    return most(1, least(wanted, -(-trips // tile)))


def free_axes(mapped: int) -> int:
    """Return how many axes of the grid so many mapped loops leave: of many the last two share."""
    return len(AXES) - mapped if mapped <= len(AXES) else 1


def blocks_of_sum(
    axes: int, tiles: Number, chunks: Number, outer_tiles: Number, outer: Number
) -> tuple[Number, Number]:
    """Return how many blocks share a sum's loop of lanes, and how many its outer loop.

    Each of both takes an axis of the grid; the outer loop comes first.

    Args:
        axes: those of the grid that no other loop has.
        tiles: along the loop of lanes.
        chunks: blocks wanted there.
        outer_tiles: along the outer loop, 1 where there is none.
        outer: blocks wanted there.
    """
    chunks, outer = (
        chunks_of(wanted, own, 1) if axes else 1
        for wanted, own in ((chunks, tiles), (outer, outer_tiles))
    )
    return (chunks if axes > 1 else chosen(outer > 1, 1, chunks)), outer


MOST_OUTER_STEPS = 4
"""Steps of an outer loop of a sum that a block takes at a time, unrolled."""


def outer_tile(trips: Number, blocks: Number) -> Number:
    """Return the steps of an outer loop of a sum at a time, where so many blocks share it."""
    return most(1, least(MOST_OUTER_STEPS, trips // blocks))


def widening(threads: Number, lanes: Number, most_threads: int) -> Number:
    """Return how many times the threads along x launches have beside one whose sums lanes share.

    Their blocks are as large, where a sum has lanes of one warp.
    """
    return most(1, least(least(lanes, CUDA.lanes), most_threads // threads))


_LEAST_CHUNK, _MOST_ENDS = 16, 256
"""Steps of a chunk at least, and chunks whose ends a thread goes through one by one."""


def scan_chunks(steps: int, threads: int, most_threads: int, order: int = 1) -> tuple[int, ...]:
    """Return the steps of a chunk of a recurrence, and of a chunk of the one over their ends.

    Products of powers of two and of the order; none where chunks have no use. As many chunks as
    keep a card busy, but what threads do one after the other, steps of a chunk and chunks, is to be
    short.

    Args:
        steps: of a row.
        threads: that all rows have at once.
        most_threads: that a card keeps.
        order: how many elements before it a step needs.
    """
    least = max(_LEAST_CHUNK, round(steps ** (1 / 3)), steps * threads // most_threads)
    length = order * _power(-(-least // order))
    if 2 * threads > most_threads or 4 * length > steps:
        return ()
    ends = steps // length
    return (length,) if ends <= _MOST_ENDS else (length, _power(isqrt(ends)))


_MOST_PART, _PART_UNIT = 4096, 128
"""Elements of a part of a row, which threads of a block keep in registers, and steps of them."""


def pair_part(elements: int, rows: int) -> int | None:
    """Return the elements of parts by which sums of one pass are added up.

    Parts of a row are about as long as each other; 0 for rows as they are, ``None`` where a part
    would be all that is added up.

    Args:
        elements: of a row, neighbours of each other.
        rows: that are added up together.
    """
    if elements <= _MOST_PART:
        return 0 if rows > 1 < elements else None
    parts = -(-elements // _MOST_PART)
    return -(-elements // (parts * _PART_UNIT)) * _PART_UNIT


def _power(least: int) -> int:
    """Return a power of two that is no less."""
    return 1 << (least - 1).bit_length()


MOST_WAVES = 2
"""Times as many tiles as blocks of which blocks share the steps: less than that."""


def whole_waves(tiles: Number, blocks: Number) -> Number:
    """Return how many whole tiles each of so many blocks takes."""
    waves = tiles // blocks + -1
    return at_least(waves, 0) if isinstance(waves, Apply | Constant | Name) else most(waves, 0)


def shared_steps(tiles: Number, waves: Number, blocks: Number, steps: Number) -> Number:
    """Return the steps that blocks share: those of tiles that are left behind waves."""
    return (tiles - waves * blocks) * steps


def rounded_up(value: Number, divisor: Number) -> Number:
    """Return a quotient rounded up: the share of a block, or tiles that steps are of."""
    return (value + (divisor - 1)) // divisor


@frozen
class Stream:
    """What blocks of a launch have that take shares of steps; 0 where they do not.

    ``blocks`` are all of them, ``tiles`` what each has of tiles, ``turns`` how many tiles a block
    begins, whole or not. ``cuts`` are the tiles of the launch that go on in another block,
    ``streamed`` is the share of all steps that blocks share.
    """

    blocks: Number
    tiles: Number
    turns: Number
    cuts: Number
    streamed: Number


def stream_of(blocks: Number, tiles: Number, steps: Number) -> Stream:
    """Return what so many blocks have of tiles, of so many steps each."""
    on, count = blocks > 0, np.maximum(1.0, blocks)
    waves = whole_waves(tiles, count)
    left = intervals.at_least(shared_steps(tiles, waves, count, steps), 0.0)
    share = rounded_up(left, count)
    cut = (np.mod(share, steps) > 0) & (left > 0)
    each = intervals.at_least(waves + share / steps, tiles / count)
    return Stream(
        blocks=blocks,
        tiles=np.where(on, each, 0.0),
        turns=np.where(on, each + cut, 0.0),
        cuts=np.where(on & cut, np.minimum(count, left / np.maximum(1.0, share)) - 1.0, 0.0),
        streamed=np.where(on, left / steps / tiles, 0.0),
    )


@frozen
class UniformSet:
    """The accesses of one statement that are uniformly generated [Wolf and Lam, PLDI 1991].

    ``first`` are, for each dimension, the least of their constants, ``spans`` the differences of
    these; ``count`` is how many
    elements one point touches through them, ``rows`` in how many rows of the array. ``held`` says
    that registers have them; ``group`` is the position of the stageable group they belong to.
    ``touched`` are the boxes of the accesses.
    """

    access: AccessFacts
    first: tuple[int, ...]
    spans: tuple[int, ...]
    count: int
    rows: int
    reads: int
    writes: bool
    held: bool
    group: int | None
    touched: tuple[TouchedBox, ...]


def uniform_sets(statement: StatementFacts, launch: LaunchFacts) -> tuple[UniformSet, ...]:
    """Return the accesses of a statement, those that differ by constants together."""
    held = {at for own in launch.held for at in own.references}
    alike: dict[object, list[AccessFacts]] = {}
    for access in statement.accesses:
        group = _group_of(access, launch)
        form = access.terms
        key = access.array, form, access.reference in held, group, access.writes
        alike.setdefault(key, []).append(access)
    uniform_sets = []
    for accesses in alike.values():
        first = accesses[0]
        offsets = list(zip(*(tuple(c for _, c in a.subscripts) for a in accesses), strict=True))
        uniform_sets.append(
            UniformSet(
                access=first,
                first=tuple(map(min, offsets)),
                spans=tuple(max(along) - min(along) for along in offsets),
                count=len(accesses),
                rows=len({tuple(c for _, c in a.subscripts)[:-1] for a in accesses}),
                reads=sum(1 for a in accesses if a.reads),
                writes=any(a.writes for a in accesses),
                held=first.reference in held,
                group=_group_of(first, launch),
                touched=tuple(a.touched for a in accesses if a.touched is not None),
            )
        )
    return tuple(uniform_sets)


def _group_of(access: AccessFacts, launch: LaunchFacts) -> int | None:
    found = (at for at, group in enumerate(launch.stageable) if access.reference in group)
    return next(found, None)
