"""The price of a loop on the host that one block runs: each launch is a phase on one SM.

A phase is counted as a launch on a card of one SM, whose threads are those of the block. It begins
behind a barrier, where a launch would have to be waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, LoopBlock
from eatss.cards.profile import GpuProfile
from eatss.cost.card import Card, card_of
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction
from eatss.cost.terms import Predicted
from eatss.plan.loop_blocks import LoopRun, waves_of
from eatss.plan.numbers import Number

_Launched = TypeVar("_Launched", Prediction, Predicted)

_SM_BYTES_CYCLE = 64.0
"""Bytes of a cycle that come to one SM from L2 at most [vendor]."""

_MOST_TOGETHER = 16
"""Blocks of tiles on an SM at a time; assumed."""

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


def replayed(model: CudaModel, launched: _Launched, launches: Number) -> _Launched:
    """Return what is expected of launches that are replayed as a graph, as those of a loop are.

    One waits for another as long as an empty kernel of a graph takes. Energy is less by as much as
    time: most of it is constant power.
    """
    spared_s = (model.constants.launch_wait - 1.0) * model.card.launch_s
    share = 1.0 - launches * spared_s / launched.time_s
    time_s, energy_j = share * launched.time_s, share * launched.energy_j
    return replace(launched, time_s=time_s, energy_j=energy_j)


def step_of_tile_s(facts: KernelFacts, layouts: Candidates, profile: GpuProfile) -> Sequence[float]:
    """Return the seconds of a step of a tile, of each layout.

    Args:
        facts: the kernel that a loop over wavefronts launches.
        layouts: their blocks are what a tile has of a step.
        profile: the card.
    """
    model = in_phases(facts, profile, prod(layouts.threads.values()))
    found = np.zeros(len(layouts))
    for demand, expected in model.columns(layouts).launches:
        found += expected.time_s / (demand.launches * np.maximum(1.0, demand.blocks))
    return [float(one) for one in found]


def tiles_prediction(
    run: LoopRun,
    block: LoopBlock,
    step_s: float,
    launched: Prediction,
    profile: GpuProfile,
) -> Prediction:
    """Return what is expected of a loop over wavefronts in tiles.

    A launch takes as long as a tile does, one step after another, times the rounds of its blocks.
    Of energy, what launches take beside constant power is what tiles take.

    Args:
        run: the loop.
        block: tiles and threads.
        step_s: what a step takes.
        launched: what is expected of the launches without tiles.
        profile: the card.
    """
    card, tiles, waves = card_of(profile), block.tiles, waves_of(run.spans, block.tiles)
    blocks = prod(-(-span // tile) for span, tile in zip(run.spans, tiles, strict=True)) / waves
    start_s = _PHASE_CYCLES / card.clock_hz + card.launch_s
    together = card.threads_per_sm // max(block.threads, card.threads_per_sm // _MOST_TOGETHER)
    rounds = -(-blocks // (card.sms * max(1, together)))
    time_s = waves * (start_s + tiles[0] * step_s * rounds)
    constant_w = card.prices.constant_w
    dynamic_j = max(0.0, launched.energy_j - constant_w * launched.time_s)
    return replace(
        launched,
        time_s=time_s,
        energy_j=constant_w * time_s + dynamic_j,
        launches=waves,
        blocks=int(-(-blocks // 1)),
        threads=block.threads,
        shared_bytes=0,
    )
