"""The optimum of a problem by vectorised enumeration: the solver's starting point.

Three facts keep the space small, each checked on the polynomials before it is
used. A size that takes no part in the objective, that constraints only punish and
whose smaller value is preferred stands at its smallest. A partial vector that breaks
a monotone constraint with all other sizes at their smallest has no completion.
Where objective and constraints are linear in a size and grow with it, its
best value follows from the others by a division.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eatss.frozen import frozen
from eatss.model.problem import (
    Direction,
    Problem,
    Variable,
    fits,
    is_monotone,
    monotone_constraints,
    rank,
    smallest,
    tightened,
)
from eatss.polynomial import Polynomial

Columns = dict[str, "npt.NDArray[np.int64] | int"]

DEFAULT_CAP = 1 << 22
"""Vectors looked at before the enumeration gives up on being exact."""

_CHUNK = 1 << 16
_SAFE = 1 << 62


@frozen
class Enumeration:
    """The best vector seen; ``exact`` where no vector of the problem is better."""

    values: tuple[tuple[str, int], ...]
    exact: bool


def enumerate_best(problem: Problem, *, cap: int = DEFAULT_CAP) -> Enumeration | None:
    """Return the best vector of ``problem``, ``None`` where none was found.

    Looks at no more than about ``cap`` vectors; above that the answer is the best of
    those seen and of a greedy search, and ``exact`` is false. Without a vector
    the problem may still have a solution, unless it is monotone.
    """
    reduced = _reduce(problem)
    lower = smallest(problem)
    greedy = _greedy(reduced, lower)
    if _largest_value(reduced) >= _SAFE:
        return None if greedy is None else _result(problem, greedy, exact=False)
    scan = _Scan(problem=reduced, lower=lower, left=cap, best=greedy)
    scan.run()
    if scan.best is None:
        return None
    return _result(problem, scan.best, exact=scan.left >= 0)


def _result(problem: Problem, sizes: dict[str, int], *, exact: bool) -> Enumeration:
    return Enumeration(
        values=tuple((v.name, sizes[v.name]) for v in problem.variables), exact=exact
    )


def _reduce(problem: Problem) -> Problem:
    """Narrow the variables without losing the best vector."""
    lower = smallest(problem)
    smaller = {name for name, way in problem.preference if way is Direction.SMALLER}
    variables = []
    for v in tightened(problem.variables, monotone_constraints(problem)):
        idle = v.name in smaller and v.name not in problem.objective.loops
        harmful = all(is_monotone(c.expression, lower, v.name) for c in problem.constraints)
        variables.append(_fixed(v, v.lower) if idle and harmful else v)
    return Problem(
        kernel=problem.kernel,
        variables=tuple(variables),
        constraints=problem.constraints,
        objective=problem.objective,
        preference=problem.preference,
    )


def _fixed(v: Variable, size: int) -> Variable:
    return Variable(name=v.name, step=v.step, lower=size, upper=size, reason=v.reason)


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
            sizes = max(
                ({**sizes, v.name: size} for size in _probes(problem, v, sizes)),
                key=lambda s: rank(problem, s),
            )
        best = max(best, sizes, key=lambda s: rank(problem, s))
    return best


def _probes(problem: Problem, v: Variable, sizes: dict[str, int]) -> list[int]:
    """Return the smallest size and the largest that a bisection finds feasible."""
    values, low, high = v.values, 0, len(v.values) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(problem, {**sizes, v.name: values[middle]}):
            low = middle
        else:
            high = middle - 1
    return (
        [sizes[v.name], values[low]]
        if fits(problem, {**sizes, v.name: values[low]})
        else [sizes[v.name]]
    )


@dataclass(slots=True)
class _Scan:
    """A depth-first walk over chunks of partial vectors."""

    problem: Problem
    lower: dict[str, int]
    left: int
    best: dict[str, int] | None
    order: list[Variable] = field(default_factory=list)
    last: Variable | None = None
    prunable: list[bool] = field(default_factory=list)
    objective_grows: bool = False

    def run(self) -> None:
        problem, lower = self.problem, self.lower
        self.prunable = [is_monotone(c.expression, lower) for c in problem.constraints]
        self.objective_grows = is_monotone(problem.objective, lower)
        free = [v for v in problem.variables if v.upper > v.lower]
        solvable = [v for v in free if self._is_solvable(v)]
        if solvable:
            self.last = max(solvable, key=lambda v: len(v.values))
        self.order = [v for v in free if v is not self.last]
        self._expand({}, 1, 0)

    def _is_solvable(self, v: Variable) -> bool:
        """Whether the best value of ``v`` is the largest feasible one, by a division."""
        polynomials = [c.expression for c in self.problem.constraints]
        linear = all(
            term.loops.count(v.name) <= 1
            for p in [*polynomials, self.problem.objective]
            for term in p.terms
        )
        grows = all(is_monotone(p, self.lower, v.name) for p in polynomials)
        # strictly growing: some term with v, none of them negative, all sizes positive
        factors = [t.coefficient for t in self.problem.objective.terms if v.name in t.loops]
        return linear and grows and bool(factors) and min(factors) > 0

    def _expand(self, chosen: Columns, count: int, depth: int) -> None:
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
            grown: Columns = {
                name: np.repeat(np.asarray(column)[begin:end], len(values))
                for name, column in chosen.items()
            }
            grown[v.name] = np.tile(values, end - begin)
            self.left -= (end - begin) * len(values)
            kept, size = self._prune(grown, (end - begin) * len(values))
            if size:
                self._expand(kept, size, depth + 1)

    def _prune(self, chosen: Columns, count: int) -> tuple[Columns, int]:
        """Drop partial vectors that cannot be completed or cannot be best."""
        keep = np.ones(count, dtype=bool)
        at_least: Columns = {**self.lower, **chosen}
        for constraint, prunable in zip(self.problem.constraints, self.prunable, strict=True):
            if prunable:
                keep &= evaluate_columns(constraint.expression, at_least) <= constraint.limit
        if self.best is not None and self.objective_grows:
            at_most: Columns = {**{v.name: v.upper for v in self.problem.variables}, **chosen}
            incumbent = self.problem.objective.evaluate(self.best)
            keep &= evaluate_columns(self.problem.objective, at_most) >= incumbent
        if keep.all():
            return chosen, count
        return {name: np.asarray(c)[keep] for name, c in chosen.items()}, int(keep.sum())

    def _finish(self, chosen: Columns, count: int) -> None:
        columns: Columns = {**self.lower, **chosen}
        if self.last is not None:
            columns[self.last.name] = self._largest_feasible(self.last, chosen, count)
        keep = np.ones(count, dtype=bool)
        for v in self.problem.variables:
            keep &= np.asarray(columns[v.name]) >= v.lower
        for constraint in self.problem.constraints:
            keep &= evaluate_columns(constraint.expression, columns) <= constraint.limit
        rows = np.flatnonzero(keep)
        keys = [evaluate_columns(self.problem.objective, columns)]
        for name, way in self.problem.preference:
            column = np.asarray(columns[name])
            keys.append(column if way is Direction.LARGER else -column)
        for key in keys:
            if len(rows) == 0:
                return
            full = np.broadcast_to(key, (count,))[rows]
            rows = rows[full == full.max()]
        found = {
            name: int(np.broadcast_to(np.asarray(column), (count,))[rows[0]])
            for name, column in columns.items()
        }
        if self.best is None or rank(self.problem, found) > rank(self.problem, self.best):
            self.best = found

    def _largest_feasible(self, v: Variable, chosen: Columns, count: int) -> npt.NDArray[np.int64]:
        """Return the largest value of ``v`` that every constraint leaves, 0 for none."""
        columns: Columns = {**self.lower, **chosen}
        highest = np.full(count, v.upper, dtype=np.int64)
        for constraint in self.problem.constraints:
            slope_terms = [
                (t.coefficient, tuple(name for name in t.loops if name != v.name))
                for t in constraint.expression.terms
                if v.name in t.loops
            ]
            if not slope_terms:
                continue
            rest = Polynomial.of(
                (t.coefficient, t.loops)
                for t in constraint.expression.terms
                if v.name not in t.loops
            )
            slope = np.broadcast_to(evaluate_columns(Polynomial.of(slope_terms), columns), (count,))
            room = np.broadcast_to(constraint.limit - evaluate_columns(rest, columns), (count,))
            bound = np.where(slope > 0, room // np.maximum(slope, 1), v.upper)
            highest = np.minimum(highest, bound)
        return np.where(highest >= v.lower, v.lower + (highest - v.lower) // v.step * v.step, 0)


def evaluate_columns(polynomial: Polynomial, columns: Columns) -> npt.NDArray[np.int64]:
    """Return the polynomial's value for each row."""
    total: npt.NDArray[np.int64] | int = 0
    for term in polynomial.terms:
        product: npt.NDArray[np.int64] | int = term.coefficient
        for name in term.loops:
            product = product * columns[name]
        total = total + product
    return np.asarray(total, dtype=np.int64)
