"""The price of a loop on the host that one block runs: each launch is a phase on one SM.

A phase is counted as a launch on a card of one SM, whose threads are those of the block. It begins
behind a barrier, where a launch would have to be waited for.
"""

from __future__ import annotations

from dataclasses import replace

from eatss.analysis.facts import KernelFacts
from eatss.cards.profile import GpuProfile
from eatss.cost.card import Card
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction

_SM_BYTES_CYCLE = 64.0
"""Bytes of a cycle that come to one SM from L2 at most [vendor]."""

_PHASE_CYCLES = 90.0
"""Cycles of a phase before its first load, its barrier among them; assumed."""


def in_phases(facts: KernelFacts, profile: GpuProfile, threads: int) -> CudaModel:
    """Return the model of a kernel as a phase of a block with so many threads."""
    model = CudaModel.of(facts, profile)
    return replace(
        model,
        card=_one_sm(model.card, threads),
        code=replace(model.code, start_cycles=_PHASE_CYCLES, start_instructions=0.0),
    )


def _one_sm(card: Card, threads: int) -> Card:
    most = _SM_BYTES_CYCLE * card.clock_hz
    return replace(
        card,
        sms=1,
        threads_per_sm=threads,
        launch_s=0.0,
        l2_bytes_s=min(card.l2_bytes_s, most),
        l2_torn_bytes_s=min(card.l2_torn_bytes_s, most),
        dram_bytes_s=min(card.dram_bytes_s, most),
    )


def replayed_s(facts: KernelFacts, profile: GpuProfile, launched: Prediction) -> float:
    """Return the seconds of launches that are replayed as a graph, as those of a loop are.

    One waits for another as long as an empty kernel of a graph takes.
    """
    model = CudaModel.of(facts, profile)
    spared = (model.constants.launch_wait - 1.0) * model.card.launch_s
    return launched.time_s - launched.launches * spared
