"""Loops on the host that one block runs: what was a launch is a phase between barriers.

for (k = 1; k < n; k++) {           one block: for (k = 1; k < n; k++) {
    sum<<<…>>>(k);                      { … } __syncthreads();
    update<<<…>>>(k);                   { … } __syncthreads();
}                                   }
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from eatss.base.frozen import Names, Numbers, frozen
from eatss.plan.numbers import Number

COPIES_AT_ONCE = 8
"""Elements of a tile that a thread loads before it waits for one."""


@frozen
class LoopRun:
    """The kernels in an outermost loop on the host, all of them: one block may run it.

    A loop over wavefronts of one kernel may be cut into tiles: along itself, and along functions of
    the parallel ``loops`` inside. All of these have so many values as ``spans`` says.
    """

    kernels: Names
    loops: Names = ()
    spans: Numbers = ()


def side_by_side(block: Number, threads: Number, *, meet: bool) -> Number:
    """Return how many blocks of a launch one block runs at a time as a phase, 0 where it cannot.

    Args:
        block: threads of the block.
        threads: those of a block of the launch.
        meet: whether these meet, at barriers or in shuffles: then they have to be all of the block.
    """
    return block // threads * ((block == threads) | (not meet))


def odd_padding(sizes: Sequence[int], steps: Sequence[int] | None) -> int:
    """Return how many elements follow each row of a tile, so that neighbours' are in other banks.

    Args:
        sizes: of the tile.
        steps: how far apart neighbouring threads are along each dimension, if that is known.
    """
    if steps is None:
        return 0
    for padding in (0, 1):
        stride, apart = 1, 0
        for at, (size, step) in enumerate(zip(reversed(sizes), reversed(steps), strict=True)):
            apart += step * stride
            stride *= size + (padding if at == 0 else 0)
        if apart % 2:
            return padding
    return 0


def box_of_tile(tiles: Sequence[int], dimensions: int) -> int:
    """Return about how many elements the box of a tile has, skewed by its parallel loops.

    Args:
        tiles: how many values of each function a tile has.
        dimensions: of the array; loops move along so many at most, the longest of them.
    """
    first, *across = tiles
    rows = sorted((size + 2 for size in across), reverse=True)
    return (first + 2 * sum(rows)) * prod(rows[: dimensions - 1])


def waves_of(spans: Sequence[int], tiles: Sequence[Number]) -> Number:
    """Return how many wavefronts of tiles there are: sums of the numbers of a tile.

    Args:
        spans: how many values functions have.
        tiles: how many of them a tile has.
    """
    counts = [-(-span // tile) for span, tile in zip(spans, tiles, strict=True)]
    return sum(counts) - len(counts) + 1
