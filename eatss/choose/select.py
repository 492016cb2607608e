"""From kernel facts to a selection: solve the grid, rank its cells, say why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cache
from itertools import chain
from math import inf, prod

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout
from eatss.base.diagnostics import Diagnostic, NoSolutionError, Progress, no_progress
from eatss.base.frozen import Names, frozen
from eatss.base.targets import MEASURES, TARGETS
from eatss.cards.profile import GpuProfile
from eatss.choose.class_blocks import with_class_blocks
from eatss.choose.cuda import (
    CudaChoice,
    KernelVariants,
    Known,
    select_once,
    with_bounds,
    with_costs,
)
from eatss.choose.cuda_candidates import layouts_of_each, points_of_thread
from eatss.choose.loop_blocks import with_loop_blocks
from eatss.choose.objectives import NEVER, first_least, summed_cost
from eatss.choose.options import DEFAULT_TIMEOUT_S, PUBLISHED, Cell, ModelOptions
from eatss.choose.ppcg import proofs_of_ppcg, select_ppcg
from eatss.choose.problem import (
    Conflict,
    Constraint,
    Problem,
    Solution,
    as_modelled,
    block_loops,
    build_problem,
    choose_block,
    element_bytes,
    inner_extent,
    kernel_sizes,
    memory_of,
    shared_budget_bytes,
    weights,
)
from eatss.choose.row_blocks import with_row_blocks
from eatss.choose.selection import (
    CellResult,
    DroppedCell,
    KernelSelection,
    ReferenceSelection,
    Selection,
    Usage,
)
from eatss.choose.smt import SmtScript, refutation
from eatss.choose.time_tiles import with_time_tiles
from eatss.cost.expected import Prediction
from eatss.plan.class_blocks import ClassProducts, ClassRun
from eatss.plan.loop_blocks import LoopRun
from eatss.plan.phases import RowRun
from eatss.plan.time_tiles import TimeRun
from eatss.program.expression import Sizes

ALTERNATIVES = 3
"""Cells listed after the best one."""

_DTYPES = {4: "float", 8: "double"}


@frozen
class Runs:
    """Kernels of a program that the generator can make one.

    Those whose blocks take ``rows`` through all of them, steps of a loop over ``times``,
    ``classes`` of tiles, and those of ``loops`` on the host, which one block may run.
    """

    rows: tuple[RowRun, ...] = ()
    times: tuple[TimeRun, ...] = ()
    classes: tuple[ClassRun | ClassProducts, ...] = ()
    loops: tuple[LoopRun, ...] = ()

    @property
    def every(self) -> Iterator[RowRun | TimeRun | ClassRun | ClassProducts | LoopRun]:
        """All of them."""
        return chain(self.rows, self.times, self.classes, self.loops)


def select_program(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    options: ModelOptions,
    *,
    file: str = "<source>",
    functions: Names = (),
    host_statements: Names = (),
    dtype: str | None = None,
    variants: KernelVariants | None = None,
    runs: Runs | None = None,
    strict_fp: bool = False,
    below: int = NEVER,
    known: Known | None = None,
    progress: Progress = no_progress,
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
        variants: how the generator can cut each kernel, for predictions of its code.
        runs: which kernels it can make one.
        strict_fp: whether generated code keeps the order of all operations.
        below: what a run has to cost less than, to be selected at all.
        known: kernels that were selected before; those selected now are added.
        progress: hears which kernel it is at.

    Raises:
        InputError: options that do not fit profile or kernels.
        NoSolutionError: kernels without tile sizes within the limits, one finding each, or
            :class:`DearerError`: kernels that stay by themselves cost more.
    """
    vector, runs = None, runs or Runs()
    modelled, card = as_modelled(kernels, profile, options)
    ppcg_options, published = None, _Published(profile=card, options=options, device=profile)
    if options.uniform and any(facts.loops for facts in kernels):
        selections, vector = published.select(modelled)
    elif options.model == "prediction" and TARGETS[options.target].own:
        offered, began = variants or {}, time.perf_counter()
        most = layouts_of_each(len(kernels))
        choices = {
            one.name: CudaChoice(one, offered.get(one.name, ()), profile, options, most)
            for one in kernels
        }
        select = cache(lambda name: select_once(choices[name], {} if known is None else known))
        if below < NEVER and options.objective in MEASURES:
            together = {name for run in runs.every for name in run.kernels}
            apart = [one for one in kernels if one.name not in together]
            _check_cheaper(
                sorted(apart, key=points_of_thread, reverse=True), select, options, below
            )
        each = _select_each(kernels, lambda own: select(own.name), progress)
        facts, found = {one.name: one for one in kernels}, {one.name: one for one in each}
        found = with_row_blocks(found, facts, runs.rows, profile, options, in_order=strict_fp)
        found = with_time_tiles(found, facts, runs.times, profile, options)
        found = with_class_blocks(found, facts, runs.classes, choices, profile, options)
        found = with_loop_blocks(found, facts, runs.loops, offered, profile, options)
        selections = with_costs(tuple(found.values()), options)
        selections = with_bounds(selections, choices, options, began)
    elif options.model == "prediction":
        selections, ppcg_options = select_ppcg(kernels, profile, options, progress)
    else:
        selections = _select_each(modelled, published.alone, progress)
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


class DearerError(NoSolutionError):
    """A run costs no less than another way to cut its regions."""


def _check_cheaper(
    kernels: Sequence[KernelFacts],
    select: Callable[[str], KernelSelection],
    options: ModelOptions,
    below: int,
) -> None:
    """Check that kernels cost less together than a run may: what others cost comes on top."""
    parts = list[Prediction]()
    for one in kernels:
        predicted = select(one.name).predicted
        parts += [] if predicted is None else [predicted]
        if first_least((summed_cost(parts, options.objective), below)):
            message = f"what kernel {one.name} costs is more than a run does otherwise"
            raise DearerError(Diagnostic(code="EATSS-M020", message=message))


def proofs(
    kernels: Sequence[KernelFacts], profile: GpuProfile, selection: Selection
) -> tuple[SmtScript, ...]:
    """Return, for each vector that was selected, the question for a better one.

    Args:
        kernels: the kernels that the selection is of.
        profile: the card it is for.
        selection: what was selected.
    """
    if selection.options.model not in PUBLISHED:
        return proofs_of_ppcg(kernels, profile, selection.options, selection.file)
    kernels, profile = as_modelled(kernels, profile, selection.options)
    pairs = [pair for pair in zip(kernels, selection.kernels, strict=True) if pair[0].loops]
    vectors = [([facts], chosen) for facts, chosen in pairs]
    if selection.uniform_sizes is not None:
        vectors = [([facts for facts, _ in pairs], pairs[0][1])]
    scripts = []
    for together, chosen in vectors:
        cell = Cell(split=chosen.split_factor, warp_fraction=chosen.warp_fraction)
        problem = build_problem(together, profile, cell, selection.options)
        sizes = selection.uniform_sizes or [size for _, size in chosen.tile_sizes]
        found = dict(zip((v.name for v in problem.variables), sizes, strict=True))
        about = f"{problem.kernel} of {selection.file}, {profile.name}, {cell}"
        scripts.append(refutation(problem, found, about))
    return tuple(scripts)


def _select_each(
    kernels: Sequence[KernelFacts],
    select: Callable[[KernelFacts], KernelSelection],
    progress: Progress,
) -> tuple[KernelSelection, ...]:
    """Select kernel by kernel and report all that have no solution, not only the first."""
    selections = []
    findings: list[Diagnostic] = []
    for number, facts in enumerate(kernels):
        progress(f"solving {facts.name}", number, len(kernels))
        try:
            selections.append(select(facts))
        except NoSolutionError as error:
            findings += error.diagnostics
    if findings:
        raise NoSolutionError(*findings)
    return tuple(selections)


def traffic(facts: KernelFacts, waf: int, sizes: Sizes) -> Fraction:
    """Return the estimated traffic from L2, in elements per iteration point.

    ``Σ V_f`` over the points of a tile, those of inner loops that a tile holds included.
    """
    points = prod(sizes[loop.name] for loop in facts.loops)
    points *= prod(inner_extent(loop, waf) for loop in facts.inner_loops)
    return Fraction(sum(one.elements.evaluate(sizes) for one in facts.references), points)


@frozen
class _Solved:
    """A cell of the grid with its optimum and its traffic."""

    cell: Cell
    solution: Solution
    traffic: Fraction

    @property
    def rank(self) -> tuple[Fraction, int, float, float]:
        """Least traffic, then largest objective, largest alignment, smallest split."""
        own = self.cell
        return self.traffic, -self.solution.objective, -own.warp_fraction, own.split


@frozen
class _Grid:
    """All cells of the grid: the solved ones, best first, and the dropped ones."""

    solved: tuple[_Solved, ...]
    dropped: tuple[DroppedCell, ...]
    solver_calls: int
    solve_time_s: float


@frozen
class _Published:
    """The published models on a card: every cell of the grid is solved, and they are ranked.

    ``profile`` is the card as modelled, ``device`` as it is.
    """

    profile: GpuProfile
    options: ModelOptions
    device: GpuProfile

    def alone(self, facts: KernelFacts) -> KernelSelection:
        """Select the tile sizes of one kernel, whatever the others have."""
        return self.select([facts])[0][0]

    def select(
        self, kernels: Sequence[KernelFacts]
    ) -> tuple[tuple[KernelSelection, ...], tuple[int, ...]]:
        """Select one vector; the cells are ranked by the sum of the kernels' traffic."""
        tiled = [facts for facts in kernels if facts.loops]
        if not tiled:
            return tuple(map(self._untiled, kernels)), ()
        alone = f"kernel {tiled[0].name}"
        what = "the program with one vector of tile sizes" if self.options.uniform else alone
        grid = self._solved(what, tiled)
        found = (self._described(k, grid) if k.loops else self._untiled(k) for k in kernels)
        return tuple(found), tuple(size for _, size in grid.solved[0].solution.values)

    def _solved(self, what: str, kernels: Sequence[KernelFacts]) -> _Grid:
        """Solve every cell and rank those with a solution.

        The time limit is one for all cells. When it is over, the cells left take the best vector
        that was found for others, unproven.

        Raises:
            NoSolutionError: ``EATSS-M020``, there is none; it names the least demanding conflict.
        """
        profile, options = self.profile, self.options
        limit_s, began = options.timeout_s, time.perf_counter()
        deadline = began + (DEFAULT_TIMEOUT_S if limit_s is None else limit_s)
        solved: list[_Solved] = []
        dropped: list[tuple[float, DroppedCell]] = []
        from eatss.choose.solver import new_context, solve  # noqa: PLC0415 - predictions need no Z3

        calls, context = 0, new_context()
        for cell in options.cells:
            problem, waf = build_problem(kernels, profile, cell, options), cell.alignment(profile)
            left_s = max(0.0, deadline - time.perf_counter())
            try:
                # where steps end the search, the way decides, and every cell goes its own
                known = [] if problem.steps else [dict(one.solution.values) for one in solved]
                own = None if problem.steps else context
                answer = solve(problem, timeout_s=left_s, context=own, found=known)
            except NoSolutionError as error:  # time ran out with nothing found
                dropped.append((inf, _dropped(cell, (), error.diagnostics[0].message)))
                continue
            calls += answer.solver_calls
            if isinstance(answer, Conflict):
                found = _dropped(cell, answer.constraints, answer.message)
                dropped.append((answer.excess, found))
            else:
                vector = [size for _, size in answer.values]
                each = (traffic(one, waf, kernel_sizes(one, waf, vector)) for one in kernels)
                solved.append(_Solved(cell=cell, solution=answer, traffic=sum(each, Fraction())))
        if not solved:
            raise self._no_solution(what, min(dropped, key=lambda pair: pair[0])[1])
        return _Grid(
            solved=tuple(sorted(solved, key=lambda one: one.rank)),
            dropped=tuple(one for _, one in dropped),
            solver_calls=calls,
            solve_time_s=time.perf_counter() - began,
        )

    def _no_solution(self, what: str, least: DroppedCell) -> NoSolutionError:
        """Return the error that names the conflict of the least demanding cell."""
        cell = Cell(split=least.split_factor, warp_fraction=least.warp_fraction)
        fixed = self.options.warp_fraction is not None, self.options.split is not None
        where = "" if all(fixed) else f" (at {cell})"
        return NoSolutionError(
            Diagnostic(
                code="EATSS-M020",
                message=f"no tile sizes of {what} stay within the limits: {least.reason}{where}",
                hint=_ADVICE[fixed],
            )
        )

    def _result(self, facts: KernelFacts, one: _Solved) -> tuple[CellResult, Problem]:
        """Return what a cell comes to for a kernel, and the problem of the kernel there."""
        waf = one.cell.alignment(self.profile)
        sizes = kernel_sizes(facts, waf, [size for _, size in one.solution.values])
        problem = build_problem([facts], self.profile, one.cell, self.options)
        result = CellResult(
            split_factor=one.cell.split,
            warp_fraction=one.cell.warp_fraction,
            tile_sizes=tuple((loop.name, sizes[loop.name]) for loop in facts.loops),
            objective=problem.objective.evaluate(sizes),
            optimal="proven" if one.solution.proven else "best found",
            traffic=float(traffic(facts, waf, sizes)),
        )
        return result, problem

    def _described(self, facts: KernelFacts, grid: _Grid) -> KernelSelection:
        """Return the selection of a kernel in the best cell."""
        profile, options, best = self.profile, self.options, grid.solved[0]
        cell, waf = best.cell, best.cell.alignment(profile)
        result, problem = self._result(facts, best)
        inner = {loop.name: inner_extent(loop, waf) for loop in facts.inner_loops}
        sizes = dict(result.tile_sizes) | inner
        block = choose_block(facts, sizes, self.device)
        weighted = weights(facts, waf, options)
        parts = ["*".join(f"T_{loop.name}" for loop in block_loops(facts, options))]
        parts += [f"{weight}*T_{name}" for name, weight in weighted if weight]
        found = {one.name: getattr(result, one.name) for one in fields(CellResult)}
        del found["tile_sizes"]
        return KernelSelection.of(
            facts,
            Layout(tile_sizes=result.tile_sizes, block=block),
            objective_formula=" + ".join(filter(None, parts)) or "0",
            weights=weighted,
            alignment=waf,
            shared_limit_bytes=min(
                shared_budget_bytes(profile, cell), options.shared_per_block(profile)
            ),
            solver_calls=grid.solver_calls,
            solve_time_s=grid.solve_time_s,
            references=_references(facts, cell, options),
            usage=tuple(_usage(problem, one, sizes) for one in problem.constraints),
            alternatives=tuple(
                self._result(facts, one)[0] for one in grid.solved[1 : 1 + ALTERNATIVES]
            ),
            dropped=grid.dropped,
            cells=len(grid.solved) + len(grid.dropped),
            **found,
        )

    def _untiled(self, facts: KernelFacts) -> KernelSelection:
        """Return the selection of a kernel without a tile band: nothing to choose.

        The empty vector is the only one, so it is optimal without asking a solver.
        """
        cell = self.options.cells[0]
        return KernelSelection.of(
            facts,
            Layout(tile_sizes=(), block=()),
            split_factor=cell.split,
            warp_fraction=cell.warp_fraction,
            alignment=cell.alignment(self.profile),
            references=_references(facts, cell, self.options),
        )


def _dropped(cell: Cell, constraints: Names, reason: str) -> DroppedCell:
    return DroppedCell(
        split_factor=cell.split,
        warp_fraction=cell.warp_fraction,
        constraints=constraints,
        reason=reason,
    )


_ADVICE = {
    (True, True): "try a smaller warp fraction or another split; auto tries all of them",
    (True, False): "try a smaller warp fraction; auto tries all of them",
    (False, True): "try another split factor; auto tries all of them",
    (False, False): "a narrower element type or a card with more on-chip memory would help",
}
"""What to do where nothing fits, by whether warp fraction and split are fixed."""


def _references(
    facts: KernelFacts, cell: Cell, options: ModelOptions
) -> tuple[ReferenceSelection, ...]:
    """Return the references with their class and where they are in ``cell``."""
    return tuple(
        ReferenceSelection.at(reference, memory_of(reference.memory, cell, options).value)
        for reference in facts.references
    )


def _usage(problem: Problem, constraint: Constraint, sizes: Sizes) -> Usage:
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
