"""What a launch of generated code asks of a card, as a function of threads, points and tiles.

A thread computes its points of a tile unrolled. What a point adds to over serial loops stays in
registers. What threads of a block share may be staged in shared memory, tile by tile of the serial
loops. Tiles that lie inside their loops run without tests, with many loads under way at a time.
The structure (:mod:`eatss.analysis.structure`) is the generator's own description.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.structure import Structure
from eatss.prediction.card import Card
from eatss.prediction.cuda_copies import add_copies, add_held, add_phases, add_spills, add_sums
from eatss.prediction.cuda_habits import CudaHabits
from eatss.prediction.cuda_launch import CudaLaunch, launch_of
from eatss.prediction.cuda_memory import moved_bytes, scatter
from eatss.prediction.cuda_setting import fits, setting_of
from eatss.prediction.cuda_shape import CudaCandidates
from eatss.prediction.cuda_statements import add_statements
from eatss.prediction.demand import Demand
from eatss.prediction.habits import Habits
from eatss.prediction.tally import Tally


@dataclass(frozen=True, slots=True)
class LaunchDemand:
    """What one launch asks of the card; ``fits`` says where its sums fit registers."""

    demand: Demand
    fits: npt.NDArray[np.bool_]


def cuda_demands(
    facts: KernelFacts,
    structure: Structure,
    candidates: CudaCandidates,
    card: Card,
    habits: Habits,
    code: CudaHabits,
) -> tuple[LaunchDemand, ...]:
    """Return what each launch of a structure asks of the card, an entry a candidate.

    Args:
        facts: the kernel.
        structure: one of its cuts.
        candidates: threads, tiles and places.
        card: what decides how many blocks run at a time and what caches hold.
        habits: latencies of chips.
        code: instructions and cycles of generated code.
    """
    launches = (
        launch_of(facts, structure, cut, candidates, card, habits, code)
        for cut in structure.launches
        if cut.statements
    )
    return tuple(LaunchDemand(_demand(of), fits(of)) for of in launches)


def _demand(of: CudaLaunch) -> Demand:
    setting, tally = setting_of(of), Tally(of.launched_warps)
    tally.chain_cycles += of.code.start_cycles
    add_copies(setting, tally)
    add_statements(setting, tally)
    add_held(of, tally)
    add_sums(of, tally)
    add_spills(setting, tally)
    add_phases(of, tally)
    tally.add_instructions(of.code.start_instructions)
    return Demand(
        launches=of.ones * of.launches,
        blocks=of.active,
        threads=of.shape.block_threads,
        registers=setting.registers,
        shared_bytes=setting.shared_bytes,
        shared_limit_bytes=of.ones * of.card.shared_optin_bytes,
        instructions=tally.instructions,
        fp64=tally.fp64,
        fp32=tally.fp32,
        lanes=of.shape.block_threads / (of.warps * of.card.warp),
        l1_wavefronts=tally.l1_wavefronts,
        shared_wavefronts=tally.shared_wavefronts,
        operand_bytes=tally.operand_bytes,
        l2_bytes=tally.l2_bytes,
        torn_bytes=tally.torn_bytes,
        dram_bytes=moved_bytes(setting, tally.l2_bytes),
        scatter=scatter(of),
        chain_cycles=tally.chain_cycles,
    )
