"""What a launch of a class of tiles asks of a card [:mod:`eatss.plan.class_blocks`].

Nearly all of it is latency: a block goes through its steps, phase by phase, and waits at barriers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import ceil, prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.targets import CUDA
from eatss.cost.access import LINE_BYTES, division_cycles, instructions_of, is_wide
from eatss.cost.card import SCHEDULERS
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand
from eatss.plan.class_blocks import (
    ClassPhase,
    ClassRun,
    in_turns,
    nest,
    shared_bytes,
    sizes,
    threads_along,
)
from eatss.plan.numbers import Number

_REGISTERS = 40.0
"""Registers of a thread. Assumed; kernels of ``kernels/`` take 32 to 40 on an H200."""

_INDICES = 14.0
"""Instructions of a point beside arithmetic: indices, tests, loads and a store. Assumed."""


def class_demand(
    run: ClassRun, block: ClassBlock, facts: Mapping[str, KernelFacts], model: CudaModel
) -> Demand:
    """Return what launches of a class ask of a card, an entry a candidate of ``block``."""
    card, count = model.card, len(block.threads)
    kernels = [facts[name] for name in run.kernels]
    steps = max((one.work.launches or 1 for one in kernels), default=1)
    launches = float(ceil(steps / run.size))
    points = dict(pair for one in kernels for pair in one.work.trips)
    blocks = np.ones(count)
    if run.wide is not None:
        blocks = np.ceil(max(1, points.get(run.wide, 1)) / block.width)
    sums: dict[str, Number] = {one.name: np.zeros(count) for one in fields(Demand)}
    chain = 2.0 * (card.l1_cycles + card.l2_cycles + card.dram_cycles) + np.zeros(count)
    for tile in run.tiles:
        elements = prod(sizes(tile.extents, block.width))
        ways = 1.0 + tile.stored
        warps = np.maximum(elements / card.warp / SCHEDULERS, elements / block.threads)
        chain = chain + ways * warps * _INDICES
        moved = blocks * elements * tile.element_bytes * ways
        sums["l2_bytes"] += moved
        sums["dram_bytes"] += moved if None in tile.extents else moved / blocks
        sums["l1_wavefronts"] += moved / LINE_BYTES
        sums["shared_wavefronts"] += moved / LINE_BYTES
        sums["instructions"] += blocks * ways * elements / card.warp * _INDICES
    for phase, own in zip(run.phases, kernels, strict=True):
        (statement,) = own.work.statements
        alone = card.fp64_cycles if is_wide(statement) else card.fp32_cycles
        kinds = sum(number for _, number in statement.operations)
        each = 2.0 * card.shared_cycles + kinds * alone + division_cycles(statement, card)
        barrier = model.code.barrier_wait * card.barrier_cycles
        waits, warps = _turns(phase, run.size, block)
        chain = chain + waits * each + warps * _INDICES / SCHEDULERS + run.size * barrier
        arithmetic = instructions_of(statement, model.constants)
        sums["fp64" if is_wide(statement) else "fp32"] += blocks * warps * arithmetic
        sums["instructions"] += blocks * warps * _INDICES
        sums["shared_wavefronts"] += blocks * warps * len(statement.accesses) * 2.0
    known = {
        "launches": np.full(count, launches),
        "blocks": blocks,
        "threads": block.threads,
        "registers": np.full(count, _REGISTERS),
        "shared_bytes": shared_bytes(run, block) + np.zeros(count),
        "shared_limit_bytes": np.full(count, float(card.shared_optin_bytes)),
        "lanes": np.ones(count),
        "scatter": np.ones(count),
        "chain_cycles": model.code.start_cycles + chain,
    }
    return Demand(**sums | known)


def _turns(phase: ClassPhase, size: int, block: ClassBlock) -> tuple[Number, Number]:
    """Return how often a thread waits for points in all steps, and the warps that have any.

    A loop over the block of steps is as long as there are steps left.
    """
    threads, order = threads_along(phase, block), nest(phase)
    points = in_turns(phase, block) if len(order) > 1 else 1.0
    waits: Number = np.zeros(len(block.threads))
    warps: Number = np.zeros(len(block.threads))
    for step in range(size):
        turns: Number = np.ones(len(block.threads))
        active: Number = np.ones(len(block.threads))
        for at in order:
            left = block.width if phase.loops[at] is None else size - step
            together = points if len(order) > 1 and at == order[-1] else 1.0
            turns = turns * np.ceil(left / (threads[at] * together))
            active = active * np.minimum(threads[at], left)
        waits = waits + turns
        warps = warps + turns * points * np.ceil(active / CUDA.lanes)
    return waits, warps
