"""What PPCG's code for a kernel asks of a card, as a function of tiles, blocks and options.

PPCG gives each block a tile, or several in turn where the grid is smaller; its threads deal out
the points of the tile one by one, cyclically. Loops that are not mapped run inside each thread.
Groups of references are private, shared or global (:mod:`eatss.prediction.ppcg_groups`). Where a
private array has more than one element a thread, PPCG unrolls the points of a thread inside the
serial loops; else the points are loops around them.
"""

from __future__ import annotations

import numpy as np

from eatss.prediction.access import LINE_BYTES
from eatss.prediction.card import Card
from eatss.prediction.demand import Demand
from eatss.prediction.habits import Habits
from eatss.prediction.ppcg_caches import Caches
from eatss.prediction.ppcg_copies import add_copies, add_spills
from eatss.prediction.ppcg_groups import PpcgKernel
from eatss.prediction.ppcg_memory import Memory
from eatss.prediction.ppcg_setting import setting_of
from eatss.prediction.ppcg_shapes import PpcgCandidates
from eatss.prediction.ppcg_staging import shared_groups
from eatss.prediction.ppcg_statements import add_statements
from eatss.prediction.tally import Tally

__all__ = ["PpcgCandidates", "ppcg_demand", "shared_groups"]


def ppcg_demand(
    kernel: PpcgKernel, candidates: PpcgCandidates, card: Card, habits: Habits
) -> Demand:
    """Return what each candidate's code asks of the card in one launch, an entry a candidate.

    Args:
        kernel: of :func:`~eatss.prediction.ppcg_groups.ppcg_kernel`.
        candidates: tiles, blocks and options.
        card: what decides how many blocks run at a time and what caches hold.
        habits: instructions and cycles of the code.
    """
    of = setting_of(kernel, candidates, card, habits)
    caches, memory, tally = Caches(of), Memory(of), Tally(of.launched_warps)
    add_copies(of, caches, memory, tally)
    add_statements(of, caches, memory, tally)
    add_spills(of, tally)
    tally.add_instructions(habits.start_instructions + of.shape.turns * habits.turn_instructions)
    tally.chain_cycles += habits.start_cycles
    return Demand(
        launches=np.full(len(of), float(kernel.facts.work.launches or 1)),
        blocks=of.shape.blocks,
        threads=of.shape.threads,
        registers=of.registers,
        shared_bytes=of.shared_bytes,
        shared_limit_bytes=np.full(len(of.shared_bytes), float(of.card.shared_per_block_bytes)),
        instructions=tally.instructions,
        fp64=tally.fp64,
        fp32=tally.fp32,
        lanes=of.shape.threads / (of.warps * card.warp),
        l1_wavefronts=tally.l1_wavefronts,
        shared_wavefronts=tally.shared_wavefronts,
        operand_bytes=LINE_BYTES * tally.shared_wavefronts,  # as if every cycle moved all it can
        l2_bytes=tally.l2_bytes,
        torn_bytes=tally.torn_bytes,
        dram_bytes=memory.moved_bytes(tally.l2_bytes),
        scatter=memory.scatter(),
        chain_cycles=tally.chain_cycles,
    )
