"""From kernel facts to a selection: solve the grid, rank its cells, say why."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout
from eatss.diagnostics import Diagnostic, EatssError, NoSolutionError
from eatss.frozen import frozen
from eatss.gpu.profile import GpuProfile
from eatss.model.build import (
    block_loops,
    build_problem,
    build_uniform_problem,
    choose_block,
    element_bytes,
    inner_extent,
    kernel_sizes,
    memory_of,
    position_name,
    shared_budget_bytes,
    weights,
)
from eatss.model.cuda_candidates import layouts_of_each
from eatss.model.enumerate import enumerate_best
from eatss.model.options import DEFAULT_TIMEOUT_S, Cell, ModelOptions
from eatss.model.predicted_cuda import Structures, select_cuda
from eatss.model.predicted_ppcg import select_ppcg
from eatss.model.problem import Conflict, Constraint, Problem, Solution
from eatss.model.row_blocks import with_row_blocks
from eatss.model.selection import (
    CellResult,
    DroppedCell,
    KernelSelection,
    Optimality,
    ReferenceSelection,
    Selection,
    Usage,
)
from eatss.model.solver import solve
from eatss.notices import Told, nobody
from eatss.plan.phases import RowRun
from eatss.targets import TARGETS

ALTERNATIVES = 3
"""Cells listed after the best one."""

_DTYPES = {4: "float", 8: "double"}


def select_program(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    options: ModelOptions,
    *,
    file: str = "<source>",
    functions: tuple[str, ...] = (),
    host_statements: tuple[str, ...] = (),
    dtype: str | None = None,
    structures: Structures | None = None,
    row_runs: Sequence[RowRun] = (),
    strict_fp: bool = False,
    told: Told = nobody,
) -> Selection:
    """Select the tile sizes of every kernel of a program.

    Args:
        kernels: the kernels in launch order.
        profile: the card.
        options: how to build and solve the model.
        file: name of the source, for display.
        functions: names of the functions the kernels stand in.
        host_statements: statements that no kernel has, because nothing is parallel there.
        dtype: name of the element type; by default that of the widest elements.
        structures: how the generator can cut each kernel, for predictions of its code.
        row_runs: which kernels it can make one, whose blocks take rows through all of them.
        strict_fp: whether generated code keeps the order of all operations.
        told: is told which kernel it is at.

    Raises:
        InputError: options that do not fit profile or kernels.
        NoSolutionError: kernels without tile sizes within the limits, one finding each.
    """
    vector: tuple[int, ...] | None = None
    ppcg_options = None
    if options.uniform and any(facts.loops for facts in kernels):
        selections, vector = _select_uniform(kernels, profile, options)
    elif options.model == "prediction" and TARGETS[options.target].own:
        offered = structures or {}
        most = layouts_of_each(len(kernels))
        selections = _select_each(
            kernels,
            lambda facts: select_cuda(facts, offered.get(facts.name, ()), profile, options, most),
            told,
        )
        selections = with_row_blocks(
            selections, kernels, row_runs, profile, options, in_order=strict_fp
        )
    elif options.model == "prediction":
        selections, ppcg_options = select_ppcg(kernels, profile, options, told)
    else:
        selections = _select_each(
            kernels, lambda facts: select_kernel(facts, profile, options), told
        )
    widest = max((element_bytes(facts, options) for facts in kernels), default=8)
    return Selection(
        file=file,
        functions=functions,
        host_statements=host_statements,
        gpu=profile.name,
        dtype=dtype or _DTYPES.get(widest, f"{widest}-byte"),
        options=options,
        kernels=selections,
        static_shared_bytes=profile.shared_per_block_bytes,
        calibrated=profile.calibrated,
        uniform_sizes=vector,
        ppcg_options=ppcg_options,
    )


def select_kernel(
    facts: KernelFacts, profile: GpuProfile, options: ModelOptions
) -> KernelSelection:
    """Select the tile sizes of one kernel, whatever the others have.

    Raises:
        InputError: options that do not fit profile or kernel.
        NoSolutionError: no tile sizes stay within the limits in any cell.
    """
    if not facts.loops:
        return _untiled(facts, profile, options)

    def traffic_of(cell: Cell, solution: Solution) -> Fraction:
        return traffic(facts, cell.alignment(profile), dict(solution.values))

    grid = solve_grid(
        lambda cell: build_problem(facts, profile, cell, options), traffic_of, options
    )
    if not grid.solved:
        raise no_solution(f"kernel {facts.name}", grid, options)
    return _describe(facts, profile, options, grid, dict(grid.solved[0].solution.values))


def _select_each(
    kernels: Sequence[KernelFacts], select: Callable[[KernelFacts], KernelSelection], told: Told
) -> tuple[KernelSelection, ...]:
    """Select kernel by kernel and report all that have no solution, not only the first."""
    selections: list[KernelSelection] = []
    findings: list[Diagnostic] = []
    for number, facts in enumerate(kernels):
        told(f"solving {facts.name}", number, len(kernels))
        try:
            selections.append(select(facts))
        except NoSolutionError as error:
            findings += error.diagnostics
    if findings:
        raise NoSolutionError(*findings)
    return tuple(selections)


def _select_uniform(
    kernels: Sequence[KernelFacts], profile: GpuProfile, options: ModelOptions
) -> tuple[tuple[KernelSelection, ...], tuple[int, ...]]:
    """Select one vector; the cells are ranked by the sum of the kernels' traffic."""
    tiled = [facts for facts in kernels if facts.loops]

    def traffic_of(cell: Cell, solution: Solution) -> Fraction:
        waf, vector = cell.alignment(profile), dict(solution.values)
        return sum(
            (traffic(facts, waf, kernel_sizes(facts, waf, vector)) for facts in tiled), Fraction()
        )

    grid = solve_grid(
        lambda cell: build_uniform_problem(tiled, profile, cell, options), traffic_of, options
    )
    if not grid.solved:
        raise no_solution("the program with one vector of tile sizes", grid, options)
    vector = dict(grid.solved[0].solution.values)
    waf = grid.solved[0].cell.alignment(profile)
    selections = tuple(
        _describe(facts, profile, options, grid, kernel_sizes(facts, waf, vector))
        if facts.loops
        else _untiled(facts, profile, options)
        for facts in kernels
    )
    return selections, tuple(vector[position_name(at)] for at in range(len(vector)))


def _describe(
    facts: KernelFacts,
    profile: GpuProfile,
    options: ModelOptions,
    grid: SolvedGrid,
    sizes: Mapping[str, int],
) -> KernelSelection:
    """Return the selection of a kernel whose sizes are known."""
    best = grid.solved[0]
    cell, waf = best.cell, best.cell.alignment(profile)
    problem = build_problem(facts, profile, cell, options)
    limit = min(shared_budget_bytes(profile, cell), options.shared_per_block(profile))
    layout = Layout(
        tile_sizes=tuple((loop.name, sizes[loop.name]) for loop in facts.loops),
        block=choose_block(facts, dict(sizes), profile),
    )
    return KernelSelection.of(
        facts,
        layout,
        objective=problem.objective.evaluate(sizes),
        objective_formula=objective_formula(facts, waf),
        weights=weights(facts, waf),
        optimal=best.optimal,
        split_factor=cell.split,
        warp_fraction=cell.warp_fraction,
        alignment=waf,
        traffic=float(traffic(facts, waf, sizes)),
        shared_limit_bytes=limit,
        solver_calls=grid.solver_calls,
        solve_time_s=grid.solve_time_s,
        references=references(facts, cell),
        usage=tuple(usage(problem, constraint, sizes) for constraint in problem.constraints),
        alternatives=tuple(
            _alternative(facts, profile, options, entry)
            for entry in grid.solved[1 : 1 + ALTERNATIVES]
        ),
        dropped=grid.dropped,
        cells=len(grid.solved) + len(grid.dropped),
    )


def _alternative(
    facts: KernelFacts, profile: GpuProfile, options: ModelOptions, entry: SolvedCell
) -> CellResult:
    waf, values = entry.cell.alignment(profile), dict(entry.solution.values)
    sizes = kernel_sizes(facts, waf, values) if options.uniform else values
    problem = build_problem(facts, profile, entry.cell, options)
    return CellResult(
        split_factor=entry.cell.split,
        warp_fraction=entry.cell.warp_fraction,
        tile_sizes=tuple((loop.name, sizes[loop.name]) for loop in facts.loops),
        objective=problem.objective.evaluate(sizes),
        optimal=entry.optimal,
        traffic=float(traffic(facts, waf, sizes)),
    )


def objective_formula(facts: KernelFacts, waf: int) -> str:
    """Return the objective as text, loops in their order: ``T_i*T_j + 32*T_j``."""
    parts = (
        ["*".join(f"T_{loop.name}" for loop in block_loops(facts))] if block_loops(facts) else []
    )
    parts += [f"{weight}*T_{name}" for name, weight in weights(facts, waf) if weight]
    return " + ".join(parts) or "0"


def references(facts: KernelFacts, cell: Cell) -> tuple[ReferenceSelection, ...]:
    """Return the references with their class and where they are in ``cell``."""
    return tuple(
        ReferenceSelection.at(reference, memory_of(reference.memory, cell).value)
        for reference in facts.references
    )


def usage(problem: Problem, constraint: Constraint, sizes: Mapping[str, int]) -> Usage:
    """Return what ``sizes`` use of one limit."""
    scale = 1 if constraint.element_bytes is None else constraint.element_bytes
    binding = any(
        constraint.expression.evaluate({**sizes, v.name: sizes[v.name] + v.step}) > constraint.limit
        for v in problem.variables
        if sizes[v.name] < v.upper
    )
    return Usage(
        name=constraint.name,
        title=constraint.title,
        used=constraint.expression.evaluate(sizes) * scale,
        available=constraint.limit * scale,
        unit=constraint.unit if constraint.element_bytes is None else "bytes",
        binding=binding,
    )


def _untiled(facts: KernelFacts, profile: GpuProfile, options: ModelOptions) -> KernelSelection:
    """Return the selection of a kernel without a tile band: nothing to choose.

    The empty vector is the only one, so it is optimal without asking a solver.
    """
    cell = options.cells[0]
    return KernelSelection.of(
        facts,
        Layout(tile_sizes=(), block=()),
        split_factor=cell.split,
        warp_fraction=cell.warp_fraction,
        alignment=cell.alignment(profile),
        references=references(facts, cell),
    )


@frozen
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


@frozen
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
