"""The integer problem of one kernel at one split and one warp fraction, as data, and its answers.

It says what to solve and knows nothing of a solver, so that Z3, brute force and
SMT-LIB text all start from the same thing. Register tiles, pipeline stages or
time tiles become further variables of it. What comes out passes a check here, or is a conflict,
said in the user's terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import inf

from eatss.base.diagnostics import Diagnostic, InternalError
from eatss.base.frozen import frozen
from eatss.base.polynomial import Polynomial
from eatss.base.text import bytes_text


class Direction(Enum):
    """Which of two values of a variable is preferred among equal objectives."""

    LARGER = "larger"
    SMALLER = "smaller"


@frozen
class Variable:
    """A tile size: a multiple of ``step`` in ``[lower, upper]``.

    ``lower == upper`` is a fixed size (a loop left untiled); it need not be a
    multiple of anything, and then ``step`` equals it.
    """

    name: str
    step: int
    lower: int
    upper: int
    reason: str

    @property
    def values(self) -> range:
        """All values the variable may take, ascending."""
        return range(self.lower, self.upper + 1, self.step)


@frozen
class Constraint:
    """``expression <= limit``, both in ``unit``.

    ``name`` is a stable identifier (``shared_per_sm``); ``title`` and ``detail`` say in the
    user's terms what is limited and by what; ``subject`` is what uses it up.
    ``element_bytes`` is set where ``unit`` is elements: one of them has so many bytes.
    """

    name: str
    title: str
    expression: Polynomial
    limit: int
    unit: str
    detail: str
    subject: str = "the tile"
    element_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A function of all variables of a problem, given by its values.

    ``rows`` are the vectors it is defined at, entries in the order of the variables; ``values``
    are integers in ``unit``. Vectors without a row are no solutions.
    """

    rows: tuple[tuple[int, ...], ...]
    values: tuple[int, ...]
    unit: str

    @cached_property
    def entries(self) -> dict[tuple[int, ...], int]:
        """The values by vector."""
        return dict(zip(self.rows, self.values, strict=True))


@frozen
class Problem:
    """Maximise ``objective`` over ``variables`` under ``constraints``.

    Equal objectives are decided by ``preference``,
    first entry first; it names every variable, so the optimum is unique.
    """

    kernel: str
    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    objective: Polynomial
    preference: tuple[tuple[str, Direction], ...]


@frozen
class TableProblem:
    """Minimise ``cost`` over its rows; of equal costs the first row counts.

    ``variables`` name the entries of a row.
    """

    kernel: str
    variables: tuple[str, ...]
    cost: Table


@frozen
class Solution:
    """Values for all variables of a problem, in their order.

    ``proven`` says that the solver refuted every better vector. ``solve_time_s`` is a
    measurement and takes no part in comparison.
    """

    values: tuple[tuple[str, int], ...]
    objective: int
    proven: bool
    solver_calls: int
    solve_time_s: float = field(compare=False)


@frozen
class Conflict:
    """A problem without a solution.

    ``constraints`` are the names of constraints that exclude each other or the variables'
    bounds, none of them superfluous; ``message`` says the same in the user's
    terms. ``excess`` is by what factor the smallest tile exceeds the tightest of them.
    """

    constraints: tuple[str, ...]
    message: str
    excess: float
    solver_calls: int
    solve_time_s: float = field(compare=False)


def smallest(problem: Problem) -> dict[str, int]:
    """Return the smallest vector."""
    return {variable.name: variable.lower for variable in problem.variables}


def fits(problem: Problem, sizes: Mapping[str, int]) -> bool:
    """Whether ``sizes`` are within bounds and keep all constraints, in exact integers."""
    return all(sizes[v.name] in v.values for v in problem.variables) and all(
        c.expression.evaluate(sizes) <= c.limit for c in problem.constraints
    )


def require_fit(problem: Problem, sizes: Mapping[str, int], origin: str) -> None:
    """Check an answer independently of what produced it.

    Raises:
        InternalError: the answer breaks a bound or a constraint.
    """
    if not fits(problem, sizes):
        text = ", ".join(f"{name}={size}" for name, size in sizes.items())
        message = f"{origin} gave {text} for {problem.kernel}, which breaks the problem"
        raise InternalError(Diagnostic(code="EATSS-M900", message=message))


def rank(problem: Problem, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return a key that orders vectors: a greater key is a better vector."""
    return (
        problem.objective.evaluate(sizes),
        *(
            sizes[name] if direction is Direction.LARGER else -sizes[name]
            for name, direction in problem.preference
        ),
    )


def shifted(polynomial: Polynomial, lower: Mapping[str, int]) -> Polynomial:
    """Return the polynomial in ``s``, where ``T = lower + s``."""
    total = Polynomial.constant(0)
    for term in polynomial.terms:
        product = Polynomial.constant(term.coefficient)
        for name in term.loops:
            product = product * (Polynomial.product([name]) + Polynomial.constant(lower[name]))
        total = total + product
    return total


def is_monotone(polynomial: Polynomial, lower: Mapping[str, int], name: str | None = None) -> bool:
    """Whether the polynomial surely never falls as ``T_name`` (or any size) grows from ``lower``.

    With ``T = lower + s``, ``s >= 0``, it is enough that no term in ``s`` has a negative
    coefficient; footprints such as ``(T_h + T_k - 1) * T_w`` pass.
    """
    if all(term.coefficient >= 0 for term in polynomial.terms):
        return True
    return all(
        term.coefficient >= 0
        for term in shifted(polynomial, lower).terms
        if term.loops and (name is None or name in term.loops)
    )


def monotone_constraints(problem: Problem) -> tuple[Constraint, ...]:
    """Return the constraints that surely never ease as sizes grow."""
    lower = smallest(problem)
    return tuple(c for c in problem.constraints if is_monotone(c.expression, lower))


def tightened(
    variables: Sequence[Variable], constraints: Sequence[Constraint]
) -> tuple[Variable, ...]:
    """Return the variables with upper bounds that monotone ``constraints`` imply.

    A size that breaks such a constraint with all others at their smallest breaks
    it everywhere. Values are dropped only for that reason, so no solution is lost.
    """
    lower = {v.name: v.lower for v in variables}
    return tuple(
        v if v.lower == v.upper else replace(v, upper=_highest(v, constraints, lower))
        for v in variables
    )


def _highest(variable: Variable, constraints: Sequence[Constraint], lower: dict[str, int]) -> int:
    values = variable.values
    count = len(values)
    for constraint in constraints:
        if variable.name not in constraint.expression.loops:
            continue
        low, high = 0, count  # the first position that breaks the constraint is in [low, high]
        while low < high:
            middle = (low + high) // 2
            sizes = {**lower, variable.name: values[middle]}
            if constraint.expression.evaluate(sizes) <= constraint.limit:
                low = middle + 1
            else:
                high = middle
        count = low
    # bounds cannot say that nothing is left; the constraints still do
    return values[max(count, 1) - 1]


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
