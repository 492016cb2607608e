"""Z3 finds and proves the optimum of a problem, or of a table [EATSS, Sec. IV-L].

Inside Z3 sizes are small bounded integers, and products are kept tractable. A table goes to it as
text, a conjunction a row. Z3 compares every cost with the one that was
found, in exact integers, and answers *unsatisfiable* where none is less.

A vectorised enumeration gives Z3 the vector to begin with. Three facts keep the space small, each
checked on the polynomials before it is used. A size that takes no part in the objective, that
constraints only punish and whose smaller value is preferred stands at its smallest. A partial
vector that breaks a monotone constraint with all other sizes at their smallest has no completion.
Where objective and constraints are linear in a size and grow with it, its best value follows from
the others by a division.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import isqrt
from typing import Any

import numpy as np
import z3 as z3_module

from eatss.base.diagnostics import Diagnostic, InternalError, NoSolutionError
from eatss.base.polynomial import Polynomial
from eatss.choose.options import DEFAULT_TIMEOUT_S
from eatss.choose.problem import (
    Conflict,
    Direction,
    Problem,
    Solution,
    TableProblem,
    Variable,
    conflict,
    fits,
    is_monotone,
    monotone_constraints,
    rank,
    require_fit,
    smallest,
    tightened,
)

z3: Any = z3_module  # carries no types


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
        NoSolutionError: time ran out before any vector was found (``EATSS-M020``).
        InternalError: the solver's answer breaks the problem.
    """
    began = time.perf_counter()
    search = Search(problem, began + (DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s))
    best = None if start is None else dict(start)
    if best is None:
        answer, best = search.ask()
        if answer is Answer.REFUTED:
            return conflict(problem, search.calls, time.perf_counter() - began)
        if best is None:
            message = f"time ran out before any tile sizes of {problem.kernel} were found"
            hint = "give the solver more time"
            raise NoSolutionError(Diagnostic(code="EATSS-M020", message=message, hint=hint))
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
                raise InternalError(Diagnostic(code="EATSS-M900", message=message))
            best = found
    return best, True


_EFFORT = 100_000
"""Z3's resource units for one box before it is cut in two (tens of milliseconds).

Units, not seconds, so that every machine takes the same steps.
"""

_SHORTEST_S = 0.001  # Z3 counts whole milliseconds, and takes 0 for no limit
_LONGEST_S = 1e6


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
        self.problem = problem
        self.calls = 0
        self._deadline = deadline
        self._context = z3.Context()
        self._fixed = {v.name: v.lower for v in problem.variables if v.lower == v.upper}
        self._free = tuple(v for v in problem.variables if v.lower != v.upper)
        self._steps = {v.name: v.step for v in self._free}
        self._counts = {v.name: z3.Int(v.name, self._context) for v in self._free}
        self._limits = [self._term(c.expression) <= c.limit for c in problem.constraints]
        self._objective = self._term(problem.objective)
        self._monotone = monotone_constraints(problem)

    def greater_objective(self, best: Mapping[str, int]) -> list[Any]:
        """Demand a greater objective."""
        return [self._objective > self.problem.objective.evaluate(best)]

    def preferred(self, best: Mapping[str, int]) -> list[Any]:
        """Demand the same objective and a vector earlier in the order of preference."""
        earlier = z3.BoolVal(False, self._context)
        for name, direction in reversed(self.problem.preference):
            if name in self._fixed:
                continue
            count, value = self._counts[name], best[name] // self._steps[name]
            better = count > value if direction is Direction.LARGER else count < value
            earlier = z3.Or(better, z3.And(count == value, earlier))
        return [self._objective == self.problem.objective.evaluate(best), earlier]

    def ask(self, demands: Sequence[Any] = ()) -> tuple[Answer, dict[str, int] | None]:
        """Ask for sizes that keep the constraints and meet ``demands``."""
        boxes = [self._free]
        while boxes:
            box = self._tightened(boxes.pop())
            one_vector = all(v.lower == v.upper for v in box)
            solver = self._solver(0 if one_vector else _EFFORT)
            if solver is None:
                return Answer.TIME_OVER, None
            solver.add(*self._bounds(box), *self._limits, *demands)
            self.calls += 1
            answer = solver.check()
            if answer == z3.sat:
                return Answer.FOUND, self._sizes(solver.model())
            if answer == z3.unknown:
                halves = self._halves(box)
                if not halves:
                    return Answer.TIME_OVER, None
                boxes += halves
        return Answer.REFUTED, None

    def _solver(self, effort: int) -> Any | None:
        """Return a fresh solver of so many resource units (0: any), ``None`` where time is up.

        Z3's older arithmetic core refutes small bounded products in a few milliseconds,
        the tactics of its default solver in tens.
        """
        left_s = min(self._deadline - time.perf_counter(), _LONGEST_S)
        if left_s < _SHORTEST_S:
            return None
        solver = z3.SimpleSolver(ctx=self._context)
        solver.set("arith.solver", 2)
        solver.set("rlimit", effort)
        solver.set("timeout", int(left_s * 1000))
        return solver

    def _term(self, polynomial: Polynomial) -> Any:
        """Return a polynomial in tile sizes as a term in the counts ``t``."""
        terms = []
        for term in Polynomial.of(self._scaled(polynomial)).terms:
            product = z3.IntVal(term.coefficient, self._context)
            for name in term.loops:
                product = product * self._counts[name]
            terms.append(product)
        if not terms:
            return z3.IntVal(0, self._context)
        return terms[0] if len(terms) == 1 else z3.Sum(terms)

    def _scaled(self, polynomial: Polynomial) -> Iterator[tuple[int, list[str]]]:
        for term in polynomial.terms:
            coefficient = term.coefficient
            for name in term.loops:
                coefficient *= self._fixed[name] if name in self._fixed else self._steps[name]
            yield coefficient, [name for name in term.loops if name not in self._fixed]

    def _tightened(self, box: Sequence[Variable]) -> tuple[Variable, ...]:
        fixed = [v for v in self.problem.variables if v.name in self._fixed]
        return tightened([*box, *fixed], self._monotone)[: len(box)]

    def _bounds(self, box: Sequence[Variable]) -> list[Any]:
        bounds = []
        for v in box:
            count = self._counts[v.name]
            bounds += [count >= v.lower // v.step, count <= v.upper // v.step]
        return bounds

    @staticmethod
    def _halves(box: Sequence[Variable]) -> list[tuple[Variable, ...]]:
        """Cut a box in two where its sides are longest in ratio; none of one vector."""
        longest = max(box, key=lambda v: v.upper / v.lower, default=None)
        if longest is None or longest.lower == longest.upper:
            return []
        low, high = longest.lower // longest.step, longest.upper // longest.step
        middle = min(isqrt(low * high), high - 1) * longest.step
        above = middle + longest.step
        return [
            tuple(replace(v, upper=middle) if v is longest else v for v in box),
            tuple(replace(v, lower=above) if v is longest else v for v in box),
        ]

    def _sizes(self, model: Any) -> dict[str, int]:
        sizes = dict(self._fixed)
        for name, count in self._counts.items():
            sizes[name] = self._steps[name] * model.eval(count, model_completion=True).as_long()
        return sizes


_of_thread = threading.local()


def solve_table(problem: TableProblem, *, timeout_s: float) -> Solution:
    """Find the row of least cost, the first of equal ones, and let Z3 refute any better one.

    Raises:
        InternalError: ``EATSS-M900``, Z3 knows a better row.
    """
    began = time.perf_counter()
    least = min(problem.costs)
    row = problem.rows[problem.costs.index(least)]
    solver = z3.SimpleSolver(ctx=_context())
    solver.set("timeout", max(1, int(1000 * timeout_s)))
    solver.from_string(better_than(problem, least))
    answer = solver.check()
    if answer == z3.sat:
        message = f"the solver knows better sizes of {problem.kernel} than the best of the table"
        raise InternalError(Diagnostic(code="EATSS-M900", message=message))
    return Solution(
        values=tuple(zip(problem.variables, row, strict=True)),
        objective=least,
        proven=bool(answer == z3.unsat),
        solver_calls=1,
        solve_time_s=time.perf_counter() - began,
    )


def _context() -> Any:
    """Return the context of this thread: a new one fills 16 MiB, longer than most proofs take.

    What is asserted belongs to a solver, so that nothing of one proof is left for the next.
    """
    if not hasattr(_of_thread, "context"):
        _of_thread.context = z3.Context()
    return _of_thread.context


def better_than(problem: TableProblem, least: int) -> str:
    """Return SMT-LIB text that holds where a row costs less than ``least``."""
    lines = []
    for at, column in enumerate(zip(*problem.rows, strict=True)):
        lines.append(f"(declare-const v{at} Int)")
        lines += [
            f"(define-fun v{at}_{value} () Bool (= v{at} {value}))" for value in sorted({*column})
        ]
    cheaper = (
        f"(and {' '.join(f'v{at}_{value}' for at, value in enumerate(row))} (< {cost} {least}))"
        for row, cost in zip(problem.rows, problem.costs, strict=True)
    )
    return "\n".join([*lines, f"(assert (or {' '.join(cheaper)}))"])


# -- enumeration -------------------------------------------------------------------------------

Columns = dict[str, Any]
"""Sizes by name, a number for all rows or an entry a row."""

MOST_VECTORS = 1 << 22
"""Vectors looked at before the enumeration gives up on being exact."""

_CHUNK = 1 << 16
_SAFE = 1 << 62


def enumerate_best(problem: Problem) -> dict[str, int] | None:
    """Return the best vector seen of ``problem``, ``None`` where none was found.

    Looks at no more than about ``MOST_VECTORS``; within them it is the best of all. Without one
    the problem may still have a solution, unless it is monotone.
    """
    scan = _Scan(_reduced(problem))
    if _largest_value(scan.problem) < _SAFE:
        scan.expand({}, 1)
    return scan.best


def _reduced(problem: Problem) -> Problem:
    """Narrow the variables without losing the best vector."""
    lower = smallest(problem)
    smaller = {name for name, way in problem.preference if way is Direction.SMALLER}
    variables = []
    for v in tightened(problem.variables, monotone_constraints(problem)):
        idle = v.name in smaller and v.name not in problem.objective.loops
        harmful = all(is_monotone(c.expression, lower, v.name) for c in problem.constraints)
        variables.append(replace(v, upper=v.lower) if idle and harmful else v)
    return replace(problem, variables=tuple(variables))


def _largest_value(problem: Problem) -> int:
    """Return a bound on the magnitude of every number the scan computes."""
    upper = {v.name: max(v.upper, 1) for v in problem.variables}
    polynomials = [c.expression for c in problem.constraints] + [problem.objective]
    magnitudes = [
        Polynomial.of((abs(t.coefficient), t.loops) for t in p.terms).evaluate(upper)
        for p in polynomials
    ]
    return max([*magnitudes, *(c.limit for c in problem.constraints)])


def _greedy(problem: Problem, lower: dict[str, int]) -> dict[str, int] | None:
    """Grow one size after the other as far as it goes, from several first sizes."""
    if not fits(problem, lower):
        return None
    growing = [v for v in problem.variables if v.upper > v.lower]
    best = lower
    for turn in range(len(growing)):
        sizes = dict(lower)
        for v in growing[turn:] + growing[:turn]:
            sizes = max(sizes, _largest_fitting(problem, v, sizes), key=lambda s: rank(problem, s))
        best = max(best, sizes, key=lambda s: rank(problem, s))
    return best


def _largest_fitting(problem: Problem, v: Variable, sizes: dict[str, int]) -> dict[str, int]:
    """Return sizes with the largest of one that a bisection finds feasible, else as they are."""
    values, low, high = v.values, 0, len(v.values) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(problem, {**sizes, v.name: values[middle]}):
            low = middle
        else:
            high = middle - 1
    grown = {**sizes, v.name: values[low]}
    return grown if fits(problem, grown) else sizes


class _Scan:
    """A depth-first walk over chunks of partial vectors; ``left`` may still be looked at.

    The best value of the ``last`` size follows from the others by a division.
    """

    def __init__(self, problem: Problem) -> None:
        lower = smallest(problem)
        self.problem, self.lower, self.left = problem, lower, MOST_VECTORS
        self.best = _greedy(problem, lower)
        self.upper = {v.name: v.upper for v in problem.variables}
        self.prunable = monotone_constraints(problem)
        self.objective_grows = is_monotone(problem.objective, lower)
        free = [v for v in problem.variables if v.upper > v.lower]
        solvable = filter(self._is_solvable, free)
        self.last = max(solvable, key=lambda v: len(v.values), default=None)
        self.order = [v for v in free if v is not self.last]

    def _is_solvable(self, v: Variable) -> bool:
        """Whether the best value of ``v`` is the largest feasible one, by a division."""
        polynomials = [c.expression for c in self.problem.constraints]
        grows = all(is_monotone(p, self.lower, v.name) for p in polynomials)
        linear = all(
            term.loops.count(v.name) <= 1
            for p in [*polynomials, self.problem.objective]
            for term in p.terms
        )
        # strictly growing: some term with v, none of them negative, all sizes positive
        factors = [t.coefficient for t in self.problem.objective.terms if v.name in t.loops]
        return linear and grows and bool(factors) and min(factors) > 0

    def expand(self, chosen: Columns, count: int, depth: int = 0) -> None:
        """Look at all vectors that begin with the chosen columns, of so many entries."""
        if depth == len(self.order):
            self._finish(chosen, count)
            return
        v = self.order[depth]
        values = np.arange(v.lower, v.upper + 1, v.step, dtype=np.int64)
        rows = max(1, _CHUNK // len(values))
        for begin in range(0, count, rows):
            if self.left < 0:
                return
            end = min(count, begin + rows)
            grown = {
                name: np.repeat(column[begin:end], len(values)) for name, column in chosen.items()
            }
            grown[v.name] = np.tile(values, end - begin)
            keep = self._worthwhile(grown, len(grown[v.name]))
            self.left -= len(keep)
            if keep.any():
                kept = {name: column[keep] for name, column in grown.items()}
                self.expand(kept, int(keep.sum()), depth + 1)

    def _worthwhile(self, chosen: Columns, count: int) -> Any:
        """Return which partial vectors may be completed, and may be best."""
        keep = np.ones(count, dtype=bool)
        for constraint in self.prunable:
            least = constraint.expression.evaluate({**self.lower, **chosen})
            keep &= least <= constraint.limit
        if self.best is not None and self.objective_grows:
            most = self.problem.objective.evaluate({**self.upper, **chosen})
            keep &= most >= self.problem.objective.evaluate(self.best)
        return keep

    def _finish(self, chosen: Columns, count: int) -> None:
        """Compare whole vectors, each with the largest last size that it can have."""
        problem, columns = self.problem, {**self.lower, **chosen}
        if self.last is not None:
            columns[self.last.name] = self._largest_feasible(self.last, columns, count)
        keep = np.ones(count, dtype=bool)
        for v in problem.variables:
            keep &= columns[v.name] >= v.lower
        for constraint in problem.constraints:
            keep &= constraint.expression.evaluate(columns) <= constraint.limit
        rows = np.flatnonzero(keep)
        keys: list[Any] = [problem.objective.evaluate(columns)]
        for name, way in problem.preference:
            keys.append(columns[name] if way is Direction.LARGER else -columns[name])
        for key in keys:
            if len(rows) == 0:
                return
            full = np.broadcast_to(key, (count,))[rows]
            rows = rows[full == full.max()]
        found = {
            name: int(np.broadcast_to(column, (count,))[rows[0]])
            for name, column in columns.items()
        }
        if self.best is None or rank(problem, found) > rank(problem, self.best):
            self.best = found

    def _largest_feasible(self, v: Variable, columns: Columns, count: int) -> Any:
        """Return the largest value of ``v`` that every constraint leaves, 0 for none."""
        highest = np.full(count, v.upper, dtype=np.int64)
        for constraint in self.problem.constraints:
            if v.name in constraint.expression.loops:
                none = constraint.expression.evaluate({**columns, v.name: 0})
                slope = constraint.expression.evaluate({**columns, v.name: 1}) - none
                bound = (constraint.limit - none) // np.maximum(slope, 1)
                highest = np.minimum(highest, np.where(slope > 0, bound, v.upper))
        return np.where(highest >= v.lower, v.lower + (highest - v.lower) // v.step * v.step, 0)
