"""What a launch of a class of tiles asks of a card [:mod:`eatss.plan.class_blocks`].

Nearly all of it is latency: a thread goes through its steps, phase by phase.
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
from eatss.plan.class_blocks import ClassRun, shared_bytes, sizes
from eatss.plan.numbers import Number

_REGISTERS = 40.0
"""Registers of a thread beside its elements. Assumed."""

_INDICES = 14.0
"""Instructions of an element that is copied: indices, tests, a load and a store. Assumed."""

_BESIDE = 3.0
"""Instructions of a statement beside arithmetic and shuffles: loads and tests. Assumed."""


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
        ways = 1.0 + (tile.along is not None)
        warps = np.maximum(elements / card.warp / SCHEDULERS, elements / block.threads)
        chain = chain + ways * warps * _INDICES
        moved = blocks * elements * tile.element_bytes * ways
        sums["l2_bytes"] += moved
        sums["dram_bytes"] += moved if None in tile.extents else moved / blocks
        sums["l1_wavefronts"] += moved / LINE_BYTES
        sums["shared_wavefronts"] += moved / LINE_BYTES
        sums["instructions"] += blocks * ways * elements / card.warp * _INDICES
    lanes = np.ceil(block.width / CUDA.lanes)
    working = block.threads / CUDA.lanes if run.wide is None else lanes
    points = max((run.points(one) for one in run.tiles), default=1)
    left = (run.size + 1) / (2 * run.size)  # a loop over the block of steps gets shorter
    for phase, own in zip(run.phases, kernels, strict=True):
        (statement,) = own.work.statements
        alone = card.fp64_cycles if is_wide(statement) else card.fp32_cycles
        kinds = sum(number for _, number in statement.operations)
        wait = kinds * alone + division_cycles(statement, card)
        wait += card.shared_cycles * (len(phase.passed) > 0)
        loops = sum(one is not None for at, one in enumerate(phase.loops) if at != phase.own)
        often = run.size * max(1.0, phase.turns * left**loops)
        arithmetic = instructions_of(statement, model.constants)
        passed = 2.0 * len(phase.passed)
        several = points if phase.own is not None else 1
        beside = passed + several * _BESIDE
        issued = often * (beside + several * arithmetic * (2.0 if is_wide(statement) else 1.0))
        chain = chain + run.size * wait + issued
        sums["fp64" if is_wide(statement) else "fp32"] += (
            blocks * working * often * several * arithmetic
        )
        sums["instructions"] += blocks * working * often * beside
        sums["shared_wavefronts"] += blocks * working * often * beside
    known = {
        "launches": np.full(count, launches),
        "blocks": blocks,
        "threads": block.threads,
        "registers": np.full(count, _REGISTERS + run.words),
        "shared_bytes": shared_bytes(run, block) + np.zeros(count),
        "shared_limit_bytes": np.full(count, float(card.shared_optin_bytes)),
        "lanes": np.ones(count),
        "scatter": np.ones(count),
        "chain_cycles": model.code.start_cycles + chain,
    }
    return Demand(**sums | known)
