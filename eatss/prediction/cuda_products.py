"""What products ask for that warps compute together, by an instruction for small matrices.

A warp has whole matrices of its tile. For each few steps of the sum every lane loads its elements
of both factors from shared memory, converts them where tensor cores multiply others, and the warp
multiplies. Halves and bytes are loaded as matrices of 8 rows of 16 bytes, four at a time. Boxes are
filled ahead where there are several stages.

Operands of plain products a thread may load a step ahead, too.

Code that a cache of instructions does not keep since blocks of an SM run different loops of it.

    for (i < k) … unrolled …        // one block of an SM is here
    for (i > k) … unrolled …        // another has arrived here

Blocks with other rows of a triangle end the first loop at other times. Each loop by itself fits the
cache, as far as the generator unrolls it; two of them may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eatss.analysis.structure import PartFacts, ProductFacts
from eatss.analysis.work import StatementFacts
from eatss.plan.contract import (
    STEPS_LOADED,
    Contract,
    most_unrolled,
    prefetches,
    reuses,
    runs_along,
    unrolled,
    words_of_two,
)
from eatss.plan.registers import registers_of_a_thread
from eatss.plan.rows import element_words
from eatss.prediction.access import LINE_BYTES
from eatss.prediction.arithmetic import INTEGER_PRODUCT, instructions_of, is_wide
from eatss.prediction.card import SCHEDULERS
from eatss.prediction.cuda_boxes import line_words, steps_together, vector_width
from eatss.prediction.cuda_launch import CudaLaunch, Flags
from eatss.prediction.demand import Column
from eatss.prediction.demand_builder import DemandBuilder

_VOTE_INSTRUCTIONS = 8.0
"""Instructions of a thread for each element that it looks at: its place, a load, two operations, a
turn of a loop. Counted in the code of symm for sm_90."""

_FUSED = 1.0
"""Multiply-adds of a plain product and its sum."""


def is_product(of: CudaLaunch, statement: StatementFacts) -> bool:
    """Tell whether the structure's instruction computes a statement."""
    return any(one.statement == statement.name for one in of.cut.products)


def contracts(of: CudaLaunch) -> Mapping[str, Contract]:
    """Return what the structure's instruction computes, by statement."""
    found: dict[str, Contract] = {}
    instruction, names = of.structure.instruction, [one.statement for one in of.cut.products]
    for one in of.cut.products:
        assert instruction is not None
        if one.statement not in found:
            found[one.statement] = Contract(
                instruction=instruction,
                product=one,
                terms=names.count(one.statement),
                rows=of.shape.points[one.rows],
                columns=of.shape.points[one.columns],
            )
    return {one.name: found[one.name] for one in of.statements if one.name in found}


def add_product(of: CudaLaunch, demand: DemandBuilder, statement: StatementFacts) -> None:
    """Add a statement that the structure's instruction computes."""
    own = contracts(of)[statement.name]
    instruction = own.instruction
    steps = of.share(statement) * of.steps(of.serial(statement))
    cut = steps * of.cut_share(statement)
    alone = cut * (1.0 - of.runs_whole(statement))
    plain = alone + (steps - alone) * _in_last_turns(of, statement)
    _add_plain(of, demand, statement, own, plain)
    _add_votes(of, demand, own.product, cut - alone)
    steps = steps * of.steps_beside(statement) - plain
    groups = own.terms * steps / instruction.steps
    elements = groups * own.loads
    loads = groups * _requests(of, statement, own)
    count = groups * own.matrices * instruction.products
    done = count * instruction.multiply_adds / of.card.warp
    demand.add_products(instruction.format, done, count)
    demand.add_instructions(elements * instruction.conversions)
    first, _ = instruction.elements
    along = own.rows / instruction.points[0]
    each = instructions_of(statement.with_factors_last(), of.constants)
    extra = each / own.terms - (INTEGER_PRODUCT if statement.integer_products else _FUSED)
    demand.add_arithmetic(statement, groups * along * first * max(0.0, extra))
    width = instruction.factor_bytes * of.card.warp
    demand.add_shared(elements, of.ones * (width / LINE_BYTES))
    demand.operand_bytes += of.launched_warps * elements * width
    demand.add_instructions(loads + of.tile_steps(statement) * of.code.step_instructions)
    demand.chain_cycles += steps * _group_cycles(of, own) / instruction.steps


def _add_votes(of: CudaLaunch, demand: DemandBuilder, product: ProductFacts, cut: Column) -> None:
    """Add what blocks do in front of cut tiles: each thread looks at its share of a box."""
    if not cut.any():
        return
    step = of.shape.tile[product.sum_loop]
    votes = cut / step
    wide = np.maximum(of.shape.tile[product.rows], of.shape.tile[product.columns])
    loads = np.ceil(wide * step / of.shape.block_threads)
    demand.add_shared(votes * loads, of.ones)
    demand.add_instructions(votes * loads * _VOTE_INSTRUCTIONS)
    waits = loads * of.card.shared_cycles + of.code.barrier_wait * of.card.barrier_cycles
    demand.chain_cycles += votes * waits


def _add_plain(
    of: CudaLaunch,
    demand: DemandBuilder,
    statement: StatementFacts,
    own: Contract,
    steps: Column,
) -> None:
    """Add steps that each thread runs by itself, with a test of every point."""
    if not steps.any():
        return
    points, loads = of.points(), (own.rows + own.columns) * own.terms
    each = instructions_of(statement.with_factors_last(), of.constants)
    demand.add_arithmetic(statement, steps * points * each)
    wave = statement.element_bytes * of.card.warp / LINE_BYTES
    demand.add_shared(steps * loads, of.ones * wave)
    tests = of.code.guard_instructions * points
    demand.add_instructions(steps * (loads + of.code.loop_instructions + tests))
    rate = of.card.fp64_per_cycle if is_wide(statement) else of.card.fp32_per_cycle
    issue = points * each * of.card.warp * SCHEDULERS / rate
    waits = steps * (of.card.shared_cycles + loads * wave)
    demand.chain_cycles += waits + steps * issue
    demand.edge_cycles += (of.layout.boxes > 1) * waits


def _in_last_turns(of: CudaLaunch, statement: StatementFacts) -> Column:
    """Return the share of steps in turns that the end of the sum cuts off and that are not whole.

    Warps multiply in whole turns only.
    """
    products = [one for one in of.cut.products if one.statement == statement.name]
    if all(one.ends_whole for one in products):
        return of.zeros
    name = products[0].sum_loop
    steps = of.trips[name]
    return np.asarray(np.mod(steps, of.shape.tile[name]) / max(1.0, steps))


def _group_cycles(of: CudaLaunch, own: Contract) -> Column:
    """Return what a warp takes by itself for the steps of one instruction, in cycles.

    Of each product that a statement adds one.
    """
    instruction = own.instruction
    rate = of.card.tensor_rate(instruction.format) / SCHEDULERS
    issue = own.matrices * (instruction.multiply_adds * instruction.products) / rate
    wait = of.card.shared_cycles + own.loads * min(1.0, instruction.factor_words)
    each = np.where(loads_ahead(of), np.maximum(wait, issue), wait + issue)
    return np.asarray(own.terms * each)


def loads_ahead(of: CudaLaunch) -> Flags:
    """Tell where a step's elements are loaded while those of the one before are multiplied.

    Boxes are filled ahead, a tile has an even number of steps, and registers have room for two
    beside the sums and halves that are on their way.
    """
    products = [*contracts(of).values()]
    if not products:
        return of.never
    first = products[0]
    tile = of.shape.tile[first.product.sum_loop]
    even = np.mod(tile / first.instruction.steps, STEPS_LOADED) == 0
    several = sum(one.terms for one in products) > 1
    sums = of.points() * first.instruction.words + first.part_words
    operands = STEPS_LOADED * _step_words(of) + line_words(of)
    registers = registers_of_a_thread(of.card, of.shape.block_threads)
    room = prefetches(sums, operands, registers)
    return np.asarray((of.layout.boxes > 1) & (even | several) & room)


def product_cycles(of: CudaLaunch) -> Column:
    """Return what a warp takes by itself for all products of a tile of their sums, in cycles."""
    total = of.zeros
    for own in contracts(of).values():
        tile = of.shape.tile[own.product.sum_loop]
        total = total + _group_cycles(of, own) * tile / own.instruction.steps
    return total


def fragment_words(of: CudaLaunch) -> Column:
    """Return the registers that a thread needs for elements of both factors.

    It has those of one of them for all of its rows, those of the other for one matrix at a time;
    of two steps all where they are loaded ahead. Of further parts it has those of one matrix each.
    """
    products = contracts(of).values()
    least = np.maximum.reduce([of.zeros, *(one.least_words for one in products)])
    parts = max((one.part_words for one in products), default=0.0)
    return np.where(loads_ahead(of), STEPS_LOADED * _step_words(of), least) + parts


def _step_words(of: CudaLaunch) -> Column:
    """Return the registers for all elements that a thread loads for the steps of an instruction."""
    words = (one.step_words for one in contracts(of).values())
    return np.asarray(np.maximum.reduce([of.zeros, *words]))


def _requests(of: CudaLaunch, statement: StatementFacts, own: Contract) -> Column:
    """Return the loads for the steps of one instruction."""
    product = own.product
    factors = [
        one.access
        for one in of.uniform_sets[statement.name]
        if one.access.reference in product.references
    ]
    transposed = (
        any(
            loop in dict(one.strides) and not runs_along(one.terms, product.sum_loop)
            for one in factors
        )
        for loop in (product.rows, product.columns)
    )
    return np.asarray(of.ones * own.requests(*transposed))


def operands_ahead(
    of: CudaLaunch, statement: StatementFacts, more_words: Column | float = 0.0
) -> Flags:
    """Tell where a thread loads what a step reads while it computes the one before.

    Boxes are filled ahead, and their rows run along the points. A turn has one loop over an even
    number of steps, few enough to be unrolled. Each product computes enough with what it loads,
    and registers have room for the operands of two that follow each other beside the sums, and for
    ``more_words``.
    """
    turn = _in_turn(of, statement)
    if not turn or any(is_product(of, one) for one in turn):
        return of.never
    tiles = [of.shape.tile[name] for name in of.serial(statement)]
    steps = of.product(tiles)
    even = (steps == np.maximum.reduce(tiles)) & (np.mod(steps, STEPS_LOADED) == 0)
    points = [of.points_of(one) for one in turn]
    loaded = [_loaded(of, one) for one in turn]
    used = [
        np.logical_and(reuses(own, each), _in_vectors(of, one))
        for own, (each, _), one in zip(points, loaded, turn, strict=True)
    ]
    few = unrolled(steps, sum(points), of.shape.block_threads)
    operands = words_of_two([words for _, words in loaded]) + more_words
    registers = registers_of_a_thread(of.card, of.shape.block_threads)
    room = prefetches(_sums(of, turn) * of.points(), operands, registers)
    return np.asarray(np.logical_and.reduce([of.layout.boxes > 1, even, few, room, *used]))


def waits_for_nothing(of: CudaLaunch, statement: StatementFacts) -> Flags:
    """Tell where all that a step reads is loaded a step ahead, and nothing beside boxes."""
    last = (of.serial(statement) or [""])[-1]
    beside = [
        of.staged(uniform.group) == 0
        for uniform in of.uniform_sets[statement.name]
        if uniform.reads and not uniform.held and last in dict(uniform.access.strides)
    ]
    unstaged = np.logical_or.reduce([of.never, *beside])
    return np.asarray(operands_ahead(of, statement) & ~unstaged)


def loads_late(of: CudaLaunch, statement: StatementFacts) -> Flags:
    """Tell where boxes are filled ahead, but what a step reads of them is not loaded so."""
    staged = [
        of.staged(one.group) * (one.reads and not one.held)
        for one in of.uniform_sets[statement.name]
    ]
    boxes = np.maximum.reduce([of.zeros, *staged]) > 0
    return np.asarray(boxes & (of.layout.boxes > 1) & ~waits_for_nothing(of, statement))


def _in_turn(of: CudaLaunch, statement: StatementFacts) -> tuple[StatementFacts, ...]:
    """Return the statements of a turn of the loop of one, none where a turn has other loops."""
    serial = of.serial(statement)
    if not serial or serial[-1] not in of.shape.tile:
        return ()
    own = of.part_of(statement).statements
    turn = [one for one in of.statements if one.name in own and serial[-1] in one.loops]
    return tuple(turn) if all(of.serial(one) == serial for one in turn) else ()


def _loaded(of: CudaLaunch, statement: StatementFacts) -> tuple[Column, Column]:
    """Return the elements of boxes of the turn that a step of a statement loads, and their words.

    Boxes that do not move along the innermost loop are filled in front of it, and not ahead.
    """
    last = of.serial(statement)[-1]
    moving = {
        uniform.group
        for uniform in of.all_uniform_sets
        if last in dict(uniform.access.strides) and uniform.group is not None
    }
    loaded, words = of.zeros, of.zeros
    for uniform in of.uniform_sets[statement.name]:
        if uniform.held or not uniform.reads or uniform.group not in moving:
            continue
        points = of.points_along(dict(uniform.access.strides))
        each = of.staged(uniform.group) * uniform.count * points
        loaded = loaded + each
        words = words + each * element_words(uniform.access.element_bytes)
    return loaded, words


def _in_vectors(of: CudaLaunch, statement: StatementFacts) -> Flags:
    """Tell where what a statement reads of boxes for several points lies in rows along them."""
    found = ~of.never
    for uniform in of.uniform_sets[statement.name]:
        if uniform.held or not uniform.reads:
            continue
        several = of.points_along(dict(uniform.access.strides)) > 1
        rows = vector_width(of, statement, uniform) > steps_together(of, statement, uniform)
        found = found & (rows | ~several | (of.staged(uniform.group) == 0))
    return found


def _sums(of: CudaLaunch, turn: Sequence[StatementFacts]) -> int:
    """Return the registers of a point for what a turn adds to."""
    written = {one.reference for own in turn for one in own.accesses if one.writes}
    return sum(
        element_words(own.element_bytes) for own in of.cut.held if written & {*own.references}
    )


def operand_words(of: CudaLaunch, statement: StatementFacts, words: Column) -> Column:
    """Return the registers for a statement's operands, of so many words a step."""
    ahead = operands_ahead(of, statement)
    return np.where(ahead, STEPS_LOADED * words, of.code.operand_registers * words)


_INSTRUCTIONS_OF_A_PRODUCT = 1.25
"""Instructions of the code for each product that is unrolled, loads and copies among them. Counted
in machine code of symm and gemm for sm_90: 1270 to 1320 for 1024 products."""


@dataclass(frozen=True, slots=True)
class LoopsApart:
    """Loops that blocks of an SM are in at different times.

    ``code`` are the instructions of all of them, 0 where all blocks run the same one; ``again`` is
    the share of a warp's instructions that are fetched anew where a cache does not keep them.
    """

    code: Column
    again: Column


def loops_apart(of: CudaLaunch) -> LoopsApart:
    """Return the loops of a launch that its blocks end at different times."""
    found = [own for part in of.cut.parts if (own := _products(of, part))]
    if len(found) < len(("one", "another")):
        return LoopsApart(of.zeros, of.zeros)
    code, again = of.zeros, of.zeros
    for own in found:
        products, kept = _unrolled(of, own)
        code = code + _INSTRUCTIONS_OF_A_PRODUCT * kept
        again = np.maximum(again, kept / products)
    return LoopsApart(code, again)


def _products(of: CudaLaunch, part: PartFacts) -> list[StatementFacts]:
    """Return the statements of a part whose loop is longer or shorter in other blocks."""
    return [
        one
        for one in of.statements
        if one.name in part.statements
        and not is_product(of, one)
        and {*one.coupled} & {*of.cut.mapped}
        and {*one.coupled} & {*part.serial} & {*of.shape.tile}
    ]


def _unrolled(of: CudaLaunch, statements: Sequence[StatementFacts]) -> tuple[Column, Column]:
    """Return the products of a thread in a turn, and how many of them stand in the code.

    A turn that is not unrolled by the generator is by compilers, as far.
    """
    points = sum((of.points_of(one) for one in statements), start=of.zeros)
    tiles = [of.shape.tile[name] for name in of.serial(statements[0]) if name in of.shape.tile]
    steps = of.product(tiles)
    kept = np.minimum(steps * points, most_unrolled(of.shape.block_threads))
    in_parts = unrolled(steps, points, of.shape.block_threads)
    return np.where(in_parts, steps * points, kept), kept
