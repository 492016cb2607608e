"""The noun between code and card: what a kernel's code asks of any card.

The sums of what a launch asks for, as entries of its plan add to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import AccessFacts, StatementFacts
from eatss.analysis.variant import TensorFormat
from eatss.base.frozen import frozen
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES, box_wavefronts, is_wide, torn_sectors
from eatss.cost.card import Card, CodeConstants
from eatss.plan.intervals import from_nothing
from eatss.plan.launch import LaunchPlan
from eatss.plan.numbers import Number
from eatss.plan.ppcg import PpcgPlan

Column = npt.NDArray[np.float64]
"""A figure of many candidates, one entry each."""


@frozen
class Demand:
    """What candidates for one kernel ask of the card; every field has an entry a candidate.

    ``launches`` are those of a run; everything else is of one launch.

    ``blocks``, ``threads``: blocks of a launch, threads of a block. ``registers``: 32-bit registers
    of a thread, an estimate. ``shared_bytes``: of a block, which may have ``shared_limit_bytes``.

    ``fp64``, ``fp32``: warp instructions that the floating-point units of that width run.
    ``instructions``: all others. ``tensor64``, ``tensor32``, ``tensor16``, ``tensor8``:
    multiply-adds on tensor cores, of 64 bits, of TF32, of halves and of bytes, as many as a warp
    has lanes counted as one.
    ``lanes``: the share of a warp's lanes that have work, ``of_lanes`` that of an instruction's
    energy that goes by them.

    ``l1_wavefronts``, ``shared_wavefronts``: cycles of an SM's load and store unit.
    ``operand_bytes``: read from L1 or shared memory for arithmetic, what lanes share counted once.
    ``l2_bytes``, ``dram_bytes``: moved between SMs and L2, and between L2 and memory.
    ``torn_bytes``: of ``l2_bytes`` the sectors that a request writes in part only.

    ``late``: how many times longer arithmetic takes in addition, as loads in front of it are waited
    for.

    ``split_bytes``: what memory could move meanwhile, as it takes longer for lines in parts.

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

    ``uneven``: by how much the last blocks have more work than all in the mean, over the mean,
    negative where the first ones have. ``empty``: the share of blocks with nothing to do.
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
    of_lanes: Column
    late: Column
    l1_wavefronts: Column
    shared_wavefronts: Column
    operand_bytes: Column
    l2_bytes: Column
    torn_bytes: Column
    dram_bytes: Column
    split_bytes: Column
    scatter: Column
    chain_cycles: Column
    edge_cycles: Column
    streams: Column
    stream_tiles: Column
    stream_turns: Column
    stream_cycles: Column
    apart_code: Column
    apart_again: Column
    uneven: Column
    empty: Column

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.blocks)

    @property
    def issued(self) -> Column:
        """Warp instructions of any kind."""
        return self.instructions + self.fp64 + self.fp32

    @property
    def memory_bytes(self) -> Column:
        """Bytes that memory could move in the time that it takes."""
        return self.scatter * self.dram_bytes + self.split_bytes

    def beside(self, times: float, launches: float, cycles: Number) -> Demand:
        """Return what launches ask with blocks of others like them: so many times the blocks.

        Each block waits so many ``cycles`` more.
        """
        more = {name: times * getattr(self, name) for name in _OF_BLOCKS}
        more |= {"launches": np.full_like(self.launches, launches)}
        return replace(self, **more, chain_cycles=self.chain_cycles + cycles)


TENSOR_COLUMNS: Mapping[TensorFormat, str] = {
    "fp64": "tensor64", "tf32": "tensor32", "fp16": "tensor16", "int8": "tensor8"
}  # fmt: skip
"""Which column counts the multiply-adds of tensor cores on numbers of a format."""

_OF_BLOCKS = (
    "blocks", "instructions", "fp64", "fp32", *TENSOR_COLUMNS.values(), "l1_wavefronts",
    "shared_wavefronts", "operand_bytes", "l2_bytes", "torn_bytes", "dram_bytes"
)  # fmt: skip
"""What the blocks of a launch ask for together."""


class Sums:
    """What a launch asks for, an entry a candidate; the names are those of ``Demand``.

    ``late`` are instructions, as if there were so many more. ``copied_bytes`` are the bytes that
    copies to shared memory fetch, ``held_bytes`` those that L2 moves for what registers keep.
    """

    instructions: Number = 0.0
    fp64: Number = 0.0
    fp32: Number = 0.0
    late: Number = 0.0
    l1_wavefronts: Number = 0.0
    shared_wavefronts: Number = 0.0
    operand_bytes: Number = 0.0
    l2_bytes: Number = 0.0
    torn_bytes: Number = 0.0
    copied_bytes: Number = 0.0
    held_bytes: Number = 0.0
    chain_cycles: Number = 0.0
    edge_cycles: Number = 0.0
    names = tuple(__annotations__)

    of_lanes = 1.0

    @property
    def issued(self) -> Number:
        """Instructions of any kind."""
        return self.instructions + self.fp64 + self.fp32

    def add_floating(self, statement: StatementFacts, instructions: Number) -> None:
        """Add floating-point instructions in the width of a statement."""
        if is_wide(statement):
            self.fp64 += instructions
        else:
            self.fp32 += instructions

    def demand(self, count: int | tuple[int, ...], **own: Number) -> Demand:
        """Return the sums, and what else is said of so many candidates, else nothing."""
        known = {field.name: getattr(self, field.name, 0.0) for field in fields(Demand)} | own
        zero = np.zeros(count)  # of a box a sum may begin below it
        return Demand(**{name: from_nothing(zero, column) for name, column in known.items()})


class DemandBuilder(Sums):
    """What the warps of a planned launch ask for."""

    def __init__(self, plan: LaunchPlan | PpcgPlan, card: Card, constants: CodeConstants) -> None:
        """Begin at nothing; of a launch those warps count that have work."""
        self._plan, self.card, self.constants = plan, card, constants
        self.warps = card.warps_of(plan.block_threads)
        self.launched_warps = plan.active * self.warps

    # -- requests of a warp -----------------------------------------------------------------------

    def strides(self, access: AccessFacts) -> list[float]:
        """Return the bytes between neighbouring threads along each axis."""
        moving, width = access.moving, access.element_bytes
        return [float(moving.get(name, 0) * width) for name, _ in self._plan.axes]

    def begins(self, access: AccessFacts) -> int:
        """Return the bytes from the beginning of a sector to that of a row of lanes."""
        return 0

    def torn(self, access: AccessFacts) -> Number:
        """Return the sectors that one store of a warp writes in part only."""
        strides, offset = self.strides(access), self.begins(access)
        return torn_sectors(self._plan.lanes, strides, access.element_bytes, offset)

    def bank_request(
        self, access: AccessFacts, sizes: Sequence[Number], width: int, together: int = 1
    ) -> Number:
        """Return the cycles of one request to a tile of such sizes in shared memory.

        A lane asks for so many elements together.
        """
        axes, lanes = [name for name, _ in self._plan.axes], [*map(np.ceil, self._plan.lanes)]
        return box_wavefronts(lanes, axes, access, sizes, width, together)

    # -- sums -------------------------------------------------------------------------------------

    def add_instructions(self, each: Number) -> None:
        """Add instructions of each warp."""
        self.instructions += self.launched_warps * each

    def add_arithmetic(self, statement: StatementFacts, instructions: Number) -> None:
        """Add floating-point instructions of each warp, in the width of a statement."""
        self.add_floating(statement, self.launched_warps * instructions)

    def add_products(self, form: TensorFormat, each: Number, instructions: Number) -> None:
        """Add multiply-adds of tensor cores of each warp, over its lanes, by instructions."""
        column = TENSOR_COLUMNS[form]
        setattr(self, column, getattr(self, column, 0.0) + self.launched_warps * each)
        self.instructions += self.launched_warps * instructions

    def add_global(
        self, requests: Number, waves: Number, sectors: Number, missing: Number = 1.0
    ) -> None:
        """Add requests of each warp through L1, of whose sectors a share comes from L2."""
        total = self.launched_warps * requests
        self.l1_wavefronts += total * waves
        self.l2_bytes += total * sectors * SECTOR_BYTES * missing

    def add_stores(self, requests: Number, waves: Number, sectors: Number, torn: Number) -> None:
        """Add requests of each warp that write ``sectors`` each, ``torn`` of them in part only."""
        self.add_global(requests, waves, sectors)
        self.torn_bytes += self.launched_warps * requests * torn * SECTOR_BYTES

    def add_shared(self, requests: Number, waves: Number) -> None:
        """Add requests of each warp to shared memory."""
        self.shared_wavefronts += self.launched_warps * requests * waves

    def add_spills(self, words: Number, times: Number, missing: float) -> None:
        """Add words that registers do not hold: each is stored and loaded so many times.

        Of its lines L1 lacks a share.
        """
        traffic = self.launched_warps * words * times * 2
        self.instructions += traffic
        self.l1_wavefronts += traffic
        self.l2_bytes += traffic * LINE_BYTES * missing

    @property
    def blocks(self) -> Number:
        """Blocks that have work."""
        return self._plan.active

    @property
    def threads(self) -> Number:
        """Threads of a block."""
        return self._plan.block_threads

    @property
    def lanes(self) -> Number:
        """The share of the lanes of its warps that have work."""
        return self.threads / (self.warps * self.card.warp)
