"""What a launch of generated code asks of a card, as a function of threads, points and tiles.

A thread computes its points of a tile unrolled. What a point adds to over serial loops stays in
registers. What threads of a block share may be staged in shared memory, tile by tile of the serial
loops. Tiles that lie inside their loops run without tests, with many loads under way at a time.
The structure (:mod:`eatss.analysis.structure`) is the generator's own description.
:class:`CudaModel` is asked for one kernel, one card and many layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, mapped
from eatss.frozen import frozen
from eatss.gpu.profile import GpuProfile
from eatss.prediction.card import Card, card_of
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.cuda_constants import CudaConstants
from eatss.prediction.cuda_copies import add_copies, add_held, add_phases, add_spills, add_sums
from eatss.prediction.cuda_launch import CudaLaunch, launch_of
from eatss.prediction.cuda_memory import moved_bytes, scatter
from eatss.prediction.cuda_products import loops_apart
from eatss.prediction.cuda_resources import fits, resources_of
from eatss.prediction.cuda_statements import add_statements
from eatss.prediction.cuda_streams import add_parts, stream_of
from eatss.prediction.demand import Column, Demand
from eatss.prediction.demand_builder import DemandBuilder
from eatss.prediction.expected import Prediction
from eatss.prediction.model import prediction_at
from eatss.prediction.terms import Predicted, predict


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


@dataclass(frozen=True, slots=True)
class CudaPrediction:
    """What is expected of layouts of one structure.

    ``launches`` are demand and prediction of each launch; ``total`` is their sum. ``fits`` says
    which layouts keep their sums in registers.
    """

    launches: tuple[tuple[Demand, Predicted], ...]
    total: Predicted
    fits: npt.NDArray[np.bool_]

    @property
    def shared_bytes(self) -> Column:
        """Shared memory of the largest block, in bytes."""
        return np.asarray(np.maximum.reduce([demand.shared_bytes for demand, _ in self.launches]))

    def at(self, row: int) -> Prediction | None:
        """Return the prediction of one layout, ``None`` where it cannot launch.

        Blocks, threads and registers are those of the launch that takes longest.
        """
        demand, _ = max(self.launches, key=lambda launch: float(launch[1].time_s[row]))
        return prediction_at(demand, self.total, row)


@frozen
class CudaModel:
    """What generated code for one kernel does on one card."""

    facts: KernelFacts
    card: Card
    constants: CodeConstants
    code: CudaConstants

    @classmethod
    def of(cls, facts: KernelFacts, profile: GpuProfile) -> CudaModel:
        """Return the model of a kernel on a card."""
        code = CudaConstants()
        constants = replace(
            CodeConstants(),
            sharpness=code.sharpness,
            launch_wait=code.launch_wait,
        )
        return cls(facts=facts, card=card_of(profile), constants=constants, code=code)

    def columns(self, layout: Candidates) -> CudaPrediction:
        """Return what is expected of layouts under one structure, an entry each."""
        own = layout.map(lambda column: column.astype(np.float64))
        asked = cuda_demands(self.facts, own, self.card, self.constants, self.code)
        launches = tuple(
            (one.demand, predict(one.demand, self.card, self.constants)) for one in asked
        )
        return CudaPrediction(
            launches=launches,
            total=_sum([expected for _, expected in launches]),
            fits=np.logical_and.reduce([one.fits for one in asked]),
        )


def _sum(parts: Sequence[Predicted]) -> Predicted:
    """Return what launches take one after the other."""
    resident = np.minimum.reduce([part.resident_blocks for part in parts])
    total = mapped(lambda *columns: np.asarray(sum(columns)), *parts)
    return replace(total, resident_blocks=resident)
