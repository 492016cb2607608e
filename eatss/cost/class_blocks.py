"""What a launch of a class of tiles asks of a card [:mod:`eatss.plan.class_blocks`].

Nearly all of it is latency: a thread goes through its steps, phase by phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.quotients import STEPS
from eatss.cost.access import (
    LINE_BYTES,
    division_cycles,
    instructions_of,
    is_wide,
    with_fused_quotients,
)
from eatss.cost.card import SCHEDULERS
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Demand, Sums
from eatss.plan.class_blocks import ClassRun, shared_bytes, sizes
from eatss.plan.numbers import Number

_REGISTERS = 40.0
"""Registers of a thread beside its elements. Assumed."""

_INDICES = 14.0
"""Instructions of an element that is copied: indices, tests, a load and a store. Assumed."""

_KEPT = 8192.0
"""Instructions of a text without loops that an SM keeps for the next launch: 128 KiB. Assumed."""

_FETCH_CYCLES = 4.0
"""Cycles of one that it does not keep. On an H200 Floyd-Warshall's diagonal of 32 steps, of 20 000
instructions, took 49 µs, that of 16 steps, of 5000, 8."""

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
    of, chain, all_blocks, dram_bytes = Sums(), 0.0, 0.0, 0.0
    for part in run.parts:
        shared = part.wide is not None
        blocks = np.ceil(max(1, points.get(part.wide or "", 1)) / block.width) if shared else 1.0
        blocks *= max(1, points.get(part.apart or "", 1))
        own: Number = 2.0 * (card.l1_cycles + card.l2_cycles + card.dram_cycles)
        for tile in (*part.tiles, *part.stored):
            elements = prod(sizes(tile.extents, block.width))
            ways = 1.0 + (tile.along is not None)
            warps = np.maximum(elements / card.warp / SCHEDULERS, elements / block.threads)
            own = own + ways * warps * _INDICES
            moved = blocks * elements * tile.element_bytes * ways
            of.l2_bytes += moved
            dram_bytes += moved if None in tile.extents else moved / blocks
            of.l1_wavefronts += moved / LINE_BYTES
            of.shared_wavefronts += moved / LINE_BYTES
            of.instructions += blocks * ways * elements / card.warp * _INDICES
        text = 0.0
        warps = blocks * np.ceil((block.width if shared else block.threads) / card.warp)
        for phase in part.phases:
            (statement,) = facts[phase.kernel].work.statements
            wide, fused = is_wide(statement), len(phase.divisors)
            each, inverse = (
                (card.fp64_cycles, card.fp64_div_cycles)
                if wide
                else (card.fp32_cycles, card.fp32_div_cycles)
            )
            statement = with_fused_quotients(statement, fused)
            wait = sum(number for _, number in statement.operations) * each
            wait += card.shared_cycles * bool(phase.passed) + (STEPS - 1) * fused * each
            wait += fused * inverse * (phase.own is not None)  # else of a value that is there
            often, several = phase.instances, 1 if phase.own is None else part.points
            arithmetic = several * instructions_of(statement, model.constants)
            beside = 2.0 * len(phase.passed) + several * _BESIDE
            divided = several * division_cycles(statement, card)  # one behind another: they branch
            text += often * (several + (arithmetic + len(phase.passed)) * (1.0 + wide))
            own = own + part.size * wait + often * (beside + arithmetic * (1.0 + wide) + divided)
            of.add_floating(statement, warps * often * arithmetic)
            of.instructions += warps * often * beside
            of.shared_wavefronts += warps * often * beside
        own = own + _FETCH_CYCLES * max(0.0, text - _KEPT)
        all_blocks += blocks
        chain = np.maximum(chain, own)
    return of.demand(
        count,
        launches=launches,
        blocks=all_blocks,
        threads=block.threads,
        registers=_REGISTERS + max(one.words for one in run.parts),
        shared_bytes=shared_bytes(run, block),
        shared_limit_bytes=card.shared_optin_bytes,
        lanes=1.0,
        dram_bytes=dram_bytes,
        scatter=1.0,
        chain_cycles=model.code.start_cycles + chain,
    )
