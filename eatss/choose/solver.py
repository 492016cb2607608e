"""Z3 finds and proves the optimum of a problem, or of a table [EATSS, Sec. IV-L].

Inside Z3 sizes are small bounded integers, and products are kept tractable; it begins with the best
vector of a coarse grid. A table of costs goes to it as text. Z3 compares every cost with the one
that was found, in exact integers, and answers *unsatisfiable* where none is less.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import inf, isqrt
from typing import Any

import numpy as np
import z3 as z3_module

from eatss.base.diagnostics import Diagnostic, InternalError, NoSolutionError
from eatss.choose.options import DEFAULT_TIMEOUT_S
from eatss.choose.problem import (
    Conflict,
    Direction,
    Problem,
    Solution,
    fits,
    rank,
    require_fit,
    smallest,
    too_small,
)

z3: Any = z3_module  # carries no types


def solve(problem: Problem, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Solution | Conflict:
    """Find the best vector of ``problem`` and prove that none is better.

    Finds a solution, demands a better one, and repeats until that is refuted: first
    a greater objective, then at the greatest objective a vector preferred by the
    problem's order of preference. Safe to call from several threads: every call has a
    solver context of its own.

    Args:
        problem: what to solve.
        timeout_s: seconds after which the best vector so far is returned, unproven.

    Raises:
        NoSolutionError: time ran out before any vector was found (``EATSS-M020``).
        InternalError: the solver's answer breaks the problem.
    """
    began = time.perf_counter()
    search = Search(problem, began + timeout_s)
    best = best_of_grid(problem)
    if best is None:
        answer, best = search.ask()
        if answer is Answer.REFUTED:
            return _conflict(search, began)
        if best is None:
            message = f"time ran out before any tile sizes of {problem.kernel} were found"
            hint = "give the solver more time"
            raise NoSolutionError(Diagnostic(code="EATSS-M020", message=message, hint=hint))
        require_fit(problem, best)
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
            require_fit(search.problem, found)
            if rank(search.problem, found) <= rank(search.problem, best):
                message = f"the solver called sizes of {search.problem.kernel} better that are not"
                raise InternalError(Diagnostic(code="EATSS-M900", message=message))
            best = found
    return best, True


def _conflict(search: Search, began: float) -> Conflict:
    """Say what excludes every vector: the limit that the smallest tile exceeds most."""
    problem, deadline = search.problem, search.deadline
    excess, constraints, message = inf, problem.constraints, "its limits exclude each other"
    for times, one in too_small(problem):
        if Search(replace(problem, constraints=(one,)), deadline).ask()[0] is Answer.REFUTED:
            excess, constraints, message = times, (one,), one.sentence(smallest(problem))
            break
    return Conflict(
        constraints=tuple(one.name for one in constraints),
        message=message,
        excess=excess,
        solver_calls=search.calls,
        solve_time_s=time.perf_counter() - began,
    )


_GRID = 1 << 15
"""Vectors that are looked at together before Z3 is asked."""


def best_of_grid(problem: Problem) -> dict[str, int] | None:
    """Return the best of a grid of sizes and of all around it, ``None`` where none of them fits."""
    free = [v for v in problem.variables if v.upper > v.lower]
    most, best = int(_GRID ** (1 / max(1, len(free)))), None
    places = [np.unique(np.geomspace(1, len(v.values), most).round()) - 1 for v in free]
    while True:
        pairs = zip(free, places, strict=True)
        found = _best_of(problem, {v.name: v.lower + at * v.step for v, at in pairs})
        if found is None or (best and rank(problem, found) <= rank(problem, best)):
            break
        best = found
        at = [(best[v.name] - v.lower) // v.step - most // 2 for v in free]
        every = [np.arange(one, one + most, dtype=float) for one in at]
        places = [
            one[(one >= 0) & (one < len(v.values))] for v, one in zip(free, every, strict=True)
        ]
    return best if best and fits(problem, best) else None  # floats are not exact


def _best_of(problem: Problem, sizes: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the best of all vectors of some sizes of each variable, if one fits."""
    grid = [column.ravel() for column in np.meshgrid(*sizes.values())]
    columns: dict[str, Any] = smallest(problem) | dict(zip(sizes, grid, strict=True))
    count = len(grid[0]) if grid else 1
    rows = np.arange(count)

    def kept(column: Any) -> Any:
        return np.broadcast_to(column, (count,))[rows]

    for constraint in problem.constraints:
        rows = rows[kept(constraint.expression.evaluate(columns)) <= constraint.limit]
    for key in rank(problem, columns):
        if len(rows):
            rows = rows[kept(key) == kept(key).max()]
    return {name: int(kept(own)[0]) for name, own in columns.items()} if len(rows) else None


_EFFORT = 100_000
"""Z3's resource units for one box before it is cut in two (tens of milliseconds).

Units, not seconds, so that every machine takes the same steps.
"""

_SHORTEST_S = 0.001  # Z3 counts whole milliseconds, and takes 0 for no limit
_LONGEST_S = 1e6

Box = Mapping[str, tuple[int, int]]
"""The least and the greatest count of steps of each size that is not fixed."""


class Answer(Enum):
    """What the solver says to a question."""

    FOUND = "found"
    REFUTED = "refuted"
    TIME_OVER = "time over"


class Search:
    """A problem in a Z3 context of its own, ``T = step × t`` with small bounded integers ``t``.

    A question is put to Z3 for the box of all sizes. Where Z3 gives up on a box, the
    box is cut in two along its longest side and each half is asked, so that unsatisfiable
    halves make the whole unsatisfiable. The cutting ends: in a box of one vector
    nothing is left to reason about.
    """

    def __init__(self, problem: Problem, deadline: float) -> None:
        """Take ``problem`` into Z3; ``deadline`` is on the clock of ``time.perf_counter``."""
        self.problem, self.deadline, self.calls = problem, deadline, 0
        self._context = z3.Context()
        free = [v for v in problem.variables if v.lower != v.upper]
        self._box: Box = {v.name: (v.lower // v.step, v.upper // v.step) for v in free}
        self._counts = {v.name: z3.Int(v.name, self._context) for v in free}
        self._sizes = smallest(problem) | {v.name: v.step * self._counts[v.name] for v in free}
        self._limits = [c.expression.evaluate(self._sizes) <= c.limit for c in problem.constraints]
        self._objective: Any = problem.objective.evaluate(self._sizes)

    def greater_objective(self, best: Mapping[str, int]) -> list[Any]:
        """Demand a greater objective."""
        return [self._objective > self.problem.objective.evaluate(best)]

    def preferred(self, best: Mapping[str, int]) -> list[Any]:
        """Demand the same objective and a vector earlier in the order of preference."""
        earlier = z3.BoolVal(False, self._context)
        for name, direction in reversed(self.problem.preference):
            if name in self._counts:
                size, value = self._sizes[name], best[name]
                better = size > value if direction is Direction.LARGER else size < value
                earlier = z3.Or(better, z3.And(size == value, earlier))
        return [self._objective == self.problem.objective.evaluate(best), earlier]

    def ask(self, demands: Sequence[Any] = ()) -> tuple[Answer, dict[str, int] | None]:
        """Ask for sizes that keep the constraints and meet ``demands``."""
        boxes = [self._box]
        while boxes:
            box = boxes.pop()
            halves = _halves(box)
            left_s = min(self.deadline - time.perf_counter(), _LONGEST_S)
            if left_s < _SHORTEST_S:
                return Answer.TIME_OVER, None
            # Z3's older arithmetic core refutes small bounded products in a few milliseconds,
            # the tactics of its default solver in tens
            solver = z3.SimpleSolver(ctx=self._context)
            solver.set("arith.solver", 2)
            solver.set("rlimit", _EFFORT if halves else 0)
            solver.set("timeout", int(left_s * 1000))
            for name, (low, high) in box.items():
                solver.add(self._counts[name] >= low, self._counts[name] <= high)
            solver.add(*self._limits, *demands)
            self.calls += 1
            answer = solver.check()
            if answer == z3.sat:
                return Answer.FOUND, self._found(solver.model())
            if answer == z3.unknown:
                if not halves:
                    return Answer.TIME_OVER, None
                boxes += halves
        return Answer.REFUTED, None

    def _found(self, model: Any) -> dict[str, int]:
        counts = {
            name: model.eval(count, model_completion=True).as_long()
            for name, count in self._counts.items()
        }
        return {v.name: v.step * counts.get(v.name, 1) for v in self.problem.variables}


def _halves(box: Box) -> list[Box]:
    """Cut a box in two where its sides are longest in ratio; none of one vector."""
    longest = max(box, key=lambda name: box[name][1] / box[name][0], default="")
    low, high = box.get(longest, (1, 1))
    if low == high:
        return []
    middle = min(isqrt(low * high), high - 1)
    return [{**box, longest: (low, middle)}, {**box, longest: (middle + 1, high)}]


_of_thread = threading.local()


def proven_least(kernel: str, costs: Sequence[int], *, timeout_s: float) -> bool:
    """Let Z3 refute that an entry costs less than the least; tell whether it did in time.

    Raises:
        InternalError: ``EATSS-M900``, Z3 knows a better entry.
    """
    solver = z3.SimpleSolver(ctx=_context())
    solver.set("timeout", max(1, int(1000 * timeout_s)))
    solver.from_string(better_than(costs, min(costs)))
    answer = solver.check()
    if answer == z3.sat:
        message = f"the solver knows better sizes of {kernel} than the best of the table"
        raise InternalError(Diagnostic(code="EATSS-M900", message=message))
    return bool(answer == z3.unsat)


def _context() -> Any:
    """Return the context of this thread: a new one fills 16 MiB, longer than most proofs take.

    What is asserted belongs to a solver, so that nothing of one proof is left for the next.
    """
    if not hasattr(_of_thread, "context"):
        _of_thread.context = z3.Context()
    return _of_thread.context


def better_than(costs: Sequence[int], least: int) -> str:
    """Return SMT-LIB text that holds where an entry of a table costs less than ``least``."""
    cheaper = (f"(< {cost} {least})" for cost in dict.fromkeys(costs))
    return f"(assert (or {' '.join(cheaper)}))"
