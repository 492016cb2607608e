"""Loops on the host that one block runs: what was a launch is a phase between barriers.

for (k = 1; k < n; k++) {           one block: for (k = 1; k < n; k++) {
    sum<<<…>>>(k);                      { … } __syncthreads();
    update<<<…>>>(k);                   { … } __syncthreads();
}                                   }
"""

from __future__ import annotations

from collections.abc import Sequence

from eatss.base.frozen import Names, Numbers, frozen
from eatss.plan.numbers import Number


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


def waves_of(spans: Sequence[int], tiles: Sequence[Number]) -> Number:
    """Return how many wavefronts of tiles there are: sums of the numbers of a tile.

    Args:
        spans: how many values functions have.
        tiles: how many of them a tile has.
    """
    counts = [-(-span // tile) for span, tile in zip(spans, tiles, strict=True)]
    return sum(counts) - len(counts) + 1
