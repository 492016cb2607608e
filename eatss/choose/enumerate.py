"""The optimum of a problem by vectorised enumeration: the solver's starting point.

Three facts keep the space small, each checked on the polynomials before it is
used. A size that takes no part in the objective, that constraints only punish and
whose smaller value is preferred stands at its smallest. A partial vector that breaks
a monotone constraint with all other sizes at their smallest has no completion.
Where objective and constraints are linear in a size and grow with it, its
best value follows from the others by a division.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from eatss.base.frozen import frozen
from eatss.base.polynomial import Polynomial
from eatss.choose.problem import (
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

Columns = dict[str, Any]
"""Sizes by name, a number for all rows or an entry a row."""

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
    scan = _Scan(_reduced(problem), cap)
    exact = _largest_value(scan.problem) < _SAFE
    if exact:
        scan.expand({}, 1)
    if scan.best is None:
        return None
    values = tuple((v.name, scan.best[v.name]) for v in problem.variables)
    return Enumeration(values=values, exact=exact and scan.left >= 0)


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

    def __init__(self, problem: Problem, left: int) -> None:
        lower = smallest(problem)
        self.problem, self.lower, self.left = problem, lower, left
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
