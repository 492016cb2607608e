"""What a launch of generated code asks of a card, as a function of threads, points and tiles.

A launch is planned (:mod:`eatss.plan.launch`), and each entry of the plan has its price: copies in
``stages``, statements in ``computes`` and ``contracts``, what registers keep in ``sums``.
:class:`CudaModel` is asked for one kernel, one card and many layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, mapped
from eatss.base.frozen import frozen
from eatss.cards.profile import GpuProfile
from eatss.cost.card import SCHEDULERS, Card, card_of
from eatss.cost.computes import add_computes, loops_apart
from eatss.cost.constants import CodeConstants, CudaConstants
from eatss.cost.cuda_code import CudaCode
from eatss.cost.demand import TENSOR_COLUMNS, Column, Demand
from eatss.cost.expected import Prediction
from eatss.cost.memory import moved_bytes, scatter
from eatss.cost.stages import add_stages
from eatss.cost.sums import add_held, add_parts, add_spread
from eatss.cost.terms import Predicted, predict, prediction_at
from eatss.plan.launch import LaunchPlan, plan
from eatss.plan.numbers import Flag


def demand_of(
    launch: LaunchPlan, card: Card, constants: CodeConstants, code: CudaConstants
) -> Demand:
    """Return what a launch asks of the card."""
    of = CudaCode(launch, card, constants, code)
    of.chain_cycles += code.start_cycles
    add_stages(of)
    add_computes(of)
    before = of.l2_bytes + 0.0
    add_held(of)
    add_spread(of)
    stream_cycles = add_parts(of)
    of.held_bytes = of.l2_bytes - before
    if np.any(of.spilled_words):
        main = max(launch.computes, key=lambda one: one.facts.instances or 0)
        of.add_spills(of.spilled_words, main.steps(main.serial), code.spill_missing)
    _add_phases(of)
    of.add_instructions(code.start_instructions)
    apart_code, apart_again = loops_apart(launch)
    each = np.ceil(launch.stream.blocks / card.sms)
    return of.demand(
        len(launch),
        launches=launch.launches,
        registers=of.registers,
        shared_bytes=of.shared_bytes,
        shared_limit_bytes=card.shared_optin_bytes,
        late=of.late / np.maximum(1.0, of.fp64 + of.fp32),
        dram_bytes=moved_bytes(of),
        scatter=scatter(of),
        streams=each,
        stream_tiles=each * launch.stream.tiles,
        stream_turns=launch.stream.turns,
        stream_cycles=stream_cycles,
        apart_code=apart_code,
        apart_again=apart_again,
    )


def _add_phases(of: CudaCode) -> None:
    """Add what a block takes by itself where barriers keep its warps together.

    Copying and computing are one after the other then; other blocks of the SM fill the gaps. Where
    copies run ahead there are none but before the first tile is there, and while results are
    written. It comes last: it takes what the others have added up.
    """
    card, plan = of.card, of.plan
    on, ahead = plan.any_staged, plan.layout.boxes > 1
    tensor = {form: getattr(of, name, 0.0) for form, name in TENSOR_COLUMNS.items()}
    busy = busy_cycles(of, card)
    for form, own in tensor.items():
        busy = np.maximum(busy, own * card.warp / card.tensor_rate(form))
    copied = of.copied_bytes / of.l2_bytes_cycle
    of.chain_cycles += on * ~ahead * (busy + copied) / plan.active
    held = of.held_bytes / of.l2_bytes_cycle / plan.active
    of.edge_cycles += on * ahead * (of.code.start_cycles + of.far_cycles + held)


def busy_cycles(part: CudaCode | Demand, card: Card) -> Column:
    """Return the cycles of an SM in which units that are no tensor cores are busy with a launch."""
    found: Column = np.maximum(
        np.maximum(
            part.instructions / SCHEDULERS,
            part.fp64 * card.warp / card.fp64_per_cycle,
        ),
        np.maximum(
            part.fp32 * card.warp / card.fp32_per_cycle,
            part.l1_wavefronts + part.shared_wavefronts,
        ),
    )
    return found


@dataclass(frozen=True, slots=True)
class CudaPrediction:
    """What is expected of layouts of one structure.

    ``launches`` are demand and prediction of each launch; ``total`` is their sum. ``fits`` says
    which layouts keep their sums in registers.
    """

    launches: tuple[tuple[Demand, Predicted], ...]
    total: Predicted
    fits: Flag

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
        constants = replace(CodeConstants(), sharpness=code.sharpness, launch_wait=code.launch_wait)
        return cls(facts=facts, card=card_of(profile), constants=constants, code=code)

    def demand(self, launch: LaunchPlan) -> Demand:
        """Return what a launch asks of the card."""
        return demand_of(launch, self.card, self.constants, self.code)

    def columns(self, layout: Candidates) -> CudaPrediction:
        """Return what is expected of layouts under one structure, an entry each."""
        own = layout.map(lambda column: column.astype(np.float64))
        plans = plan(self.facts, own, self.card)
        demands = map(self.demand, plans)
        launches = tuple((one, predict(one, self.card, self.constants)) for one in demands)
        fits = np.ones(len(own), dtype=bool)
        for launch in plans:
            fits = fits & launch.fits
        return CudaPrediction(
            launches=launches, total=_sum([expected for _, expected in launches]), fits=fits
        )


def _sum(parts: Sequence[Predicted]) -> Predicted:
    """Return what launches take one after the other."""
    resident = np.minimum.reduce([part.resident_blocks for part in parts])
    total = mapped(lambda *columns: np.asarray(sum(columns)), *parts)
    return replace(total, resident_blocks=resident)
