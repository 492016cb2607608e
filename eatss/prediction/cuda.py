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
from eatss.analysis.layout import Candidates
from eatss.prediction.card import Card
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.cuda_constants import CudaConstants
from eatss.prediction.cuda_copies import add_copies, add_held, add_phases, add_spills, add_sums
from eatss.prediction.cuda_fetch import loops_apart
from eatss.prediction.cuda_launch import CudaLaunch, launch_of
from eatss.prediction.cuda_memory import moved_bytes, scatter
from eatss.prediction.cuda_resources import fits, resources_of
from eatss.prediction.cuda_statements import add_statements
from eatss.prediction.cuda_streams import add_parts, stream_of
from eatss.prediction.demand import Demand
from eatss.prediction.demand_builder import DemandBuilder


@dataclass(frozen=True, slots=True)
class LaunchDemand:
    """What one launch asks of the card; ``fits`` says where its sums fit registers."""

    demand: Demand
    fits: npt.NDArray[np.bool_]


def cuda_demands(
    facts: KernelFacts,
    layout: Candidates,
    card: Card,
    constants: CodeConstants,
    code: CudaConstants,
) -> tuple[LaunchDemand, ...]:
    """Return what each launch of a structure asks of the card, an entry a layout.

    Args:
        facts: the kernel.
        layout: layouts of it under one structure.
        card: what decides how many blocks run at a time and what caches hold.
        constants: latencies of chips.
        code: instructions and cycles of generated code.
    """
    launches = (
        launch_of(facts, cut, layout, card, constants, code)
        for cut in layout.structure.launches
        if cut.statements
    )
    return tuple(LaunchDemand(demand_of(of), fits(of)) for of in launches)


def demand_of(of: CudaLaunch) -> Demand:
    """Return what a launch asks of the card."""
    setting, demand = resources_of(of), DemandBuilder(of.launched_warps)
    demand.chain_cycles += of.code.start_cycles
    add_copies(setting, demand)
    add_statements(setting, demand)
    before = demand.l2_bytes.copy()
    add_held(of, demand)
    add_sums(of, demand)
    stream = stream_of(of)
    stream_cycles = add_parts(of, stream, demand)
    apart = loops_apart(of)
    demand.held_bytes += demand.l2_bytes - before
    add_spills(setting, demand)
    add_phases(of, demand)
    demand.add_instructions(of.code.start_instructions)
    return demand.demand(
        launches=of.ones * of.launches,
        blocks=of.active,
        threads=of.shape.block_threads,
        registers=setting.registers,
        shared_bytes=setting.shared_bytes,
        shared_limit_bytes=of.ones * of.card.shared_optin_bytes,
        lanes=of.shape.block_threads / (of.warps * of.card.warp),
        late=demand.late / np.maximum(1.0, demand.fp64 + demand.fp32),
        dram_bytes=moved_bytes(setting, demand.l2_bytes),
        scatter=scatter(of),
        streams=stream.each,
        stream_tiles=stream.tiles,
        stream_turns=stream.turns,
        stream_cycles=stream_cycles,
        apart_code=apart.code,
        apart_again=apart.again,
    )
