"""Time and energy of a launch, term by term."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eatss.prediction.card import REGISTER_STEP, SCHEDULERS, Card
from eatss.prediction.demand import Column, Demand
from eatss.prediction.habits import Habits

STATIC_LIMIT_W = 700.0
"""Power limit of the card whose static power was fitted; other cards are given the same share."""

BLOCK_SHARED_BYTES = 1024
"""Shared memory that CUDA keeps of each block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What the model expects of one run, an entry a candidate; times in s, energies in J.

    ``terms_s``: what each part of the card would take alone, over all launches. ``terms_j``: where
    the energy goes; its entries add up to ``energy_j``. A candidate that cannot launch has infinite
    time and energy and 0 ``resident_blocks``, the blocks of an SM that run at a time.
    """

    time_s: Column
    energy_j: Column
    terms_s: dict[str, Column]
    terms_j: dict[str, Column]
    resident_blocks: Column


def resident_blocks(
    threads: Column,
    registers: Column,
    shared_bytes: Column,
    card: Card,
    shared_limit_bytes: Column | float,
) -> Column:
    """Return the blocks of an SM that run at a time, an entry a candidate; 0 cannot launch.

    The least that registers (allocated to a thread by eights), threads (by whole warps), shared
    memory (with 1024 bytes a block that CUDA keeps) and the limit of blocks allow [CUDA C++
    Programming Guide, technical specifications per compute capability]. A block
    may have ``shared_limit_bytes``.
    """
    warps = np.ceil(threads / card.warp)
    registers = np.ceil(registers / REGISTER_STEP) * REGISTER_STEP
    by_registers = np.floor(card.registers_per_sm / (registers * warps * card.warp))
    by_threads = np.floor(card.threads_per_sm / (warps * card.warp))
    by_shared = np.floor(card.shared_per_sm_bytes / (shared_bytes + BLOCK_SHARED_BYTES))
    least = np.minimum(np.minimum(by_registers, by_threads), by_shared)
    least = np.where(shared_bytes > shared_limit_bytes, 0.0, least)
    least = np.where(threads > card.threads_per_block, 0.0, least)
    return np.clip(least, 0, card.blocks_per_sm)


def predict(demand: Demand, card: Card, habits: Habits) -> Predicted:
    """Return time and energy of a run, an entry a candidate.

    Terms of time are joined by a p-norm (``sharpness``), to which a launch adds its overhead.
    Energy is the sum of what operations and bytes cost and of static power × time [Choi and
    Vuduc, *A roofline model of energy*]. Time is no shorter than the power limit allows. The
    formulas stand in docs/model.md.
    """
    resident = resident_blocks(
        demand.threads, demand.registers, demand.shared_bytes, card, demand.shared_limit_bytes
    )
    cycles = card.clock_hz
    # an SM with one block more than the mean sets the time
    share = np.ceil(demand.blocks / card.sms) / (demand.blocks / card.sms)
    per_sm = share / card.sms
    # a warp keeps to one of the schedulers, each with a quarter of the units
    present = np.minimum(resident, np.ceil(demand.blocks / card.sms))
    warps = present * np.ceil(demand.threads / card.warp)
    busy = np.clip(warps / SCHEDULERS, 1.0 / SCHEDULERS, 1.0)
    terms = {
        "issue": demand.instructions * per_sm / busy / SCHEDULERS / cycles,
        "fp64": demand.fp64 * per_sm * card.warp / card.fp64_per_cycle / busy / cycles,
        "fp32": demand.fp32 * per_sm * card.warp / card.fp32_per_cycle / busy / cycles,
        "L1": (demand.l1_wavefronts + demand.shared_wavefronts) * per_sm / cycles,
        "L2": demand.l2_bytes / card.l2_bytes_s,
        "memory": demand.scatter * demand.dram_bytes / card.dram_bytes_s,
        "latency": np.ceil(demand.blocks / np.maximum(1.0, resident * card.sms))
        * demand.chain_cycles
        / cycles,
    }
    power = habits.sharpness
    launch = np.asarray(sum(t**power for t in terms.values()) ** (1 / power)) + habits.launch_s
    time_s = demand.launches * launch
    pico = 1e-12 * demand.launches
    dynamic = {
        "instructions": pico
        * demand.instructions
        * card.warp
        * demand.lanes
        * habits.instruction_pj
        / 32,
        "arithmetic": pico
        * card.warp
        * demand.lanes
        * (demand.fp64 * habits.fp64_pj + demand.fp32 * habits.fp32_pj)
        / 32,
        "L1 and shared memory": pico
        * (
            (demand.l1_wavefronts + demand.shared_wavefronts) * habits.wavefront_pj
            + demand.shared_read_bytes * habits.shared_pj_byte
        ),
        "L2": pico * demand.l2_bytes * habits.l2_pj_byte,
        "memory": pico * demand.dram_bytes * habits.dram_pj_byte,
    }
    moving = np.asarray(sum(dynamic.values()))
    static_w = habits.static_w * card.power_limit_w / STATIC_LIMIT_W
    least_s = moving / max(1.0, card.power_limit_w - static_w)
    time_s = np.maximum(time_s, least_s)
    dynamic["static"] = static_w * time_s
    return Predicted(
        time_s=np.where(resident > 0, time_s, np.inf),
        energy_j=np.where(resident > 0, moving + static_w * time_s, np.inf),
        terms_s={name: demand.launches * term for name, term in terms.items()},
        terms_j=dynamic,
        resident_blocks=resident,
    )
