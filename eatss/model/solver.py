"""Z3 finds and proves the optimum of a problem [EATSS, Sec. IV-L]."""

from __future__ import annotations

import time
from collections.abc import Mapping

from eatss.diagnostics import Diagnostic, InternalError, NoSolutionError
from eatss.model.conflict import conflict_message, excess
from eatss.model.options import DEFAULT_TIMEOUT_S
from eatss.model.problem import Problem
from eatss.model.search import Answer, Search
from eatss.model.solution import Conflict, Solution, rank, require_fit


def solve(
    problem: Problem,
    *,
    start: Mapping[str, int] | None = None,
    timeout_s: float | None = None,
) -> Solution | Conflict:
    """Find the best vector of ``problem`` and prove that none is better.

    Finds a solution, demands a better one, and repeats until that is refuted: first
    a greater objective, then at the greatest objective a vector preferred by the
    problem's order of preference. ``start``, a vector known to be feasible,
    saves the steps up to it. Safe to call from several threads: every call has a
    solver context of its own.

    Args:
        problem: what to solve.
        start: a feasible vector, one size a variable.
        timeout_s: seconds after which the best vector so far is returned, unproven.

    Raises:
        NoSolutionError: time ran out before any vector was found (``EATSS-M021``).
        InternalError: the solver's answer breaks the problem.
    """
    began = time.perf_counter()
    search = Search(problem, began + (DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s))
    best = None if start is None else dict(start)
    if best is None:
        answer, best = search.ask()
        if answer is Answer.REFUTED:
            return _conflict(search, began)
        if best is None:
            message = f"time ran out before any tile sizes of {problem.kernel} were found"
            hint = "give the solver more time"
            raise NoSolutionError(Diagnostic(code="EATSS-M021", message=message, hint=hint))
    require_fit(problem, best, "the starting point" if start is not None else "the solver")
    best, proven = _climb(search, best)
    return Solution(
        values=tuple((v.name, best[v.name]) for v in problem.variables),
        objective=problem.objective.evaluate(best),
        proven=proven,
        solver_calls=search.calls,
        solve_time_s=time.perf_counter() - began,
    )


def _climb(search: Search, best: dict[str, int]) -> tuple[dict[str, int], bool]:
    """Improve ``best`` until Z3 refutes any better vector, or time is up."""
    for improvement in (search.greater_objective, search.preferred):
        while True:
            answer, found = search.ask(improvement(best))
            if answer is Answer.REFUTED:
                break
            if found is None:
                return best, False
            require_fit(search.problem, found, "the solver")
            if rank(search.problem, found) <= rank(search.problem, best):
                message = f"the solver called sizes of {search.problem.kernel} better that are not"
                raise InternalError(Diagnostic(code="EATSS-M902", message=message))
            best = found
    return best, True


def _conflict(search: Search, began: float) -> Conflict:
    core = tuple(search.problem.constraints[at] for at in _minimal_core(search))
    return Conflict(
        constraints=tuple(constraint.name for constraint in core),
        message=conflict_message(search.problem, core),
        excess=excess(search.problem, core),
        solver_calls=search.calls,
        solve_time_s=time.perf_counter() - began,
    )


def _minimal_core(search: Search) -> tuple[int, ...]:
    """Return positions of constraints that cannot hold together, none superfluous."""
    core = search.unsat_core()
    for at in core:
        rest = tuple(other for other in core if other != at)
        if rest and search.refutes(rest):
            core = rest
    return core
