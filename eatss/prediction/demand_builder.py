"""The sums of what a launch asks for, as copies and statements add to them."""

from __future__ import annotations

import numpy as np

from eatss.analysis.structure import TensorFormat
from eatss.analysis.work import StatementFacts
from eatss.prediction.access import SECTOR_BYTES
from eatss.prediction.arithmetic import is_wide
from eatss.prediction.demand import TENSOR_COLUMNS, Column


class DemandBuilder:
    """Sums over a launch, an entry a candidate; the names are those of ``Demand``.

    ``late`` are instructions, as if there were so many more. ``copied_bytes`` are the bytes that
    copies to shared memory fetch, ``held_bytes`` those that L2 moves for what registers keep.
    """

    def __init__(self, launched_warps: Column) -> None:
        """Begin at nothing, with the warps of a launch."""
        self._warps = launched_warps
        zero = np.zeros(len(launched_warps))
        self.instructions = zero.copy()
        self.fp64 = zero.copy()
        self.fp32 = zero.copy()
        self.late = zero.copy()
        self.tensor = {form: zero.copy() for form in TENSOR_COLUMNS}
        self.l1_wavefronts = zero.copy()
        self.shared_wavefronts = zero.copy()
        self.operand_bytes = zero.copy()
        self.l2_bytes = zero.copy()
        self.torn_bytes = zero.copy()
        self.copied_bytes = zero.copy()
        self.held_bytes = zero.copy()
        self.chain_cycles = zero.copy()
        self.edge_cycles = zero.copy()

    def add_instructions(self, each: Column | float) -> None:
        """Add instructions of each warp."""
        self.instructions += self._warps * each

    def add_arithmetic(self, statement: StatementFacts, instructions: Column) -> None:
        """Add floating-point instructions of each warp, in the width of a statement."""
        total = self._warps * instructions
        if is_wide(statement):
            self.fp64 += total
        else:
            self.fp32 += total
        self.instructions += total

    def add_products(self, form: TensorFormat, each: Column, instructions: Column) -> None:
        """Add multiply-adds of tensor cores of each warp, over its lanes, by instructions."""
        self.tensor[form] += self._warps * each
        self.instructions += self._warps * instructions

    def add_global(
        self, requests: Column, waves: Column, sectors: Column, missing: Column | float = 1.0
    ) -> None:
        """Add requests of each warp through L1, of whose sectors a share comes from L2."""
        total = self._warps * requests
        self.l1_wavefronts += total * waves
        self.l2_bytes += total * sectors * SECTOR_BYTES * missing

    def add_stores(self, requests: Column, waves: Column, sectors: Column, torn: Column) -> None:
        """Add requests of each warp that write ``sectors`` each, ``torn`` of them in part only."""
        self.add_global(requests, waves, sectors)
        self.torn_bytes += self._warps * requests * torn * SECTOR_BYTES

    def add_shared(self, requests: Column, waves: Column) -> None:
        """Add requests of each warp to shared memory."""
        self.shared_wavefronts += self._warps * requests * waves
