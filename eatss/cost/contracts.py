"""The price of a ``Contract``: products that warps compute, by an instruction for small matrices.

A warp has whole matrices of its tile. For each few steps of the sum every lane loads its elements
of both factors from shared memory, converts them where tensor cores multiply others, and the warp
multiplies. Halves and bytes are loaded as matrices of 8 rows of 16 bytes, four at a time.
"""

from __future__ import annotations

import numpy as np

from eatss.cost.access import LINE_BYTES
from eatss.cost.arithmetic import INTEGER_PRODUCT, instructions_of, issue_cycles
from eatss.cost.card import SCHEDULERS
from eatss.cost.cuda_code import CudaCode
from eatss.plan.contract import Contract, runs_along
from eatss.plan.launch import Compute
from eatss.plan.numbers import Number, nowhere

_VOTE_INSTRUCTIONS = 8.0
"""Instructions of a thread for each element that it looks at: its place, a load, two operations, a
turn of a loop. Counted in the code of symm for sm_90."""

_FUSED = 1.0
"""Multiply-adds of a plain product and its sum."""


def add_contract(of: CudaCode, one: Compute, own: Contract) -> None:
    """Add a statement that the structure's instruction computes."""
    card, instruction, statement = of.card, own.instruction, one.facts
    steps = one.share * one.steps(one.serial)
    cut = steps * one.cut_share
    alone = cut * (1.0 - one.runs_whole)
    plain = alone + (steps - alone) * _in_last_turns(of, one)
    _add_plain(of, one, own, plain)
    _add_votes(of, own, cut - alone)
    steps = steps * one.steps_beside - plain
    groups = own.terms * steps / instruction.steps
    elements = groups * own.loads
    loads = groups * _requests(one, own)
    count = groups * own.matrices * instruction.products
    done = count * instruction.multiply_adds / card.warp
    of.add_products(instruction.format, done, count)
    of.add_instructions(elements * instruction.conversions)
    first, _ = instruction.elements
    along = own.rows / instruction.points[0]
    each = instructions_of(statement.with_factors_last(), of.constants)
    extra = each / own.terms - (INTEGER_PRODUCT if statement.integer_products else _FUSED)
    of.add_arithmetic(statement, groups * along * first * max(0.0, extra))
    width = instruction.factor_bytes * card.warp
    of.add_shared(elements, width / LINE_BYTES)
    of.operand_bytes += of.launched_warps * elements * width
    of.add_instructions(loads + one.tile_steps * of.code.step_instructions)
    of.chain_cycles += steps * _group_cycles(of, own) / instruction.steps


def _add_votes(of: CudaCode, own: Contract, cut: Number) -> None:
    """Add what blocks do in front of cut tiles: each thread looks at its share of a tile."""
    if nowhere(cut):
        return
    tile, product = of.plan.tile, own.product
    votes = cut / tile[product.sum_loop]
    wide = np.maximum(tile[product.rows], tile[product.columns])
    loads = np.ceil(wide * tile[product.sum_loop] / of.plan.block_threads)
    of.add_shared(votes * loads, 1.0)
    of.add_instructions(votes * loads * _VOTE_INSTRUCTIONS)
    waits = loads * of.card.shared_cycles + of.code.barrier_wait * of.card.barrier_cycles
    of.chain_cycles += votes * waits


def _add_plain(of: CudaCode, one: Compute, own: Contract, steps: Number) -> None:
    """Add steps that each thread runs by itself, with a test of every point."""
    if nowhere(steps):
        return
    points, loads = of.plan.all_points, (own.rows + own.columns) * own.terms
    each = instructions_of(one.facts.with_factors_last(), of.constants)
    of.add_arithmetic(one.facts, steps * points * each)
    wave = one.facts.element_bytes * of.card.warp / LINE_BYTES
    of.add_shared(steps * loads, wave)
    tests = of.code.guard_instructions * points
    of.add_instructions(steps * (loads + of.code.loop_instructions + tests))
    waits = steps * (of.card.shared_cycles + loads * wave)
    of.chain_cycles += waits + steps * issue_cycles(one.facts, of.card, points * each)
    of.edge_cycles += (of.plan.layout.boxes > 1) * waits


def _in_last_turns(of: CudaCode, one: Compute) -> Number:
    """Return the share of steps in turns that the end of the sum cuts off and that are not whole.

    Warps multiply in whole turns only.
    """
    products = [own for own in of.plan.cut.products if own.statement == one.facts.name]
    if all(own.ends_whole for own in products):
        return 0.0
    steps = of.plan.trips[products[0].sum_loop]
    return np.mod(steps, of.plan.tile[products[0].sum_loop]) / max(1.0, steps)


def _group_cycles(of: CudaCode, own: Contract) -> Number:
    """Return what a warp takes by itself for the steps of one instruction, in cycles.

    Of each product that a statement adds one.
    """
    instruction = own.instruction
    rate = of.card.tensor_rate(instruction.format) / SCHEDULERS
    issue = own.matrices * (instruction.multiply_adds * instruction.products) / rate
    wait = of.card.shared_cycles + own.loads * min(1.0, instruction.factor_words)
    return own.terms * np.where(of.plan.loads_ahead, np.maximum(wait, issue), wait + issue)


def product_cycles(of: CudaCode) -> Number:
    """Return what a warp takes by itself for all products of a tile of their sums, in cycles."""
    total: Number = 0.0
    for own in of.plan.contracts.values():
        tile = of.plan.tile[own.product.sum_loop]
        total = total + _group_cycles(of, own) * tile / own.instruction.steps
    return total


def _requests(one: Compute, own: Contract) -> Number:
    """Return the loads for the steps of one instruction."""
    product = own.product
    factors = [use.access for use in one.uses if use.access.reference in product.references]
    return own.requests(
        *(
            any(
                loop in access.moving and not runs_along(access.terms, product.sum_loop)
                for access in factors
            )
            for loop in (product.rows, product.columns)
        )
    )
