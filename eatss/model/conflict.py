"""A conflict between constraints, said in the user's terms."""

from __future__ import annotations

from math import inf

from eatss.model.problem import Constraint, Problem
from eatss.model.solution import is_monotone, smallest
from eatss.text import bytes_text


def conflict_message(problem: Problem, core: tuple[Constraint, ...]) -> str:
    """Say why the constraints of ``core`` exclude every vector."""
    return "; ".join(_sentence(problem, constraint) for constraint in core)


def excess(problem: Problem, core: tuple[Constraint, ...]) -> float:
    """Return by what factor the smallest tile exceeds the constraints of ``core``."""
    sizes = smallest(problem)
    return max(
        (c.expression.evaluate(sizes) / c.limit if c.limit > 0 else inf for c in core), default=inf
    )


def amount_text(constraint: Constraint, amount: int) -> str:
    """Return an amount in the constraint's unit as people say it."""
    if constraint.element_bytes is not None:
        return bytes_text(amount * constraint.element_bytes)
    return f"{amount} {constraint.unit}"


def _sentence(problem: Problem, constraint: Constraint) -> str:
    verb = "needs" if constraint.subject.startswith(("1 ", "the ")) else "need"
    sizes = smallest(problem)
    if is_monotone(constraint.expression, sizes):
        need = f"at least {amount_text(constraint, constraint.expression.evaluate(sizes))}"
    else:
        need = "more than there is"
    return f"{constraint.title}: {constraint.subject} {verb} {need}, {constraint.detail}"
