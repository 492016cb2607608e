"""Operands of plain products that a thread loads a step ahead, an entry a candidate.

What :mod:`eatss.transform.operands_ahead` decides.
"""

from __future__ import annotations

import numpy as np

from eatss.analysis.structure import (
    FRAGMENT_PLACES,
    OPERAND_REUSE,
    STEPS_LOADED,
    unrolled,
)
from eatss.analysis.work import StatementFacts
from eatss.prediction.cuda_launch import CudaLaunch, Flags
from eatss.prediction.cuda_products import is_product
from eatss.prediction.demand import Column

_WORD_BYTES = 4


def operands_ahead(of: CudaLaunch, statement: StatementFacts) -> Flags:
    """Tell where a thread loads what a step reads while it computes the one before.

    Boxes are filled ahead, steps of a tile are even in number and few enough to be unrolled, each
    computes enough with what it loads, and registers have room for two of them beside the sums.
    """
    never = np.asarray(of.zeros > 0)
    serial = of.serial(statement)
    if not serial or serial[-1] not in of.shape.tile or is_product(of, statement):
        return never
    steps, points = of.shape.tile[serial[-1]], of.points_of(statement)
    loaded, words = of.zeros, of.zeros
    for uniform in of.uniform_sets[statement.name]:
        if not uniform.held and uniform.reads:
            moving = dict(uniform.access.strides)
            named = [name for name in of.cut.mapped if name in moving]
            each = of.ones * of.staged(uniform.group) * uniform.count
            for name in named:
                each = each * of.shape.points[name]
            loaded = loaded + each
            words = words + each * max(1, uniform.access.element_bytes // _WORD_BYTES)
    others = [one for one in of.statements if of.serial(one)[-1:] == serial[-1:]]
    products = steps * sum(of.points_of(one) for one in others)
    few = (np.mod(steps, STEPS_LOADED) == 0) & unrolled(products, of.shape.block_threads)
    used = (loaded > 0) & (points >= OPERAND_REUSE * loaded)
    held = sum(max(1, own.element_bytes // _WORD_BYTES) for own in of.cut.held)
    registers = np.minimum(
        of.card.registers_per_thread, of.card.registers_per_block / of.shape.block_threads
    )
    room = held * of.points() + STEPS_LOADED * words + FRAGMENT_PLACES <= registers
    return np.asarray((of.candidates.stages > 1) & few & used & room)


def operand_words(of: CudaLaunch, statement: StatementFacts, words: Column) -> Column:
    """Return the registers for a statement's operands, of so many words a step."""
    ahead = operands_ahead(of, statement)
    return np.where(ahead, STEPS_LOADED * words, of.code.operand_registers * words)
