"""The layouts that generated code is offered: cuts, threads, points, tiles, places, spread sums."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product as iterproduct
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import AccessFacts, KernelFacts, StatementFacts
from eatss.analysis.layout import (
    Candidates,
    GridSplitK,
    Group,
    SplitK,
    WarpUse,
    mapped_loops,
    reordering_loops,
    thread_axes,
    threads_along,
)
from eatss.analysis.variant import (
    KernelVariant,
    WarpInstruction,
)
from eatss.base.targets import AXES, CUDA
from eatss.cards.profile import GpuProfile
from eatss.cost.access import LINE_BYTES
from eatss.cost.demand import Column
from eatss.plan.launch import trips_of
from eatss.plan.shares import outer_tile
from eatss.plan.stage import buffers, copied_together, is_asynchronous
from eatss.polyhedral.kernel import Loop

POINTS = (1, 2, 4, 8, 12, 16)
"""Points of a thread along one loop."""

MOST_POINTS = 128
"""Points of a thread in all. On an H200 a product of floats takes 1.81 J with 128, 1.95 with 64, in
tiles of 128 × 128 × 32."""

MOST_WIDE_POINTS, MOST_WIDE_POINTS_ALONG = 32, 8
"""Those where more than three loops are mapped, in all and along one loop."""

STREAM_POINTS = 4
"""Points of a thread where it adds up nothing in registers. Measured, not derived: on an H200
jacobi-2d takes 2.54 ms with 4 and 2.97 ms with 32, heat-3d 1.57 ms with 4 and 1.91 ms with 16."""

THREADS = (64, 128, 256, 512)
"""Threads of a block; fewer where the loops have fewer points."""

FEW_THREADS = (16, 32)
"""Threads of a block, beside those, where one loop is mapped: its few threads reach more SMs.

Less than a warp only where serial loops read tiles whose rows fill lines of memory: in integral
images of floats 16 threads took 0.53 ms on an H200, and 32 took 0.45."""

COPYING_THREADS = (64, 128, 256)
"""Threads of a block where those compute and the others copy tiles."""

MOST_COPIED = 4
"""Blocks of an SM up to which there are such: others have enough warps."""

LEAST_ALONG_X = 4
"""Threads along x, where the loop has so many points: a sector of doubles."""

SERIAL_TILES = {1: (8, 16, 32, 64), 2: (4, 16, 32)}
"""Tiles of serial loops of the band, by how many they are, where something is staged."""

SUMMED_TILES = (1, 4, 8, 16)
"""Tiles of the outer loops of a sum over several, where something is staged."""

SHORT_SUM = 8
"""A loop of a sum with so few iterations may be one tile: windows of filters."""

PLAIN_TILE = 32
"""Tile of serial loops where nothing is staged: it only bounds what is unrolled."""

MOST_SPREAD_THREADS = 256
"""Threads along a mapped loop of a launch whose sums are spread."""

SPREAD_POINTS = (1, 2, 4)
LANES = {
    1: (8, 16, 32, 64),
    32: (64, 128, 256),
    **{lanes: (4 * lanes, 8 * lanes) for lanes in (64, 128, 256)},
    512: (2048,),
}
"""Threads that share a sum, with the steps of it that they take at a time."""

TILES_OF_ROW = (512, 1024, 2048)
"""Steps of a running sum that a warp takes where it looks back at tiles before."""

CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Blocks that share a sum."""

MANY_CHUNKS = (1024, 2048, 4096)
"""Others, where they share the only one: it is all that keeps the card busy."""

PRODUCT_TILES = (16, 32, 48, 64, 96, 128, 192, 256)
"""Tiles of rows and columns where warps compute products together."""

PRODUCT_STEPS = (16, 32)
"""Steps of their sums that are staged at a time."""

PRODUCT_THREADS = (64, 128, 256)
LEAST_PRODUCT_POINTS, MOST_PRODUCT_WORDS = 8, {64: 128, 128: 128, 256: 144}
"""Points of a thread, each with a sum in registers, and words of those sums by threads of a block.

More than 128 words were worth it with 256 threads, one block to an SM. With 128 threads tensors
over one index took 1.02 ms instead of 0.81 (docs/design-findings.md)."""

WARPS_ALONG = (1, 2, 4, 8)
"""Warps of a block along rows or columns."""

STAGES = (1, 2, 3, 4)
"""Buffers in shared memory where warps compute products: no more than k-tiles."""

PLAIN_STAGES = (1, 2)
"""The same where threads compute alone, on cards whose copies need no registers."""

BLOCKS_PER_SM = (1, 2, 4, 8)
"""Blocks for each SM that share a sum, so that all of them run at a time and as long."""

LEAST_IDLE = 0.05
"""Share of the card that is idle where blocks have tiles of their own, from which on they may take
equal shares of steps instead."""

POINTS_OF_AN_SM = 4096
"""Points that keep an SM busy by themselves: 128 threads that have 32 each."""

MOST_BLOCKS_PER_SM = 32
"""Blocks for each SM beyond which a sum is not spread further."""

SPREAD_BELOW = 16
"""Sums are spread where the parallel loops have less than so many times the points that the card
runs threads at once: with more, each thread has sums of its own to add up."""

POINT_LOOPS = 2
"""Loops along which a thread has several points: enough to reuse both operands of a product."""

WIDE_THREADS = (128, 256)
"""Threads of a block, where more than three loops are mapped."""

FREE_LOOPS = 5
"""Loops among which those with threads and points are chosen, where more than three are mapped."""

MOST_LAYOUTS, MOST_OF_PROGRAM = 1 << 18, 400_000
"""Layouts of one variant, and of all kernels together if each has one. doitgen has 165 000 for
one of two kernels, and each takes ten microseconds."""


_ALL_LOOPS = sys.maxsize

_OFFERS = (
    (FREE_LOOPS, _ALL_LOOPS, True),
    (FREE_LOOPS, 2, True),
    (3, 2, True),
    (3, 1, True),
    (3, 1, False),
    (2, 1, False),
)
"""Everything, then less and less: the first with few enough layouts, or the last, is taken.

Mapped loops with threads and points, the innermost serial loops whose tiles differ (others have
their least one), and whether single groups are staged.
"""

_MANY = 1 << 13

Integers = npt.NDArray[np.int64]


def every_candidate(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    most: int = MOST_LAYOUTS,
) -> list[Candidates]:
    """Return all layouts of a kernel, variant by variant, about ``most`` of each."""
    alone = [one for one in variants if one.shared_loop is None]
    sharing = [one for one in variants if one.shared_loop is not None]
    own = candidates_of(facts, alone, profile, most)
    return [
        *own,
        *streaming_candidates(facts, own, profile),
        *sharing_candidates(facts, sharing, profile, most),
    ]


def candidates_of(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    most: int = MOST_LAYOUTS,
) -> list[Candidates]:
    """Return the layouts whose blocks have tiles of their own, about ``most`` of a variant."""
    found = []
    for variant in variants:
        if variant.spreads:
            if _has_room(facts, profile):
                found.append(_spread(facts, variant, profile))
        elif variant.instruction is not None:
            found.append(_products(facts, variant, variant.instruction))
        elif facts.loops:
            every = set(range(len(facts.references)))
            ahead = profile.compute_capability >= CUDA.copies_ahead and _may_run_ahead(facts, every)
            plain = _plain(facts, variant, PLAIN_STAGES if ahead else (1,), most)
            found += [plain, *_with_copiers(facts, plain, profile)]
        else:
            found.append(_made(facts, variant, 1, {}, {}))
    return [own for own in found if len(own)]


def streaming_candidates(
    facts: KernelFacts, alone: Sequence[Candidates], profile: GpuProfile
) -> list[Candidates]:
    """Return the layouts whose blocks take equal shares of the steps of all tiles.

    There are some where as many blocks as the card runs at a time would leave much of it idle in
    the last round of tiles, and only with boxes in shared memory, another one for each step. Boxes
    that are filled once for a tile are left out, where the sum does not need them.

    Args:
        facts: the kernel.
        alone: its layouts whose blocks have tiles of their own.
        profile: the card.
    """
    found = []
    for own in alone:
        loop = own.variant.stream_loop
        if loop is None or own.variant.spreads or own.copies:
            continue
        staged = {
            group: on if any(loop in one.loops for one, _ in _accesses(facts, group)) else 0 * on
            for group, on in own.staged.items()
        }
        once, boxes = np.zeros(len(own)), np.zeros(len(own))
        for group, on in staged.items():
            boxes += on
            once += 0 if loop in _moving(facts, group) else on
        rounds = _tiles(facts, own) / profile.sm_count
        wanted = (boxes > 0) & (once == 0) & (1.0 - rounds / np.ceil(rounds) > LEAST_IDLE)
        kept = replace(own, staged=staged).map(itemgetter(np.flatnonzero(wanted)))
        blocks = np.full(len(kept), profile.sm_count, dtype=np.int64)
        total = GridSplitK(loop=loop, blocks=blocks, streamed=True)
        found.append(replace(kept, shared_sum=total))
    return [own for own in found if len(own)]


def sharing_candidates(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    most: int = MOST_LAYOUTS,
) -> list[Candidates]:
    """Return the layouts of a kernel whose blocks share a sum, variant by variant.

    There are some only where the parallel loops do not have ``POINTS_OF_AN_SM`` for each SM, and
    then those with fewer tiles than SMs: with more, blocks that share nothing keep the card busy.

    Of several loops it is the outermost: all that is inside stays together.

    Args:
        facts: the kernel.
        variants: how it can be cut, all of them with a loop that blocks share, outermost first.
        profile: the card.
        most: about so many of each variant.
    """
    if _points(facts) >= POINTS_OF_AN_SM * profile.sm_count:
        return []
    found, trips = [], trips_of(facts)
    outermost = [one for one in variants if one.shared_loop == variants[0].shared_loop]
    for own in candidates_of(facts, outermost, profile, most):
        loop, tiles = own.variant.shared_loop, _tiles(facts, own)
        assert loop is not None
        turns = np.ceil(trips[loop] / own.tiles[loop])
        rows, blocks = [], []
        for each in BLOCKS_PER_SM:
            chunks = np.minimum(np.floor(each * profile.sm_count / tiles), turns)
            kept = np.flatnonzero((tiles < profile.sm_count) & (chunks > 1))
            rows.append(kept)
            blocks.append(chunks[kept].astype(np.int64))
        total = GridSplitK(loop=loop, blocks=np.concatenate(blocks))
        found.append(replace(own.map(itemgetter(np.concatenate(rows))), shared_sum=total))
    return [own for own in found if len(own)]


def _points(facts: KernelFacts) -> float:
    """Return the points of the parallel loops."""
    trips = trips_of(facts)
    return prod(trips[loop.name] for loop in mapped_loops(facts))


def points_of_thread(facts: KernelFacts) -> float:
    """Return how many instances of statements follow each other, whatever threads there are."""
    return sum(one.instances or 0 for one in facts.work.statements) / max(1.0, _points(facts))


def _tiles(facts: KernelFacts, own: Candidates) -> Column:
    """Return the number of tiles of each layout."""
    trips, sizes = trips_of(facts), own.tiles
    along = (np.ceil(trips[one.name] / sizes[one.name]) for one in mapped_loops(facts))
    return np.asarray(prod(along, start=np.ones(len(own))))


def layouts_of_each(kernels: int) -> int:
    """Return how many layouts of a variant are compared where there are so many kernels."""
    return min(MOST_LAYOUTS, MOST_OF_PROGRAM // max(1, kernels))


def _has_room(facts: KernelFacts, profile: GpuProfile) -> bool:
    """Tell whether the parallel loops leave threads for spread sums."""
    most = SPREAD_BELOW * profile.sm_count * profile.max_threads_per_sm
    return _points(facts) < most


def _made(
    facts: KernelFacts,
    variant: KernelVariant,
    count: int,
    tiles: Mapping[str, Integers],
    threads: Mapping[str, Integers],
    **chosen: Any,
) -> Candidates:
    """Return ``count`` layouts; what has no column is 1."""
    ones = np.ones(count, dtype=np.int64)
    return Candidates(
        variant=variant,
        tile_sizes=tuple((one.name, tiles.get(one.name, ones)) for one in facts.loops),
        block=tuple((one.name, threads.get(one.name, ones)) for one in mapped_loops(facts)),
        **{"stages": ones, "resident": ones, **chosen},
    )


def _plain(
    facts: KernelFacts, variant: KernelVariant, ahead: Sequence[int], most: int
) -> Candidates:
    """Return as many layouts without spread sums as can be compared, at best all.

    Threads and points of mapped loops, with everything else for each of them.
    """
    mapped = mapped_loops(facts)
    names = [loop.name for loop in mapped]
    serial = [loop for loop in facts.loops if loop.name not in names]
    held = any(launch.held for launch in variant.launches)
    waits = held or any(launch.private for launch in variant.launches)
    groups, outer = _groups(facts, variant), reordering_loops(facts)
    read_often = [_in_loops(facts, group, names) for group in groups]
    written = [any(access.writes for _, access in _accesses(facts, one)) for one in groups]
    of_sums = dict.fromkeys(outer, (1,) if variant.in_order else (PLAIN_TILE,))
    for offer in _OFFERS:
        free, several, single = offer
        wide = len(mapped) > len(AXES)
        threads, points = (
            _wide_pairs(facts, mapped, free)
            if wide
            else _pairs(mapped, facts.element_bytes if serial and groups else 0)
        )
        if not held:
            few = points.prod(axis=1) <= STREAM_POINTS
            threads, points = threads[few], points[few]
        staged_tiles = _staged_tiles(serial, outer, several, in_order=variant.in_order)
        plain_tiles = _serial_tiles(serial, (PLAIN_TILE,), of_sums)
        inner = [
            (*staging, *tiles, stages)
            for staging in _stagings(read_often, written, single=single)
            for tiles in (staged_tiles if any(staging) else plain_tiles)
            for stages in (ahead if any(staging) and serial and waits else (1,))
            if stages == 1 or any(map(_goes_on, serial, tiles))
        ]
        if len(threads) * len(inner) <= most:
            break
    table = np.tile(np.array(inner, dtype=np.int64).T, len(threads))
    threads, points = threads.repeat(len(inner), axis=0), points.repeat(len(inner), axis=0)
    flags, sizes = table[: len(groups)], table[len(groups) : -1]
    tiles = dict(zip(names, (threads * points).T, strict=True))
    tiles |= dict(zip([loop.name for loop in serial], sizes, strict=True))
    return _made(
        facts,
        variant,
        len(threads),
        tiles,
        dict(zip(names, threads.T, strict=True)),
        staged=dict(zip(groups, flags, strict=True)),
        stages=table[-1],
        fewer=offer != _OFFERS[0],
    )


def _with_copiers(facts: KernelFacts, own: Candidates, profile: GpuProfile) -> Iterator[Candidates]:
    """Yield layouts of blocks in which one warp computes and others only copy tiles."""
    shares = own.variant.shared_loop is not None
    if len(own.block) != 1 or len(own.tile_sizes) == 1 or not own.staged or shares:
        return
    ((name, threads),), staged = own.block, np.maximum.reduce([*own.staged.values()])
    alone = (staged > 0) & (threads == own.tiles[name]) & (threads <= CUDA.lanes)
    alone &= _tiles(facts, own) <= MOST_COPIED * profile.sm_count
    kept = own.map(itemgetter(np.flatnonzero(alone)))
    for count in COPYING_THREADS:
        yield replace(kept, block=((name, np.full(len(kept), count)),))


def _spread(facts: KernelFacts, variant: KernelVariant, profile: GpuProfile) -> Candidates:
    """Return the layouts whose sums are spread over lanes or chunks."""
    mapped = mapped_loops(facts)
    names = [loop.name for loop in mapped]
    trips = trips_of(facts)
    longest = max(trips[one.sum_loop] for one in variant.launches if one.sum_loop is not None)
    outer = [one.outer_loop for one in variant.launches if one.outer_loop is not None]
    turns = max((trips[loop] for loop in outer), default=1)
    most_blocks = MOST_BLOCKS_PER_SM * profile.sm_count
    rows: list[tuple[int, ...]] = []
    scans = any(one.scans for one in variant.launches)  # a warp has a row
    of_lanes = {lanes: own for lanes, own in LANES.items() if not scans or lanes == CUDA.lanes}
    looks_back = any(one.looks_back for one in variant.launches)
    for own, each in zip(*map(np.ndarray.tolist, _spread_pairs(mapped)), strict=True):
        tiles = [t * p for t, p in zip(own, each, strict=True)]
        blocks = prod(-(-int(trips[name]) // tile) for name, tile in zip(names, tiles, strict=True))
        for lanes, sum_tiles in of_lanes.items():
            if not profile.threads_per_warp <= prod(own) * lanes <= THREADS[-1] or (
                lanes > profile.threads_per_warp and lanes > longest
            ):
                continue
            several = CHUNKS if names else (*CHUNKS, *MANY_CHUNKS)
            rows += [
                (*own, *tiles, lanes, sum_tile, chunks, takers)
                for sum_tile in sum_tiles
                for takers in (one for one in several if one < 2 * turns)
                for chunks in (several if takers in (1, several[-1]) or takers >= turns else (1,))
                if lanes * chunks * takers > 1
                and (chunks * takers == 1 or chunks * takers * blocks <= most_blocks)
                and (chunks == 1 or (not scans and chunks * sum_tile < 2 * longest))
            ]
        if looks_back and prod(tiles) == 1:  # each tile of a row has a block
            tiles_of_rows = ((one, -(-int(longest) // one)) for one in TILES_OF_ROW)
            rows += [
                (*own, *tiles, CUDA.lanes, one, min(count, CUDA.most_blocks["y"]), 1)
                for one, count in tiles_of_rows
                if count > 1
            ]
    depth = len(names)
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 2 * depth + 4).T
    plain = np.full(len(rows), PLAIN_TILE, dtype=np.int64)
    tiles_of = {loop.name: plain for loop in facts.loops}
    tiles_of |= dict(zip(names, table[depth:-4], strict=True))
    threads = dict(zip(names, table[:depth], strict=True))
    lanes, sum_tile, chunks, takers = table[-4:]
    tiles_of |= {loop: outer_tile(int(trips[loop]), takers) for loop in outer if loop in tiles_of}
    spread = SplitK(lanes=lanes, tile=sum_tile, chunks=chunks, outer=takers)
    return _made(facts, variant, len(rows), tiles_of, threads, spread=spread)


def _products(
    facts: KernelFacts, variant: KernelVariant, instruction: WarpInstruction
) -> Candidates:
    """Return the layouts whose warps compute products together: both factors are staged."""
    product = variant.products[0]
    trips = {loop.name: loop.trip_count for loop in facts.loops}
    used = {at for one in variant.products for at in one.references}
    groups = [group for group in _groups(facts, variant) if used & set(group)]
    covered = {at for group in groups for at in group}
    stageable = [own for launch in variant.launches for own in launch.stageable]
    ahead = _may_run_ahead(facts, covered)
    stages_of = sorted({buffers(stages, asynchronous=ahead) for stages in STAGES})
    # of instructions with more steps than the least tile has, tiles have as many more
    least = PRODUCT_STEPS[0]
    steps_of = [steps * max(least, instruction.steps) // least for steps in PRODUCT_STEPS]
    rows: list[tuple[int, ...]] = []
    every = used & {at for own in stageable for at in own} <= covered
    if every and _reaches(trips[product.sum_loop], instruction.steps):
        for one, other in iterproduct(
            _along(instruction.rows, instruction.lanes[0], trips[product.rows]),
            _along(instruction.columns, instruction.lanes[1], trips[product.columns]),
        ):
            threads, points = one[1] * other[1], one[2] * other[2]
            if threads not in PRODUCT_THREADS or not (
                points >= LEAST_PRODUCT_POINTS
                and points * instruction.words <= MOST_PRODUCT_WORDS[threads]
            ):
                continue
            rows += [
                (*one[:2], *other[:2], steps, stages)
                for steps in steps_of
                if _reaches(trips[product.sum_loop], steps)
                for stages in stages_of
                if stages == 1 or _reaches(trips[product.sum_loop], (stages - 1) * steps + 1)
            ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 6).T
    ones = np.ones(len(rows), dtype=np.int64)
    return _made(
        facts,
        variant,
        len(rows),
        {product.rows: table[0], product.columns: table[2], product.sum_loop: table[4]},
        {product.rows: table[1], product.columns: table[3]},
        staged={group: ones * int(group in groups) for group in stageable},
        warps=WarpUse(instruction=instruction.name, stages=table[5], resident=ones),
    )


def _may_run_ahead(facts: KernelFacts, references: set[int]) -> bool:
    """Tell whether copies of all arrays of some references may do without registers.

    There are such copies of words and of vectors, which halves need: rows of whole vectors.
    """
    names = {facts.references[at].array for at in references}
    return all(
        is_asynchronous(copied_together(one.extents, one.element_bytes) * one.element_bytes)
        for one in facts.work.arrays
        if one.name in names
    )


def _goes_on(loop: Loop, tile: int) -> bool:
    """Tell whether a loop has a tile behind the first, which can be filled ahead."""
    return _reaches(loop.trip_count, tile + 1)


def _reaches(trips: int | None, steps: int) -> bool:
    """Tell whether a loop has whole tiles: boxes of shorter loops have no place for all steps."""
    return trips is None or trips >= steps


def _along(size: int, lanes: int, trips: int | None) -> Iterator[tuple[int, int, int]]:
    """Yield tile, threads and points of a thread along rows or columns of products.

    A warp has whole matrices, of two points of a lane at least.
    """
    least = max(2 * lanes, size)
    for tile in PRODUCT_TILES:
        if tile % least or (trips is not None and tile > trips):
            continue
        for warps in WARPS_ALONG:
            if tile % (least * warps) == 0:
                yield tile, lanes * warps, tile // (lanes * warps)


def _groups(facts: KernelFacts, variant: KernelVariant) -> tuple[Group, ...]:
    """Return the groups of references that may be staged: those whose copies have a known size."""
    open_loops = set(facts.open_loops)
    groups: dict[Group, None] = {}
    for launch in variant.launches:
        for group in launch.stageable:
            moving = _moving(facts, group)
            if moving and not moving & open_loops:
                groups[group] = None
    return tuple(groups)


def _accesses(facts: KernelFacts, group: Group) -> Iterator[tuple[StatementFacts, AccessFacts]]:
    """Yield the accesses of some references, each with its statement."""
    for statement in facts.work.statements:
        for access in statement.accesses:
            if access.reference in group:
                yield statement, access


def _in_loops(facts: KernelFacts, group: Group, mapped: Sequence[str]) -> bool:
    """Tell whether a statement that runs several times at a point reads some references."""
    trips, launches = trips_of(facts), facts.work.launches or 1
    return any(
        (one.instances or 0) > launches * prod(trips[name] for name in mapped if name in one.loops)
        for one, _ in _accesses(facts, group)
    )


def _moving(facts: KernelFacts, group: Group) -> set[str]:
    """Return the loops along which references move."""
    return {name for _, access in _accesses(facts, group) for name, _ in access.strides}


def _stagings(
    serial: Sequence[bool], written: Sequence[bool], *, single: bool
) -> list[tuple[int, ...]]:
    """Return which groups may be staged together: any of two, else none, one if ``single``, or all.

    ``serial`` says which of them serial loops read, again and again. Where there are such, all are
    those alone: others would take the shared memory from them for the whole kernel. Those that are
    not ``written`` may be staged by themselves, too.
    """
    count = len(serial)
    if count <= 2 and single:
        return list(iterproduct((0, 1), repeat=count))
    alone = [tuple(int(at == one) for at in range(count)) for one in range(count)]
    alone = alone if single else []
    every = tuple(map(int, serial)) if any(serial) else (1,) * count
    unwritten = tuple(on and int(not own) for on, own in zip(every, written, strict=True))
    return list(dict.fromkeys([(0,) * count, *alone, unwritten, every]))


def _staged_tiles(
    serial: Sequence[Loop], outer: Sequence[str], several: int, *, in_order: bool
) -> list[tuple[int, ...]]:
    """Return tiles of serial loops where something is staged; ``outer`` reorder their sum.

    Of the innermost ``several`` they differ.
    """
    if not outer:
        return _serial_tiles(serial, SERIAL_TILES[min(2, max(1, len(serial)))], several=several)
    own: dict[str, tuple[int, ...]] = {}
    for loop in serial:
        trips = loop.trip_count
        if loop.name in outer:
            short = trips is not None and trips <= SHORT_SUM
            sizes = (1, trips) if short and trips is not None else SUMMED_TILES
            own[loop.name] = (1,) if in_order else sizes
    return _serial_tiles(serial, SERIAL_TILES[1], own, several=several)


def _serial_tiles(
    loops: Sequence[Loop],
    sizes: Sequence[int],
    of_loops: Mapping[str, Sequence[int]] | None = None,
    *,
    several: int = _ALL_LOOPS,
) -> list[tuple[int, ...]]:
    """Return tiles of loops, no longer than they are; ``of_loops`` have sizes of their own.

    All but the innermost ``several`` have their least size.
    """
    choices = []
    for at, loop in enumerate(loops):
        trips, own = loop.trip_count, (of_loops or {}).get(loop.name, sizes)
        every = sorted({size if trips is None else min(size, max(1, trips)) for size in own})
        choices.append(every if at + several >= len(loops) else every[:1])
    return list(iterproduct(*choices))


def powers(most: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield powers of two up to each of some numbers."""
    return iterproduct(*([1 << n for n in range(m.bit_length())] for m in most))


def _fit_z(threads: tuple[int, ...]) -> bool:
    """Tell whether the loops that share ``z`` have no more threads than a block may have there."""
    return threads_along("z", threads, thread_axes(threads)) <= CUDA.most_threads["z"]


def _pairs(mapped: Sequence[Loop], staged_bytes: int) -> tuple[Integers, Integers]:
    """Return threads and points along up to three mapped loops, a row each."""
    reaches = [reach(loop.trip_count) for loop in mapped]
    most = [min(r, THREADS[-1]) for r in reaches]
    if len(mapped) == len(AXES):
        most[0] = min(reaches[0], CUDA.most_threads["z"])
    few = [one for one in FEW_THREADS if one * max(4, staged_bytes) >= LINE_BYTES]
    offered = (*few, *THREADS) if len(mapped) == 1 else THREADS
    totals = {min(total, prod(most)) for total in offered}
    least = min(LEAST_ALONG_X, most[-1])
    threads = [own for own in powers(most) if prod(own) in totals and own[-1] >= least]
    return pairs_within(
        threads, points_along(POINTS, len(mapped), MOST_POINTS, POINT_LOOPS), reaches
    )


def points_along(
    sizes: Sequence[int], loops: int, most: int, several: int
) -> list[tuple[int, ...]]:
    """Return points along loops, no more than so many in all, and along several of them."""
    every = iterproduct(sizes, repeat=loops)
    return [p for p in every if prod(p) <= most and sum(size > 1 for size in p) <= several]


def _spread_pairs(mapped: Sequence[Loop]) -> tuple[Integers, Integers]:
    """Return threads and points along the mapped loops of spread sums, a row each."""
    reaches = [reach(loop.trip_count) for loop in mapped]
    threads = [
        own
        for own in powers(min(r, MOST_SPREAD_THREADS) for r in reaches)
        if prod(own) <= THREADS[-1] and sum(size > 1 for size in own) <= 2 and _fit_z(own)
    ]
    points = points_along(SPREAD_POINTS, len(mapped), 2 * SPREAD_POINTS[-1], 2)
    return pairs_within(threads, points, reaches)


def pairs_within(
    threads: Sequence[tuple[int, ...]],
    points: Sequence[tuple[int, ...]],
    reaches: Sequence[int],
) -> tuple[Integers, Integers]:
    """Return every pair whose tile is no longer than its loops reach."""
    width = len(reaches)
    own = np.array(threads, dtype=np.int64).reshape(len(threads), width)
    each = np.array(points, dtype=np.int64).reshape(len(points), width)
    along = own.repeat(len(each), axis=0)
    times = np.tile(each, (len(own), 1))
    fits = (along * times <= np.array(reaches, dtype=np.int64)).all(axis=1)
    return along[fits], times[fits]


def _wide_pairs(
    facts: KernelFacts, mapped: Sequence[Loop], count: int
) -> tuple[Integers, Integers]:
    """Return threads and points along more than three mapped loops, a row each.

    All choices for each loop would be too many to look at. Threads run along the last loop, which
    is contiguous, and at most two others. A thread has points along at most ``POINT_LOOPS``. Both
    are among ``count`` loops.
    """

    def worth(at: int) -> tuple[bool, int, int, int]:
        # the contiguous loop, the longest up to a warp, those along which most references stand
        # still, the innermost
        loop = mapped[at]
        still = sum(loop.name in reference.invariant for reference in facts.references)
        return at == len(mapped) - 1, min(reach(loop.trip_count), 32), still, at

    def in_order(sizes: tuple[int, ...]) -> tuple[object, ...]:
        # how many loops but the last have several, which ones, how many, and the last
        moving = [at for at, size in enumerate(sizes[:-1]) if size > 1]
        return len(moving), moving, [sizes[at] for at in moving], sizes[-1]

    free = sorted(range(len(mapped)), key=worth, reverse=True)[:count]
    most = [reach(loop.trip_count) if at in free else 1 for at, loop in enumerate(mapped)]
    every = sorted(
        (
            own
            for own in powers(min(size, WIDE_THREADS[-1]) for size in most)
            if prod(own) <= WIDE_THREADS[-1]
            and sum(size > 1 for size in own[:-1]) < len(AXES)
            and _fit_z(own)
        ),
        key=in_order,
    )
    largest = max(map(prod, every))  # of three short loops there are few
    totals = {min(total, largest) for total in WIDE_THREADS}
    threads = [own for own in every if prod(own) in totals]
    points = [
        own
        for own in powers(min(size, MOST_WIDE_POINTS_ALONG) for size in most)
        if prod(own) <= MOST_WIDE_POINTS and sum(size > 1 for size in own) <= POINT_LOOPS
    ]
    points.sort(key=lambda own: in_order((*own, 1)))
    return pairs_within(threads, points, most)


def reach(trips: int | None) -> int:
    """Return the power of two at or above ``trips``; a large one where they are not known."""
    return _MANY if trips is None else 1 << max(0, trips - 1).bit_length()
