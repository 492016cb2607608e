"""The arithmetic of a statement: instructions, and cycles until a result is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

import numpy as np

from eatss.analysis.work import StatementFacts
from eatss.cost.card import SCHEDULERS, Card
from eatss.cost.constants import CodeConstants
from eatss.cost.demand import Column
from eatss.plan.numbers import Number

_WIDE_BYTES = 8
INTEGER_PRODUCT = 2.0
"""Instructions of units for floats whose time a multiply-add of integers takes: 64 of an SM in a
cycle, of cards with 128 such units [CUDA C++ Programming Guide, arithmetic instructions]."""

_SLOW = ("divide", "square root", "function")


def is_wide(statement: StatementFacts) -> bool:
    """Tell whether a statement computes in double precision."""
    return statement.element_bytes >= _WIDE_BYTES


def instructions_of(statement: StatementFacts, constants: CodeConstants) -> float:
    """Return the floating-point instructions of an instance, and as many as products of integers.

    A product and a sum are one where they meet; a division is as many as its iteration takes.
    """
    return _instructions(statement, dict(statement.operations), constants) + _integers(statement)


def unrolled_instructions(
    statement: StatementFacts, constants: CodeConstants, steps: Mapping[str, Column]
) -> Column | float:
    """Return the same where a thread runs steps of loops at a time: some operations serve several.

    ``alpha * A[i][k]`` runs once for all points of a thread along ``j``.

    Args:
        statement: the statement.
        constants: what a division takes.
        steps: of each loop those that the compiler sees at a time, an entry a candidate.
    """
    left = Counter(dict(statement.operations))
    total: Column | float = 0.0
    for loops, kinds in statement.repeated:
        left.subtract(dict(kinds))
        own = _instructions(statement, dict(kinds), constants)
        same = [n for n in statement.loops if n in steps and n not in loops]
        total = total + own / prod((steps[name] for name in same), start=np.float64(1.0))
    return total + _instructions(statement, left, constants) + _integers(statement)


def issue_cycles(statement: StatementFacts, card: Card, instructions: Number) -> Number:
    """Return the cycles in which the units of a scheduler run floating-point instructions."""
    rate = card.fp64_per_cycle if is_wide(statement) else card.fp32_per_cycle
    return instructions * card.warp * SCHEDULERS / rate


def result_cycles(statement: StatementFacts, card: Card, constants: CodeConstants) -> float:
    """Return the cycles from one result of a statement to the next that needs it."""
    fast = card.fp64_cycles if is_wide(statement) else card.fp32_cycles
    return constants.result_wait * fast + slow_cycles(statement, card)


def slow_cycles(statement: StatementFacts, card: Card) -> float:
    """Return the part of :func:`result_cycles` that divisions, roots and functions take."""
    each = card.fp64_div_cycles if is_wide(statement) else card.fp32_div_cycles
    return _slow(dict(statement.operations)) * each


def _instructions(
    statement: StatementFacts, counts: Mapping[str, int], constants: CodeConstants
) -> float:
    fused = max(counts.get("add", 0), counts.get("multiply", 0)) + counts.get("compare", 0)
    each = constants.division64 if is_wide(statement) else constants.division32
    return fused + _slow(counts) * each


def _integers(statement: StatementFacts) -> float:
    return INTEGER_PRODUCT * statement.integer_products


def _slow(counts: Mapping[str, int]) -> int:
    return sum(counts.get(kind, 0) for kind in _SLOW)
