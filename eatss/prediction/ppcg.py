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
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.demand import TENSOR_COLUMNS, Demand
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.ppcg_caches import Caches
from eatss.prediction.ppcg_copies import add_copies, add_spills
from eatss.prediction.ppcg_groups import PpcgKernel
from eatss.prediction.ppcg_memory import Memory
from eatss.prediction.ppcg_promotion import shared_groups
from eatss.prediction.ppcg_resources import resources_of
from eatss.prediction.ppcg_shapes import PpcgCandidates
from eatss.prediction.ppcg_statements import add_statements

__all__ = ["PpcgCandidates", "ppcg_demand", "shared_groups"]


def ppcg_demand(
    kernel: PpcgKernel, candidates: PpcgCandidates, card: Card, constants: CodeConstants
) -> Demand:
    """Return what each candidate's code asks of the card in one launch, an entry a candidate.

    Args:
        kernel: of :func:`~eatss.prediction.ppcg_groups.ppcg_kernel`.
        candidates: tiles, blocks and options.
        card: what decides how many blocks run at a time and what caches hold.
        constants: instructions and cycles of the code.
    """
    of = resources_of(kernel, candidates, card, constants)
    caches, memory, demand = Caches(of), Memory(of), DemandBuilder(of.launched_warps)
    add_copies(of, caches, memory, demand)
    add_statements(of, caches, memory, demand)
    add_spills(of, demand)
    demand.add_instructions(
        constants.start_instructions + of.shape.turns * constants.turn_instructions
    )
    demand.chain_cycles += constants.start_cycles
    return Demand(
        launches=np.full(len(of), float(kernel.facts.work.launches or 1)),
        blocks=of.shape.blocks,
        threads=of.shape.threads,
        registers=of.registers,
        shared_bytes=of.shared_bytes,
        shared_limit_bytes=np.full(len(of.shared_bytes), float(of.card.shared_per_block_bytes)),
        instructions=demand.instructions,
        fp64=demand.fp64,
        fp32=demand.fp32,
        **dict.fromkeys(TENSOR_COLUMNS.values(), np.zeros(len(of))),
        lanes=of.shape.threads / (of.warps * card.warp),
        late=np.zeros(len(of)),
        l1_wavefronts=demand.l1_wavefronts,
        shared_wavefronts=demand.shared_wavefronts,
        operand_bytes=LINE_BYTES * demand.shared_wavefronts,  # as if every cycle moved all it can
        l2_bytes=demand.l2_bytes,
        torn_bytes=demand.torn_bytes,
        dram_bytes=memory.moved_bytes(demand.l2_bytes),
        scatter=memory.scatter(),
        chain_cycles=demand.chain_cycles,
        edge_cycles=np.zeros(len(of)),
        streams=np.zeros(len(of)),
        stream_tiles=np.zeros(len(of)),
        stream_turns=np.zeros(len(of)),
        stream_cycles=np.zeros(len(of)),
        apart_code=np.zeros(len(of)),
        apart_again=np.zeros(len(of)),
    )
