"""Occupancy: the blocks of an SM that run at a time."""

from __future__ import annotations

import numpy as np

from eatss.prediction.card import REGISTER_STEP, SCHEDULERS, Card
from eatss.prediction.demand import Column

BLOCK_SHARED_BYTES = 1024
"""Shared memory that CUDA keeps of each block."""


def resident_blocks(
    threads: Column,
    registers: Column,
    shared_bytes: Column,
    card: Card,
    shared_limit_bytes: Column | float,
) -> Column:
    """Return the blocks of an SM that run at a time, an entry a candidate; 0 cannot launch.

    The least that registers (allocated to a thread by eights; each scheduler has a part of them for
    its warps), threads (by whole warps), shared memory (with 1024 bytes a block that CUDA keeps)
    and the limit of blocks allow [CUDA C++ Programming Guide, technical specifications per compute
    capability]. A block may have ``shared_limit_bytes``.
    """
    warps = np.ceil(threads / card.warp)
    registers = np.ceil(registers / REGISTER_STEP) * REGISTER_STEP
    each = card.registers_per_sm / SCHEDULERS
    by_registers = np.floor(np.floor(each / (registers * card.warp)) * SCHEDULERS / warps)
    by_threads = np.floor(card.threads_per_sm / (warps * card.warp))
    by_shared = np.floor(card.shared_per_sm_bytes / (shared_bytes + BLOCK_SHARED_BYTES))
    least = np.minimum(np.minimum(by_registers, by_threads), by_shared)
    least = np.where(shared_bytes > shared_limit_bytes, 0.0, least)
    least = np.where(threads > card.threads_per_block, 0.0, least)
    return np.clip(least, 0, card.blocks_per_sm)
