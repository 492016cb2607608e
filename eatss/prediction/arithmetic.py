"""The arithmetic of a statement: instructions, and cycles until a result is there."""

from __future__ import annotations

from eatss.analysis.work import StatementFacts
from eatss.prediction.habits import Habits

_WIDE_BYTES = 8
_SLOW = ("divide", "square root", "function")


def is_wide(statement: StatementFacts) -> bool:
    """Tell whether a statement computes in double precision."""
    return statement.element_bytes >= _WIDE_BYTES


def instructions_of(statement: StatementFacts, habits: Habits) -> float:
    """Return the floating-point instructions of an instance.

    A product and a sum are one where they meet; a division is as many as its iteration takes.
    """
    counts = dict(statement.operations)
    fused = max(counts.get("add", 0), counts.get("multiply", 0)) + counts.get("compare", 0)
    each = habits.division64 if is_wide(statement) else habits.division32
    return fused + _slow(statement) * each


def result_cycles(statement: StatementFacts, habits: Habits) -> float:
    """Return the cycles from one result of a statement to the next that needs it."""
    wide = is_wide(statement)
    fast = habits.fp64_cycles if wide else habits.fp32_cycles
    return fast + _slow(statement) * (habits.slow_cycles64 if wide else habits.slow_cycles32)


def _slow(statement: StatementFacts) -> int:
    counts = dict(statement.operations)
    return sum(counts.get(kind, 0) for kind in _SLOW)
