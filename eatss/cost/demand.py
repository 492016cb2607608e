"""The noun between code and card: what a kernel's code asks of any card."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from eatss.analysis.structure import TensorFormat
from eatss.base.frozen import frozen

Column = npt.NDArray[np.float64]
"""A figure of many candidates, one entry each."""


@frozen
class Demand:
    """What candidates for one kernel ask of the card; every field has an entry a candidate.

    ``launches`` are those of a run; everything else is of one launch.

    ``blocks``, ``threads``: blocks of a launch, threads of a block. ``registers``: 32-bit registers
    of a thread, an estimate. ``shared_bytes``: of a block, which may have ``shared_limit_bytes``.

    ``instructions``: warp instructions of any kind. ``fp64``, ``fp32``: those that the units of
    that width run. ``tensor64``, ``tensor32``, ``tensor16``, ``tensor8``: multiply-adds on tensor
    cores, of 64 bits, of TF32, of halves and of bytes, as many as a warp has lanes counted as one.
    ``lanes``: the share of a warp's lanes that have work.

    ``l1_wavefronts``, ``shared_wavefronts``: cycles of an SM's load and store unit.
    ``operand_bytes``: read from L1 or shared memory for arithmetic, what lanes share counted once.
    ``l2_bytes``, ``dram_bytes``: moved between SMs and L2, and between L2 and memory.
    ``torn_bytes``: of ``l2_bytes`` the sectors that a request writes in part only.

    ``late``: how many times longer arithmetic takes in addition, as loads in front of it are waited
    for.

    ``scatter``: how many times longer memory takes because pieces of its pages are wanted at
    different times, or its sectors are written in parts. 1 for code that does neither.

    ``chain_cycles``: what the slowest thread of a block waits for, one thing after the other:
    loads that depend on each other, barriers, arithmetic that feeds itself. ``edge_cycles``:
    what a block takes, where copies run ahead, in front of the loop, behind it, and waiting in its
    tiles that a bound cuts. Only other blocks of the SM have something to do meanwhile.

    ``streams``: blocks of an SM where they take equal shares of the steps of all ``blocks``, which
    are tiles then; 0 where blocks have tiles of their own. ``stream_tiles``: tiles that an SM has
    of them, parts counted as such, ``stream_turns``: those that a block begins or goes on with.
    ``stream_cycles``: what a block waits for others to put parts together.

    ``apart_code``: instructions of the loops that blocks of an SM are in at different times, 0
    where all run the same. ``apart_again``: the share of ``instructions`` that is fetched anew
    where a cache does not keep them.
    """

    launches: Column
    blocks: Column
    threads: Column
    registers: Column
    shared_bytes: Column
    shared_limit_bytes: Column
    instructions: Column
    fp64: Column
    fp32: Column
    tensor64: Column
    tensor32: Column
    tensor16: Column
    tensor8: Column
    lanes: Column
    late: Column
    l1_wavefronts: Column
    shared_wavefronts: Column
    operand_bytes: Column
    l2_bytes: Column
    torn_bytes: Column
    dram_bytes: Column
    scatter: Column
    chain_cycles: Column
    edge_cycles: Column
    streams: Column
    stream_tiles: Column
    stream_turns: Column
    stream_cycles: Column
    apart_code: Column
    apart_again: Column

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.blocks)


TENSOR_COLUMNS: Mapping[TensorFormat, str] = {
    "fp64": "tensor64", "tf32": "tensor32", "fp16": "tensor16", "int8": "tensor8"
}  # fmt: skip
"""Which column counts the multiply-adds of tensor cores on numbers of a format."""
