"""Operands of plain products that a thread loads a step ahead, an entry a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from eatss.analysis.work import StatementFacts
from eatss.plan.contract import STEPS_LOADED, prefetches, reuses, unrolled, words_of_two
from eatss.plan.registers import registers_of_a_thread
from eatss.plan.rows import element_words
from eatss.prediction.cuda_boxes import steps_together, vector_width
from eatss.prediction.cuda_launch import CudaLaunch, Flags
from eatss.prediction.cuda_products import is_product
from eatss.prediction.demand import Column


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
    steps = np.asarray(prod(tiles, start=of.ones))
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
