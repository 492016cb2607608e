"""All cells of the grid: solved, ranked, or dropped with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from eatss.analysis.facts import KernelFacts
from eatss.diagnostics import Diagnostic, EatssError, NoSolutionError
from eatss.model.build import inner_extent
from eatss.model.enumerate import enumerate_best
from eatss.model.options import DEFAULT_TIMEOUT_S, Cell, ModelOptions
from eatss.model.problem import Problem
from eatss.model.selection import DroppedCell, Optimality
from eatss.model.solution import Conflict, Solution
from eatss.model.solver import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedCell:
    """A cell of the grid with its optimum and its rank among the cells (smaller is better)."""

    cell: Cell
    solution: Solution
    traffic: Fraction

    @property
    def rank(self) -> tuple[Fraction, int, float, float]:
        """Least traffic, then largest objective, largest alignment, smallest split."""
        return (
            self.traffic,
            -self.solution.objective,
            -self.cell.warp_fraction,
            self.cell.split,
        )

    @property
    def optimal(self) -> Optimality:
        """What may be said of the solution."""
        return "proven" if self.solution.proven else "best found"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedGrid:
    """All cells of the grid: the solved ones, best first, and the dropped ones."""

    solved: tuple[SolvedCell, ...]
    dropped: tuple[DroppedCell, ...]
    solver_calls: int
    solve_time_s: float


def solve_grid(
    build: Callable[[Cell], Problem],
    traffic_of: Callable[[Cell, Solution], Fraction],
    options: ModelOptions,
) -> SolvedGrid:
    """Solve every cell and rank those with a solution.

    The time limit is one for all cells. When it is over, the cells left take the
    enumeration's vector, unproven.
    """
    began = time.perf_counter()
    deadline = began + (DEFAULT_TIMEOUT_S if options.timeout_s is None else options.timeout_s)
    solved: list[SolvedCell] = []
    dropped: list[tuple[float, DroppedCell]] = []
    calls = 0
    for cell in options.cells:
        problem = build(cell)
        start = enumerate_best(problem)
        left_s = max(0.0, deadline - time.perf_counter())
        try:
            answer = solve(problem, start=dict(start.values) if start else None, timeout_s=left_s)
        except NoSolutionError as error:  # time ran out with nothing found
            dropped.append((float("inf"), _dropped(cell, (), error.diagnostics[0].message)))
            continue
        calls += answer.solver_calls
        if isinstance(answer, Conflict):
            dropped.append((answer.excess, _dropped(cell, answer.constraints, answer.message)))
        else:
            amount = traffic_of(cell, answer)
            solved.append(SolvedCell(cell=cell, solution=answer, traffic=amount))
    return SolvedGrid(
        solved=tuple(sorted(solved, key=lambda entry: entry.rank)),
        # least demanding first when nothing is solved, else in the order of the grid
        dropped=tuple(
            entry for _, entry in (dropped if solved else sorted(dropped, key=lambda pair: pair[0]))
        ),
        solver_calls=calls,
        solve_time_s=time.perf_counter() - began,
    )


def _dropped(cell: Cell, constraints: tuple[str, ...], reason: str) -> DroppedCell:
    return DroppedCell(
        split_factor=cell.split,
        warp_fraction=cell.warp_fraction,
        constraints=constraints,
        reason=reason,
    )


def traffic(facts: KernelFacts, waf: int, sizes: Mapping[str, int]) -> Fraction:
    """Return the estimated traffic from L2, in elements per iteration point.

    ``Σ V_f`` over the points of a tile, those of inner loops that a tile holds included.
    """
    points = prod(sizes[loop.name] for loop in facts.loops)
    points *= prod(inner_extent(loop, waf) for loop in facts.inner_loops)
    return Fraction(sum(v.elements.evaluate(sizes) for v in facts.volumes), points)


def no_solution(what: str, grid: SolvedGrid, options: ModelOptions) -> EatssError:
    """Return the error that names the conflict of the least demanding cell."""
    least = grid.dropped[0]
    cell = Cell(split=least.split_factor, warp_fraction=least.warp_fraction)
    where = f" (at {cell})" if options.split is None or options.warp_fraction is None else ""
    return NoSolutionError(
        Diagnostic(
            code="EATSS-M020",
            message=f"no tile sizes of {what} stay within the limits: {least.reason}{where}",
            hint=_advice(options),
        )
    )


def _advice(options: ModelOptions) -> str:
    if options.warp_fraction is not None and options.split is not None:
        return "try a smaller warp fraction or another split; auto tries all of them"
    if options.warp_fraction is not None:
        return "try a smaller warp fraction; auto tries all of them"
    if options.split is not None:
        return "try another split factor; auto tries all of them"
    return "a narrower element type or a card with more on-chip memory would help"
