"""The sizes that PPCG is offered: tiles, blocks and options of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from eatss.choose.selection import PPCG_SHARED_BYTES, PpcgOptions
from eatss.plan.ppcg import PpcgCandidates, PpcgKernel

DEFAULT_TILE = 32
"""PPCG's tile along every loop."""

DEFAULT_BLOCKS: dict[int, tuple[int, ...]] = {0: (), 1: (512,), 2: (32, 16), 3: (32, 4, 4)}
"""PPCG's threads of a block, the last number along ``x``, by the number of mapped loops."""


SHARED_LIMITS = (PPCG_SHARED_BYTES, 0, 16384, 32768, 49152)
"""What ``--max-shared-memory`` may be; one number for the program."""

POINTS = (1, 2, 4, 5, 8, 10, 16)
"""Points of a thread along one loop; fives for trips such as 4000, which no larger power of two
divides."""

MOST_POINTS = {1: 16, 2: 40, 3: 16}
"""Points of a thread in all, by the number of mapped loops."""

MOST_GUARDED = 0.25
"""Share of a thread's points along a loop that may stand behind tests of their own, because the
loop's end cuts tiles off. PPCG tests them at every step of the loops inside."""

LEAST_THREADS = 32
MOST_THREADS = 1024

SERIAL_TILES = {1: (8, 16, 32, 64, 128), 2: (4, 8, 16, 32, 64)}
"""Tiles of the loops that are not mapped, by how many they are."""

Vector = tuple[int, ...]
"""Tiles of all loops of the band, then threads of the mapped ones."""


def variable_names(kernel: PpcgKernel) -> tuple[str, ...]:
    """Return the names of a vector's entries: tiles by loop, blocks as ``threads:loop``."""
    return kernel.band + tuple(f"threads:{name}" for name in kernel.threads)


def default_vector(kernel: PpcgKernel) -> Vector:
    """Return what PPCG takes where it is told nothing."""
    tiles = (DEFAULT_TILE,) * len(kernel.band)
    return tiles + DEFAULT_BLOCKS[len(kernel.threads)]


def offered(kernel: PpcgKernel) -> tuple[Vector, ...]:
    """Return the vectors to choose from, PPCG's default first."""
    mapped = len(kernel.threads)  # the leading loops of the band
    trips = tuple(kernel.trips[name] for name in kernel.band)
    return (default_vector(kernel), *_vectors(trips[:mapped], trips[mapped:]))


@lru_cache(maxsize=256)
def _vectors(mapped: Vector, serial: Vector) -> tuple[Vector, ...]:
    """Return the vectors for loops of so many trips, those mapped to threads first."""
    sizes = SERIAL_TILES[min(2, max(1, len(serial)))]
    tiles_of_serial = list(
        product(*(sorted({min(size, trips) for size in sizes}) for trips in serial))
    )
    return tuple(
        tuple(t * p for t, p in zip(threads, points, strict=True)) + chosen + threads
        for threads, points in _mapped(mapped)
        for chosen in tiles_of_serial
    )


def _mapped(loops: Vector) -> list[tuple[Vector, Vector]]:
    """Return threads and points of a thread along the mapped loops."""
    count = len(loops)
    if not count:
        return [((), ())]
    reaches = [_reach(trips) for trips in loops]
    least = min(LEAST_THREADS, prod(reaches))
    threads = [
        choice
        for choice in product(*([1 << n for n in range(11) if 1 << n <= r] for r in reaches))
        if least <= prod(choice) <= MOST_THREADS and choice[-1] >= min(4, reaches[-1])
    ]
    points = [p for p in product(POINTS, repeat=count) if prod(p) <= MOST_POINTS[count]]
    return [
        (t, p)
        for t in threads
        for p in points
        if all(
            a * b <= reach and guarded(trips, a, b) <= MOST_GUARDED * b
            for trips, a, b, reach in zip(loops, t, p, reaches, strict=True)
        )
    ]


def guarded(trips: int, threads: int, points: int) -> int:
    """Return how many points of a thread along a loop may lie beyond its end.

    One point a thread needs one test for the whole thread, which costs nothing inside.
    """
    left = trips % (threads * points)
    return 0 if points == 1 or not left else points - left // threads


def _reach(trips: int) -> int:
    """Return the power of two at or above a number of trips."""
    return 1 << max(0, trips - 1).bit_length()


def candidates(
    kernel: PpcgKernel, vectors: Sequence[Vector], options: PpcgOptions
) -> PpcgCandidates:
    """Return vectors as columns, under options that hold for the whole program."""
    table, ones = np.array(vectors, dtype=np.float64).T, np.ones(len(vectors))
    tiles, blocks = table[: len(kernel.band)], table[len(kernel.band) :]
    return PpcgCandidates(
        tile_sizes=tuple(zip(kernel.band, tiles, strict=True)),
        block=tuple(zip(kernel.threads, blocks, strict=True)),
        stages=ones,
        resident=ones,
        shared_limit_bytes=options.max_shared_memory * ones,
        unroll=options.unroll_gpu_tile * ones,
    )
