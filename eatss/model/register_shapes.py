"""All layouts of a kernel that a card can run well: threads, points a thread and serial tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
import numpy.typing as npt

from eatss.analysis.mapping import AXES, MAX_THREADS_Z, thread_axes, threads_along
from eatss.gpu.profile import GpuProfile
from eatss.model.build import precision_factor
from eatss.model.register_energy import Array, Shapes, elements, staged_bytes, thread_reads
from eatss.model.register_families import Nest

POINTS = (1, 2, 4, 8)
"""Points of a thread along one loop."""

MOST_POINTS = 32
"""Points of a thread in all. Twice as many floats would fit, but gemm on them takes 6.4 ms with 32
and 10.8 with 64 on an H200."""

POINT_LOOPS = 3
"""Loops along which a thread has several points, where more than three are mapped."""

FREE_LOOPS = 5
"""Loops among which those with threads and points are chosen, where more than three are mapped."""

SERIAL_TILES = (1, 2, 4, 8, 16, 32, 64)
"""Sizes of a tile of a serial loop."""

MOST_ABOVE_STREAM = 4
"""The largest where a long untiled loop runs around a tile: mttkrp with 32 × 64 points
takes 7.2 ms with 1, 5.6 with 4 and 8.0 with 8 on an H200."""

RESIDENT_WARPS = 16
"""Warps of an SM that hide the latency of a contraction. On an H200 gemm with 48 points a thread
and 12 warps takes 13.6 ms, with 64 points and 8 warps 17 to 27 ms, with 32 and 16 10.4 ms."""

STAGED_BLOCKS = 4
"""Blocks of an SM that go on while one waits at a barrier."""

PLAIN_BLOCKS = 2

STREAM_BLOCKS = 8
"""Blocks of an SM at full occupancy where nothing is kept in registers: 256 threads on most."""

STREAM_WORDS = 8
"""Words of results a thread has in flight where nothing is kept in registers: jacobi-2d, fdtd-2d,
heat-3d and lu are fastest with four doubles a thread on an H200, and 2 to 4 % slower with eight."""

BLOCKS_PER_SM = 2
"""Blocks for each SM that a launch needs, where its loops have enough points."""

HOST_BLOCKS_PER_SM = 8
"""The same inside host loops, whose ranges may shrink while they run."""

FILLING_THREADS = 128
"""Threads of each of these blocks; where blocks are smaller, more are needed."""

COALESCED_THREADS = 32
"""Threads along x where it walks memory through L1."""

SECTOR_THREADS = 4
"""Threads along x where only copies and results do: a sector of doubles, half one of floats."""

LINE_BYTES = 128

_MOST_THREADS = 1024
_MANY = 1 << 40
_ENOUGH = 1 << 31  # blocks for any card
_ADDRESS_REGISTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of the card: what each layout uses of it, in ``unit``."""

    name: str
    title: str
    used: Array
    available: int
    unit: str
    detail: str

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Which layouts keep it."""
        return np.asarray(self.used <= self.available)


def all_shapes(nest: Nest, warp: int) -> Shapes:
    """Return every layout of threads and points, serial tiles at their smallest.

    Threads are powers of two. A tile has no more points along a loop than the power of two
    above its trips. Of more than three mapped loops see ``_wide_shapes``.
    """
    if nest.is_wide:
        return _wide_shapes(nest, warp)
    choices = []
    for position, loop in enumerate(nest.mapped):
        most = reach(loop.trip_count)
        z = position == 0 and len(nest.mapped) == 3
        counts = [
            1 << n for n in range(11) if 1 << n <= min(most, MAX_THREADS_Z if z else _MOST_THREADS)
        ]
        pairs = [(t, p) for t in counts for p in POINTS if t * p <= most]
        choices.append(np.array(pairs, dtype=np.int64))
    picked = np.indices([len(pairs) for pairs in choices]).reshape(len(choices), -1)
    table = [pairs[rows] for pairs, rows in zip(choices, picked, strict=True)]
    shapes = _shapes(nest, table, picked.shape[1])
    total = shapes.product(shapes.threads)
    least = min(warp, prod(reach(loop.trip_count) for loop in nest.mapped))
    return shapes.rows((total >= least) & (total <= _MOST_THREADS))


def _wide_shapes(nest: Nest, warp: int) -> Shapes:
    """Return the layouts of more than three mapped loops.

    All choices for each loop would be too many to look at. Threads run along the last loop, which
    is contiguous, and at most two others. A thread has points along at most ``POINT_LOOPS``, more
    than it takes to reuse both operands of a product. Both are among ``FREE_LOOPS`` loops.
    """
    free = _free_loops(nest)
    most = [reach(loop.trip_count) if loop.name in free else 1 for loop in nest.mapped]
    least = min(warp, prod(most))
    threads = [
        counts
        for counts in _powers(most, _MOST_THREADS, len(AXES), first=len(most) - 1)
        if prod(counts) >= least
        and threads_along("z", counts, thread_axes(counts)) <= MAX_THREADS_Z
    ]
    points = list(_powers([min(size, POINTS[-1]) for size in most], MOST_POINTS, POINT_LOOPS))
    along = np.array(threads, dtype=np.int64).repeat(len(points), axis=0)
    each = np.tile(np.array(points, dtype=np.int64), (len(threads), 1))
    kept = (along * each <= np.array(most)).all(axis=1)
    table = [np.stack((along[kept, at], each[kept, at]), axis=1) for at in range(len(nest.mapped))]
    return _shapes(nest, table, int(kept.sum()))


def _free_loops(nest: Nest) -> frozenset[str]:
    """Return the mapped loops that may have threads and points; a block has one point of others.

    First the contiguous one, then the longest up to a warp, then those along which most
    references stand still, then the innermost.
    """
    last = nest.mapped[-1]

    def worth(at: int) -> tuple[bool, int, int, int]:
        loop = nest.mapped[at]
        still = sum(loop.name not in family.loops for family in nest.families)
        return loop is last, min(reach(loop.trip_count), COALESCED_THREADS), still, at

    order = sorted(range(len(nest.mapped)), key=worth, reverse=True)
    return frozenset(nest.mapped[at].name for at in order[:FREE_LOOPS])


def _powers(
    most: Sequence[int], product_most: int, several: int, *, first: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield powers of two up to ``most``, at most ``several`` of them above 1.

    Args:
        most: the largest of each.
        product_most: the largest product.
        several: how many may be above 1, that at ``first`` counted whatever it is.
        first: a position, or none.
    """
    others = [at for at in range(len(most)) if at != first]
    for count in range(several + (first is None)):
        for chosen in combinations(others, count):
            moving = chosen if first is None else (*chosen, first)
            choices = [
                [1 << n for n in range(int(at != first), most[at].bit_length())] for at in moving
            ]
            for sizes in product(*choices):
                if prod(sizes) <= product_most:
                    by_place = dict(zip(moving, sizes, strict=True))
                    yield tuple(by_place.get(at, 1) for at in range(len(most)))


def _shapes(nest: Nest, table: Sequence[Array], count: int) -> Shapes:
    threads = {loop.name: pairs[:, 0] for loop, pairs in zip(nest.mapped, table, strict=True)}
    points = {loop.name: pairs[:, 1] for loop, pairs in zip(nest.mapped, table, strict=True)}
    tiles = {name: threads[name] * points[name] for name in threads}
    ones = np.ones(max(count, 1), dtype=np.int64)
    return Shapes(
        threads=threads, points=points, tiles=tiles | {loop.name: ones for loop in nest.serial}
    )


def reach(trips: int | None) -> int:
    """Return the power of two at or above ``trips``; a large one where they are not known."""
    return 1 << 13 if trips is None else 1 << max(0, trips - 1).bit_length()


def with_serial_tiles(nest: Nest, shapes: Shapes) -> Shapes:
    """Return the layouts with every choice of serial tiles.

    A loop of no more trips than the largest tile may be one tile.
    """
    choices = []
    for loop in nest.serial:
        trips = loop.trip_count
        most = SERIAL_TILES[-1] if nest.extents == nest.swept else MOST_ABOVE_STREAM
        fitting = min(most, most if trips is None else trips)
        sizes = [size for size in SERIAL_TILES if size <= fitting]
        choices.append(sorted({*sizes, trips} if trips and trips <= most else sizes or [1]))
    combinations = np.array(list(product(*choices)), dtype=np.int64)
    count, many = len(shapes), len(combinations)
    rows = np.repeat(np.arange(count), many)
    grown = shapes.rows(rows)
    serial = {loop.name: np.tile(combinations[:, at], count) for at, loop in enumerate(nest.serial)}
    return Shapes(threads=grown.threads, points=grown.points, tiles=grown.tiles | serial)


def hard_limits(nest: Nest, shapes: Shapes, profile: GpuProfile) -> tuple[Limit, ...]:
    """Return the limits without which a kernel does not launch, or spills."""
    threads = shapes.product(shapes.threads)
    registers = registers_of(nest, shapes)
    return (
        Limit(
            name="threads",
            title="threads of a block",
            used=threads,
            available=profile.threads_per_block,
            unit="threads",
            detail=f"the card has {profile.threads_per_block} a block",
        ),
        Limit(
            name="registers_thread",
            title="registers of a thread",
            used=registers,
            available=profile.registers_per_thread,
            unit="registers",
            detail=f"the card has {profile.registers_per_thread} a thread",
        ),
        Limit(
            name="registers_block",
            title="registers of a block",
            used=registers * threads,
            available=profile.registers_per_block,
            unit="registers",
            detail=f"the card has {profile.registers_per_block} a block",
        ),
    )


def occupancy_limits(nest: Nest, shapes: Shapes, profile: GpuProfile) -> tuple[Limit, ...]:
    """Return the limits that keep the card busy.

    Where no layout keeps one of them, it is what the least demanding layout needs.
    """
    warp = profile.threads_per_warp
    registers, threads = registers_of(nest, shapes), shapes.product(shapes.threads)
    points = shapes.product(shapes.points)
    if nest.accumulators:
        room = profile.registers_per_sm // (RESIDENT_WARPS * warp)
        resident = Limit(
            name="registers_resident",
            title=f"registers of a thread, {RESIDENT_WARPS} warps an SM",
            used=registers,
            available=max(room, int(registers.min())),
            unit="registers",
            detail="",
        )
        most = RESIDENT_WARPS * warp // PLAIN_BLOCKS
    else:
        words = points * precision_factor(nest.element_bytes)
        resident = Limit(
            name="words_in_flight",
            title="words in flight of a thread",
            used=words,
            available=max(STREAM_WORDS, int(words.min())),
            unit="words",
            detail="",
        )
        most = profile.max_threads_per_sm // STREAM_BLOCKS
    # with fewer threads a block than this an SM runs out of blocks before it is full
    least = min(profile.max_threads_per_sm // profile.max_blocks_per_sm, int(threads.max()))
    full = Limit(
        name="blocks_resident",
        title="threads a block is short of a full SM",
        used=np.maximum(0, least - threads),
        available=0,
        unit="threads",
        detail="",
    )
    busy = Limit(
        name="threads_resident",
        title="threads of a block, blocks enough an SM",
        used=threads,
        available=max(most, warp, int(threads.min())),
        unit="threads",
        detail="",
    )
    return resident, busy, full, _coalesced(nest, shapes, SECTOR_THREADS)


def fills_card(
    nest: Nest, shapes: Shapes, profile: GpuProfile, *, host: bool
) -> npt.NDArray[np.bool_]:
    """Tell which layouts have threads and blocks enough for the card, or as many as any has."""
    if not nest.mapped or any(loop.trip_count is None for loop in nest.mapped):
        return np.ones(len(shapes), dtype=bool)
    blocks = np.ones(len(shapes), dtype=np.int64)
    for loop in nest.mapped:
        tiles = -(-(loop.trip_count or 1) // shapes.tiles[loop.name])
        blocks = np.minimum(blocks * np.minimum(tiles, _ENOUGH), _ENOUGH)
    wanted = profile.sm_count * (HOST_BLOCKS_PER_SM if host else BLOCKS_PER_SM)
    trips = min(prod(loop.trip_count or 1 for loop in nest.mapped), _MANY)
    threads = np.minimum(trips, blocks * shapes.product(shapes.threads))
    wide = threads >= min(wanted * FILLING_THREADS, int(threads.max()))
    most = int(blocks[wide].max())
    return np.asarray(wide & (blocks >= min(wanted, most)))


def staged_limits(
    nest: Nest,
    shapes: Shapes,
    profile: GpuProfile,
    staged: Sequence[int],
    *,
    block_bytes: int,
    sm_bytes: int,
) -> tuple[Limit, ...]:
    """Return the limits that depend on which families are staged."""
    threads = shapes.product(shapes.threads)
    used = np.zeros(len(shapes), dtype=np.int64)
    for at in staged:
        used = used + staged_bytes(nest, nest.families[at], shapes)
    resident = RESIDENT_WARPS * profile.threads_per_warp // threads
    blocks = np.maximum(STAGED_BLOCKS, resident) if staged else np.maximum(1, resident)
    limits = [
        _shared("shared_per_block", used, block_bytes),
        _shared("shared_per_sm", used * blocks, sm_bytes),
    ]
    if staged:
        limits.append(
            Limit(
                name="warps_resident",
                title="threads of all blocks that an SM holds",
                used=threads * STAGED_BLOCKS,
                available=max(
                    RESIDENT_WARPS * profile.threads_per_warp, STAGED_BLOCKS * int(threads.min())
                ),
                unit="threads",
                detail="",
            )
        )
    if (lines := _walked_lines(nest, shapes, profile, staged)) is not None:
        limits.append(lines)
    along_x = nest.mapped[-1].name if nest.mapped else None
    if any(
        family.contiguous == along_x and (family.loops & nest.steps or not nest.steps)
        for at, family in enumerate(nest.families)
        if at not in staged
    ):
        limits.append(_coalesced(nest, shapes, COALESCED_THREADS))
    elif staged and nest.accumulators:
        limits.append(_narrow(nest, shapes))
    return tuple(limits)


def _shared(name: str, used: Array, available: int) -> Limit:
    return Limit(
        name=name,
        title="shared memory",
        used=used,
        available=available,
        unit="bytes",
        detail="",
    )


def _walked_lines(
    nest: Nest, shapes: Shapes, profile: GpuProfile, staged: Sequence[int]
) -> Limit | None:
    """Return the limit that lines along which inner loops walk stay in L1, of a full SM."""
    walking = [
        family
        for at, family in enumerate(nest.families)
        if at not in staged and family.contiguous in dict(nest.extents)
    ]
    if not walking:
        return None
    blocks = np.maximum(1, profile.max_threads_per_sm // shapes.product(shapes.threads))
    used = np.zeros(len(shapes), dtype=np.int64)
    for family in walking:
        used = used + elements(nest, family, shapes, staged=False) * blocks * LINE_BYTES
    return Limit(
        name="walked_lines",
        title="lines in L1",
        used=used,
        available=max(profile.l1_shared_bytes, int(used.min())),
        unit="bytes",
        detail="",
    )


def _narrow(nest: Nest, shapes: Shapes) -> Limit:
    """Return the limit on threads along x where sums are kept and what they read is staged.

    Measured, not derived: on an H200 32 × 4 threads with 4 × 8 points beat 16 × 8 with the same
    points. gemm takes 7.9 ms, not 8.7 to 10.4 (float 5.2, not 6.5), syrk 7.8, not 8.8, syr2k 15.5,
    not 17.8; reads of shared memory, conflicts and instructions are nearly the same.
    """
    along_x = shapes.threads[nest.mapped[-1].name]
    return Limit(
        name="narrow",
        title="threads along x",
        used=along_x,
        available=max(SECTOR_THREADS, int(along_x.min())),
        unit="threads",
        detail="",
    )


def _coalesced(nest: Nest, shapes: Shapes, least: int) -> Limit:
    """Return the limit that neighbours along x are at least so many, or all there are."""
    if not nest.mapped:
        used = np.zeros(len(shapes), dtype=np.int64)
    else:
        loop = nest.mapped[-1]
        least = min(least, reach(loop.trip_count), int(shapes.threads[loop.name].max()))
        used = np.maximum(0, least - shapes.threads[loop.name])
    return Limit(
        name="coalescing",
        title="threads along x short of a coalesced row",
        used=used,
        available=0,
        unit="threads",
        detail="",
    )


def registers_of(nest: Nest, shapes: Shapes) -> Array:
    """Return the registers of a thread: accumulators, operands of two steps, addresses.

    Statements run one after the other, so the operands are those of the one with most.

    gemm compiles to 126 with 4 × 8 doubles, for which this gives 128.
    """
    words = precision_factor(nest.element_bytes)
    points = shapes.product(shapes.points)
    operands = np.zeros(len(shapes), dtype=np.int64)
    for statement in nest.statements:
        own = np.zeros(len(shapes), dtype=np.int64)
        for family in nest.families:
            if statement in family.statements and family.loops & nest.steps:
                own = own + thread_reads(nest, family, shapes)
        operands = np.maximum(operands, own)
    operands = operands if nest.accumulators else 0 * operands
    held = points * max(1, nest.accumulators)
    return np.asarray(held * words + 2 * operands * words + _ADDRESS_REGISTERS)
