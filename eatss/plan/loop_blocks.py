"""Loops on the host that one block runs: what was a launch is a phase between barriers.

for (k = 1; k < n; k++) {           one block: for (k = 1; k < n; k++) {
    sum<<<…>>>(k);                      { … } __syncthreads();
    update<<<…>>>(k);                   { … } __syncthreads();
}                                   }
"""

from __future__ import annotations

from eatss.base.frozen import Names, frozen
from eatss.plan.numbers import Number


@frozen
class LoopRun:
    """The kernels in an outermost loop on the host, all of them: one block may run it."""

    kernels: Names


def side_by_side(block: Number, threads: Number, *, meet: bool) -> Number:
    """Return how many blocks of a launch one block runs at a time as a phase, 0 where it cannot.

    Args:
        block: threads of the block.
        threads: those of a block of the launch.
        meet: whether these meet, at barriers or in shuffles: then they have to be all of the block.
    """
    return block // threads * ((block == threads) | (not meet))
