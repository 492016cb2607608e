"""The sums of what a launch asks for, as copies and statements add to them."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import numpy as np

from eatss.analysis.structure import TensorFormat
from eatss.analysis.work import StatementFacts
from eatss.prediction.access import LINE_BYTES, SECTOR_BYTES
from eatss.prediction.arithmetic import is_wide
from eatss.prediction.demand import TENSOR_COLUMNS, Column, Demand


class DemandBuilder:
    """Sums over a launch, an entry a candidate; the names are those of ``Demand``.

    ``late`` are instructions, as if there were so many more. ``copied_bytes`` are the bytes that
    copies to shared memory fetch, ``held_bytes`` those that L2 moves for what registers keep.
    """

    def __init__(self, launched_warps: Column) -> None:
        """Begin at nothing, with the warps of a launch."""
        self._warps = launched_warps
        self._zeros = zeros = partial(np.zeros, len(launched_warps))
        self.instructions = zeros()
        self.fp64 = zeros()
        self.fp32 = zeros()
        self.late = zeros()
        self.tensor = {form: zeros() for form in TENSOR_COLUMNS}
        self.l1_wavefronts = zeros()
        self.shared_wavefronts = zeros()
        self.operand_bytes = zeros()
        self.l2_bytes = zeros()
        self.torn_bytes = zeros()
        self.copied_bytes = zeros()
        self.held_bytes = zeros()
        self.chain_cycles = zeros()
        self.edge_cycles = zeros()

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

    def add_spills(self, words: Column, times: Column | float, missing: float) -> None:
        """Add words that registers do not hold: each is stored and loaded so many times.

        Of its lines L1 lacks a share.
        """
        traffic = self._warps * words * times * 2
        self.instructions += traffic
        self.l1_wavefronts += traffic
        self.l2_bytes += traffic * LINE_BYTES * missing

    def demand(self, **own: Column) -> Demand:
        """Return the sums, and what else is said of the launch; what nobody says is nothing."""
        known = {field.name: getattr(self, field.name, self._zeros()) for field in fields(Demand)}
        known |= {TENSOR_COLUMNS[form]: column for form, column in self.tensor.items()}
        return Demand(**{**known, **own})

    def add_shared(self, requests: Column, waves: Column) -> None:
        """Add requests of each warp to shared memory."""
        self.shared_wavefronts += self._warps * requests * waves
