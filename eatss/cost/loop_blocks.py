"""The price of a loop on the host that one block runs: each launch is a phase on one SM.

A phase is counted as a launch on a card of one SM, whose threads are those of the block. It begins
behind a barrier, where a launch would have to be waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates
from eatss.cards.profile import GpuProfile
from eatss.cost.card import Card
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction
from eatss.plan.loop_blocks import waves_of

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


def tiles_prediction(
    facts: KernelFacts,
    layout: Candidates,
    spans: Sequence[int],
    tiles: Sequence[int],
    launched: Prediction,
    profile: GpuProfile,
) -> Prediction:
    """Return what is expected of a loop over wavefronts in tiles.

    A launch takes as long as a tile does, one step after another, times the rounds of its blocks.

    Args:
        facts: the kernel that the loop launches.
        layout: the only candidate; its blocks are what a tile has of a step.
        spans: how many values tiles are cut along functions of, the loop's first.
        tiles: how many of them a tile has.
        launched: what is expected of the launches without tiles.
        profile: the card.
    """
    threads = prod(tiles[1:])
    model, card = in_phases(facts, profile, threads), CudaModel.of(facts, profile).card
    (demand, expected), *others = model.columns(layout).launches
    each_s = float(expected.time_s[0] / (demand.launches[0] * max(1.0, float(demand.blocks[0]))))
    each_s += sum(float(own.time_s[0] / one.launches[0]) for one, own in others)
    waves = waves_of(spans, tiles)
    blocks = prod(-(-span // tile) for span, tile in zip(spans, tiles, strict=True)) / waves
    at_a_time = card.sms * max(1, card.threads_per_sm // max(threads, card.threads_per_sm // 16))
    rounds = -(-blocks // at_a_time)
    start_s = model.code.start_cycles / card.clock_hz + card.launch_s
    time_s = waves * (start_s + tiles[0] * each_s * rounds)
    constant_w = card.prices.constant_w
    dynamic_j = max(0.0, launched.energy_j - constant_w * launched.time_s)
    return replace(
        launched,
        time_s=time_s,
        energy_j=constant_w * time_s + dynamic_j,
        launches=waves,
        blocks=int(-(-blocks // 1)),
        threads=threads,
    )
