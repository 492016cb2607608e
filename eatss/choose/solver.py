"""Z3 finds and proves the optimum of a problem [EATSS, Sec. IV-L].

Inside Z3 sizes are small bounded integers, and products are kept tractable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import floor, inf, isqrt
from typing import Any

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
from eatss.choose.smt import limits_script
from eatss.program.expression import OwnSizes, Sizes

z3: Any = z3_module  # carries no types


def solve(
    problem: Problem,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    context: Any = None,
    found: Sequence[Sizes] = (),
) -> Solution | Conflict:
    """Find the best vector of ``problem`` and prove that none is better.

    Finds a solution, demands a greater objective, and repeats until that is refuted; then
    demands, at the greatest objective, a vector preferred by the problem's order of preference.
    Safe to call from several threads: every call has a context of its own.

    Args:
        problem: what to solve.
        timeout_s: seconds after which the best vector so far is returned, unproven.
        context: a context of Z3 that only this thread uses, for several problems.
        found: solutions of problems in the same variables; the best that fits is the first one.

    Raises:
        NoSolutionError: time ran out before any vector was found (``EATSS-M020``).
        InternalError: the solver's answer breaks the problem.
    """
    began = time.perf_counter()
    search = Search(problem, began + timeout_s, new_context() if context is None else context)
    fitting = [dict(sizes) for sizes in found if fits(problem, sizes)]
    best = max(fitting, key=lambda sizes: rank(problem, sizes), default=None)
    proven = False
    with suppress(_TimeOverError):
        best = search.ask() if best is None else best
        if best is None:
            return _conflict(search, began)
        for better in _improved(search, best):
            best = better
        proven = not problem.steps
    if best is None:
        message = f"time ran out before any tile sizes of {problem.kernel} were found"
        hint = "give the solver more time"
        raise NoSolutionError(Diagnostic(code="EATSS-M020", message=message, hint=hint))
    return Solution(
        values=tuple((v.name, best[v.name]) for v in problem.variables),
        objective=problem.objective.evaluate(best),
        proven=proven,
        solver_calls=search.calls,
        solve_time_s=time.perf_counter() - began,
    )


def new_context() -> Any:
    """Return a context of Z3; filling its 16 MiB takes longer than most proofs."""
    return z3.Context()


def _improved(search: Search, best: Sizes) -> Iterator[OwnSizes]:
    """Yield better and better vectors until Z3 refutes that any is better than the last.

    The objective that is demanded grows by half and more each time; once one was refuted, the next
    is in the middle between that and what was found. Where the problem has steps, it is so many
    times the last one.
    """
    problem = search.problem
    for step in problem.steps:
        while (
            found := search.ask(search.at_least(floor(step * search.value(best)) + 1))
        ) is not None:
            best = found
            yield found
    if problem.steps:
        return
    value, more, refuted = search.value(best), 1, inf
    while value + 1 < refuted:
        found = search.ask(search.at_least(value + more))
        if found is None:
            refuted = value + more
        else:
            best, value = found, search.value(found)
            yield found
        middle = max(2 * more, value // 2) if refuted == inf else (int(refuted) - value) // 2
        more = max(1, middle)
    while (found := search.ask(search.preferred(best))) is not None:
        if rank(problem, found) <= rank(problem, best):
            message = f"the solver called sizes of {problem.kernel} better that are not"
            raise InternalError(Diagnostic(code="EATSS-M900", message=message))
        best = found
        yield found


def _conflict(search: Search, began: float) -> Conflict:
    """Say what excludes every vector: the limit that the smallest tile exceeds most."""
    problem = search.problem
    excess, constraints, message = inf, problem.constraints, "its limits exclude each other"
    for times, one in too_small(problem):
        alone = Search(replace(problem, constraints=(one,)), search.deadline, search.context)
        if alone.ask() is None:
            excess, constraints, message = times, (one,), one.sentence(smallest(problem))
            break
    return Conflict(
        constraints=tuple(one.name for one in constraints),
        message=message,
        excess=excess,
        solver_calls=search.calls,
        solve_time_s=time.perf_counter() - began,
    )


_EFFORT = 50_000
"""Z3's resource units for one box before it is cut in two (tens of milliseconds).

Units, not seconds, so that every machine takes the same steps.
"""

_SHORTEST_S = 0.001  # Z3 counts whole milliseconds, and takes 0 for no limit
_LONGEST_S = 1e6

Box = Mapping[str, tuple[int, int]]
"""The least and the greatest count of steps of each size that is not fixed."""


class _TimeOverError(Exception):
    """Z3 may not go on."""


class Search:
    """A problem in Z3, ``T = step × t`` with small bounded integers ``t``.

    Limits are asserted once, from the text that is printed; what Z3 learns from them serves all
    questions. A question is put for the box of all sizes. Where Z3 gives up on a box, the box is
    cut in two along its longest side and each half is asked, so that unsatisfiable halves make the
    whole unsatisfiable. The cutting ends: in a box of one vector nothing is left to reason about.
    """

    def __init__(self, problem: Problem, deadline: float, context: Any) -> None:
        """Take ``problem`` into Z3; ``deadline`` is on the clock of ``time.perf_counter``."""
        self.problem, self.deadline, self.context, self.calls = problem, deadline, context, 0
        free = [v for v in problem.variables if v.lower != v.upper]
        self._box: Box = {v.name: (v.lower // v.step, v.upper // v.step) for v in free}
        self._counts = {v.name: z3.Int(f"t_{v.name}", context) for v in free}
        script = limits_script(problem)
        asked = replace(script, assertions=(*script.assertions, ("demanded", "(= objective 0)")))
        *limits, objective = z3.parse_smt2_string(asked.text(), ctx=context)
        self._objective: Any = objective.arg(0)
        self._solver = z3.SimpleSolver(ctx=context)
        self._solver.add(*limits)

    def value(self, sizes: Sizes) -> int:
        """Return the objective of ``sizes``."""
        return self.problem.objective.evaluate(sizes)

    def at_least(self, demanded: int) -> list[Any]:
        """Demand an objective."""
        return [self._objective >= demanded]

    def preferred(self, best: Sizes) -> list[Any]:
        """Demand the same objective and a vector earlier in the order of preference."""
        earlier = z3.BoolVal(False, self.context)
        steps = {v.name: v.step for v in self.problem.variables}
        for name, direction in reversed(self.problem.preference):
            if name in self._counts:
                count, own = self._counts[name], best[name] // steps[name]
                better = count > own if direction is Direction.LARGER else count < own
                earlier = z3.Or(better, z3.And(count == own, earlier))
        return [self._objective == self.value(best), earlier]

    def ask(self, demands: Sequence[Any] = ()) -> OwnSizes | None:
        """Return sizes that keep the constraints and meet ``demands``, if there are any.

        Raises:
            _TimeOverError: time is up.
            InternalError: the answer breaks the problem.
        """
        boxes = [self._box]
        while boxes:
            box = boxes.pop()
            halves = _halves(box)
            left_s = min(self.deadline - time.perf_counter(), _LONGEST_S)
            if left_s < _SHORTEST_S:
                raise _TimeOverError
            self._solver.set(rlimit=_EFFORT if halves else 0, timeout=int(left_s * 1000))
            self._solver.push()
            self._solver.add(*demands, *(self._within(box) if box is not self._box else ()))
            self.calls += 1
            answer = self._solver.check()
            found = self._found(self._solver.model()) if answer == z3.sat else None
            self._solver.pop()
            if found is not None:
                require_fit(self.problem, found)
                return found
            if answer == z3.unknown:
                if not halves:
                    raise _TimeOverError
                boxes += halves
        return None

    def _within(self, box: Box) -> list[Any]:
        sides = [(self._counts[name], *side) for name, side in box.items()]
        return [z3.And(low <= count, count <= high) for count, low, high in sides]

    def _found(self, model: Any) -> OwnSizes:
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
