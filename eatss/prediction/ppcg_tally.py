"""The sums of what PPCG's code asks for, as copies and statements add to them."""

from __future__ import annotations

import numpy as np

from eatss.prediction.access import SECTOR_BYTES
from eatss.prediction.demand import Column
from eatss.prediction.ppcg_setting import Setting


class Tally:
    """Sums over a launch, an entry a candidate; the names are those of ``Demand``."""

    def __init__(self, setting: Setting) -> None:
        """Begin at nothing."""
        self._warps = setting.launched_warps
        zero = np.zeros(len(setting))
        self.instructions = zero.copy()
        self.fp64 = zero.copy()
        self.fp32 = zero.copy()
        self.l1_wavefronts = zero.copy()
        self.shared_wavefronts = zero.copy()
        self.l2_bytes = zero.copy()
        self.chain_cycles = zero.copy()

    def add_instructions(self, each: Column | float) -> None:
        """Add instructions of each warp."""
        self.instructions += self._warps * each

    def add_global(
        self, requests: Column, waves: Column, sectors: Column, missing: Column | float
    ) -> None:
        """Add requests of each warp through L1, of whose sectors a share comes from L2."""
        total = self._warps * requests
        self.l1_wavefronts += total * waves
        self.l2_bytes += total * sectors * SECTOR_BYTES * missing

    def add_shared(self, requests: Column, waves: Column) -> None:
        """Add requests of each warp to shared memory."""
        self.shared_wavefronts += self._warps * requests * waves
