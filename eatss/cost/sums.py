"""The price of sums: what registers keep, lanes and blocks share, and blocks leave for others."""

from __future__ import annotations

import numpy as np

from eatss.cost.cuda_code import CudaCode
from eatss.plan.launch import LaunchPlan
from eatss.plan.numbers import Number
from eatss.plan.rows import vector
from eatss.plan.uniform_references import UniformSet

_ATOMIC_TURN_CYCLES = 25.0
"""Cycles between two atomic operations on one sector of L2. From gramschmidt in doubles on an H100,
where 63 blocks add to an element: with two points a thread, and so two operations of a block on a
sector, it took 1.11 times the time (``gramschmidt-layouts``)."""

_ATOMIC_MOVES = 2.0
"""How often L2 moves what an atomic addition adds to."""

_EXCHANGE = 2.0
"""Atomic operations in the place of one where blocks compare and exchange: the value is read
first. That another block comes in between, and it is done again, is not counted."""

_MOVES = 3.0
"""Instructions for an element of a part: it is stored, loaded and added."""

_WAITS = 20.0
"""Loads from L2, one after the other, in the time that putting tiles together takes a block of an
SM: it leaves a part, passes a fence and says so, takes a ticket, waits and loads. From gemm of 1111
floats on an H100, against layouts without streams (``library-streams-by-hand``)."""


def add_held(of: CudaCode) -> None:
    """Add the loads and stores of what registers keep, or the atomic additions of it."""
    plan, code, points = of.plan, of.code, of.plan.all_points
    for own in plan.cut.held:
        uses = [use for use in plan.uses if use.access.reference in own.references]
        if not uses:
            continue
        access = uses[0].access
        cycles, sectors = of.row_request(access)
        if plan.cut.shared_loop is not None:  # it starts at zero, and L2 reads, adds and writes
            times = _EXCHANGE if own.exchanges else 1.0
            of.add_global(points * times, cycles, sectors * _ATOMIC_MOVES)
            of.add_instructions(points * code.load_instructions * times)
            # those of all blocks to one sector come one after the other
            rows = plan.neighbours(plan.cut.mapped[-1]) if plan.cut.mapped else False
            requests = np.where(rows, vector(own.element_bytes), 1.0)
            turns = plan.chunks * requests * _ATOMIC_TURN_CYCLES
            of.chain_cycles += (of.card.atomic_cycles + turns) * times
            continue
        if own.loads:
            of.add_global(points, cycles, sectors)
            of.chain_cycles += of.far_cycles * np.maximum(1.0, points / code.batch)
        of.add_stores(points, cycles, sectors, of.torn(access))
        of.add_instructions(points * (1.0 + own.loads) * code.load_instructions)


def add_spread(of: CudaCode) -> None:
    """Add the shuffles and atomic operations at the end of spread sums."""
    plan, points = of.plan, of.plan.all_points
    if plan.cut.sum_loop is None:
        return
    rounds = np.log2(np.maximum(1.0, plan.sum_lanes))
    of.add_instructions(points * rounds * 4)
    of.chain_cycles += points * rounds * of.constants.result_wait * of.card.fp64_cycles * 2
    times, shared = _EXCHANGE if plan.cut.exchanges else 1.0, plan.chunks > 1
    of.add_global(np.where(shared, points * times, 0.0), 2.0, 8.0)
    turns = plan.chunks * _ATOMIC_TURN_CYCLES
    of.chain_cycles += np.where(shared, (of.card.atomic_cycles + turns) * times, 0.0)


def add_parts(of: CudaCode) -> Number:
    """Add what parts of sums take that blocks leave and find; return the cycles of a block.

    Parts go to L2 and come from there, a line of each register of a warp. Blocks do so at the same
    time, as they have equal shares, and nothing is computed meanwhile.
    """
    plan, words, width = of.plan, of.plan.all_points, of.plan.facts.element_bytes
    if plan.cut.stream_loop is None:
        return 0.0
    often = words * plan.stream.cuts / plan.active
    of.add_instructions(often * _MOVES)
    of.add_global(2.0 * often, np.ceil(width / 4.0), width)
    each = np.ceil(plan.stream.blocks / of.card.sms)
    moved = 2.0 * (words * plan.block_threads * width * each) / of.l2_bytes_cycle
    return np.where(plan.stream.cuts > 0, _WAITS * each * of.far_cycles + moved, 0.0)


def loads_held(plan: LaunchPlan, use: UniformSet) -> bool:
    """Tell whether a thread loads what registers keep of a uniform set before it adds to it."""
    return any(own.loads for own in plan.cut.held if use.access.reference in own.references)
