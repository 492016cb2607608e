"""How often a loop of a kernel runs."""

from __future__ import annotations

from eatss.kernel.nodes import For
from eatss.program import Apply, Constant, Name, Operator, difference
from eatss.program.linear import linear


def constant_trips(loop: For) -> int | None:
    """Return how often a loop runs, ``None`` where that is not constant or it goes by other steps.

    Args:
        loop: ``for (k = lower; k < last; k += 1)``, or with ``<=``.
    """
    condition = loop.condition
    if not isinstance(condition, Apply) or loop.step != Constant(1):
        return None
    counter, last = condition.operands
    if counter != Name(loop.counter) or condition.operator not in (Operator.LT, Operator.LE):
        return None
    form = linear(difference(last, loop.lower))
    if form is None or form.terms:
        return None
    return form.constant + (condition.operator is Operator.LE)


def trips_from_zero(loop: For) -> int | None:
    """Return how often a loop runs whose counter numbers its turns from 0."""
    return constant_trips(loop) if loop.lower == Constant(0) else None
