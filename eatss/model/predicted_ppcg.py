"""Objectives that are predictions: the sizes and options that PPCG's code runs best with.

PPCG has one ``--max-shared-memory`` for a program, so the kernels are
chosen together: for every setting of the options the best sizes of each kernel, then the setting
with the least sum. PPCG's own default is always a candidate. What is not expected to be better than
it by more than the model errs, or is expected to be slower, is not taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout
from eatss.diagnostics import NoSolutionError
from eatss.gpu.profile import GpuProfile
from eatss.model.objectives import NEVER, OBJECTIVES, costs, nothing_allowed
from eatss.model.options import DEFAULT_TIMEOUT_S, ModelOptions, ObjectiveName
from eatss.model.ppcg_lattice import (
    SHARED_LIMITS,
    Vector,
    candidates,
    lattice,
    variable_names,
)
from eatss.model.predicted_kernel import Places, predicted_kernel
from eatss.model.problem import Table, TableProblem
from eatss.model.selection import (
    PPCG_SHARED_BYTES,
    KernelSelection,
    PpcgOptions,
    Selection,
)
from eatss.model.table_proof import solve_table
from eatss.notices import Told, nobody
from eatss.prediction.demand import Demand, joined, rows_of
from eatss.prediction.model import PpcgModel, prediction_at
from eatss.prediction.ppcg_launch import PpcgCandidates
from eatss.prediction.terms import Predicted

MARGIN = 1.25
"""Sizes of ours are taken where the default is expected to cost so many times as much: below that
the model may be wrong about which is better. It was set on the variants of
``benchmarks/results/h200/ppcg-tuning-*.jsonl``."""

STREAMING = 32
"""Trips from which a loop inside the tiles is long."""

STREAMING_MARGIN = 2.0
"""The same for kernels that run a long loop inside each tile, which PPCG does not tile: there the
prediction was up to twice off (mttkrp, which took 1.05 of the default's energy where 1.69 times as
much was expected of the default), and kernels whose loops go to threads over a triangle: there it
was up to five times off (correlation, in float 1.11 of the default's energy where half was
expected)."""

TRIANGLE_THREADS = 128
"""Threads of a block over a triangle, at least: smaller ones were predicted worst. On an H200
correlation takes 19.5 ms with 64, where its default takes 16.5."""

SAFE_THREADS = 256
"""Threads of a block that launch whatever the compiler does with registers."""

SAFE_REGISTERS = 1.1
"""So many times the registers that are expected must fit larger blocks."""

FASTER = 1.15
"""So many times as fast they have to be, for the same reason."""

LEAST_WARPS = 12
"""Warps of an SM that keep the prediction true: with fewer, what a warp waits for decides, which is
known least. The default may have fewer."""

_DEFAULT = PpcgOptions(max_shared_memory=PPCG_SHARED_BYTES, unroll_gpu_tile=False)


@dataclass(frozen=True, slots=True)
class _Space:
    """A kernel with its vectors; the first one is PPCG's default."""

    facts: KernelFacts
    model: PpcgModel
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """One kernel under one setting of the options, every vector costed."""

    demand: Demand
    expected: Predicted
    costs: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedProgram:
    """The selections of all kernels and the options they share."""

    kernels: tuple[KernelSelection, ...]
    options: PpcgOptions


def select_ppcg(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    options: ModelOptions,
    told: Told = nobody,
) -> PredictedProgram:
    """Select sizes and options of a program for PPCG.

    Args:
        kernels: the kernels in launch order.
        profile: the card.
        options: how to build and solve the model.
        told: is told which kernel it is at.

    Raises:
        NoSolutionError: ``EATSS-M023``, the objective allows no candidate that launches.
    """
    began = time.perf_counter()
    spaces = [_space(facts, profile) for facts in kernels]
    most_bytes = options.shared_per_block(profile)
    bytes_limits = sorted({min(m, most_bytes) for m in SHARED_LIMITS[1:]})
    settings = [_DEFAULT] + [
        PpcgOptions(max_shared_memory=m, unroll_gpu_tile=False)
        for m in bytes_limits
        if m != PPCG_SHARED_BYTES
    ]
    costed = []
    for number, space in enumerate(spaces):
        told(f"enumerating sizes of {space.facts.name}", number, len(spaces))
        costed.append(_cells(space, settings, options.objective))
    told("solving")
    defaults = [cells[0] for cells in costed]
    limits = _Limits(
        [_limit(cell) for cell in defaults],
        [_fewest_warps(cell, profile) for cell in defaults],
        [_is_triangular(facts) for facts in kernels],
        profile,
    )
    if most_bytes >= PPCG_SHARED_BYTES:
        usual = _Usual.ANY_SIZES
    elif all(cell.demand.shared_bytes[0] <= most_bytes for cell in defaults):
        usual = _Usual.DEFAULT_ALONE
    else:
        usual = _Usual.NOTHING
    chosen, rows, cells = _best_setting(spaces, settings, costed, limits, usual)
    _require_allowed(spaces, cells, rows, options.objective)
    share_s = (time.perf_counter() - began) / max(1, len(spaces))
    return PredictedProgram(
        kernels=tuple(
            _described(space, cells[at], rows[at], defaults[at], limits.allowed(cells[at], at),
                       chosen, profile, options, share_s)
            for at, space in enumerate(spaces)
        ),
        options=chosen,
    )  # fmt: skip


def _require_allowed(
    spaces: Sequence[_Space], cells: Sequence[_Cell], rows: Sequence[int], objective: ObjectiveName
) -> None:
    findings = [
        nothing_allowed(space.facts.name, objective)
        for space, cell, row in zip(spaces, cells, rows, strict=True)
        if cell.costs[row] == NEVER and np.isfinite(cell.expected.time_s[row])
    ]
    if findings:
        raise NoSolutionError(*findings)


def ppcg_problems(
    kernels: Sequence[KernelFacts], profile: GpuProfile, selection: Selection
) -> tuple[TableProblem | None, ...]:
    """Return the table behind each kernel of a predicted selection, ``None`` for one without sizes.

    The table is that of the setting of PPCG's options that was selected.
    """
    options, setting = selection.options, selection.ppcg_options
    assert setting is not None
    problems: list[TableProblem | None] = []
    for facts, kernel in zip(kernels, selection.kernels, strict=True):
        space = _space(facts, profile)
        if not kernel.tile_sizes:
            problems.append(None)
            continue
        default, cell = _cells(space, (_DEFAULT, setting), options.objective)
        limits = _Limits(
            [_limit(default)],
            [_fewest_warps(default, profile)],
            [_is_triangular(facts)],
            profile,
        )
        allowed = _table_costs(cell, limits.allowed(cell, 0), facts, kept=kernel.keeps_default)
        problems.append(_problem(space, allowed, options.objective))
    return tuple(problems)


def _space(facts: KernelFacts, profile: GpuProfile) -> _Space:
    model = PpcgModel.of(facts, profile)
    return _Space(facts, model, lattice(model.kernel) if model.kernel.threads else ((),))


def _table_costs(
    cell: _Cell, allowed: npt.NDArray[np.int64], facts: KernelFacts, *, kept: bool
) -> npt.NDArray[np.int64]:
    """Return what the table of a kernel holds.

    Where the default is kept, everything else costs its margin more, as it is not surely better.
    """
    if not kept:
        return allowed
    launches = allowed < NEVER
    dearer = np.ceil(np.where(launches, allowed, 0) * _margin(facts)).astype(np.int64)
    table = np.where(launches, dearer, NEVER)
    table[0] = cell.costs[0]
    return table


class _Usual(Enum):
    """What may be chosen under PPCG's own options: any sizes, its default alone, or nothing."""

    ANY_SIZES = auto()
    DEFAULT_ALONE = auto()
    NOTHING = auto()


def _best_setting(
    spaces: Sequence[_Space],
    settings: Sequence[PpcgOptions],
    costed: Sequence[Sequence[_Cell]],
    limits: _Limits,
    usual: _Usual,
) -> tuple[PpcgOptions, list[int], list[_Cell]]:
    """Return the setting with the least sum of costs, the first of equal ones, with rows and cells.

    ``costed`` has the cells of each kernel, one a setting; the first setting is PPCG's own.
    Under PPCG's own setting each kernel has sizes of ours where those are worth it. Another setting
    counts where it is worth it for the program, or where PPCG's own does not.
    """
    margins = [_margin(space.facts) for space in spaces]
    default_cost = sum(int(cells[0].costs[0]) for cells in costed)
    best: tuple[int, PpcgOptions, list[int], list[_Cell]] | None = None
    for setting, *cells in zip(settings, *costed, strict=True):
        own = setting == _DEFAULT
        if own and usual is _Usual.NOTHING:
            continue
        rows = [int(np.argmin(limits.allowed(cell, at))) for at, cell in enumerate(cells)]
        if own:
            rows = [
                row if usual is _Usual.ANY_SIZES and _worth(cell, row, margin) else 0
                for cell, row, margin in zip(cells, rows, margins, strict=True)
            ]
        costs_of = [int(cell.costs[row]) for cell, row in zip(cells, rows, strict=True)]
        surely = sum(cost * margin for cost, margin in zip(costs_of, margins, strict=True))
        if not own and usual is not _Usual.NOTHING and default_cost < surely:
            continue
        if best is None or sum(costs_of) < best[0]:
            best = sum(costs_of), setting, rows, cells
    assert best is not None  # where PPCG's own setting does not count, all others do
    return best[1], best[2], best[3]


def _worth(cell: _Cell, row: int, margin: float) -> bool:
    """Tell whether a row beats the default's sizes, row 0, by the margin."""
    return bool(cell.costs[0] >= margin * int(cell.costs[row]))


def _cells(space: _Space, settings: Sequence[PpcgOptions], objective: ObjectiveName) -> list[_Cell]:
    """Cost the vectors of a kernel under each setting."""
    return [
        _Cell(demand, expected, costs(expected, objective))
        for demand, expected in under_settings(space.model, space.vectors, settings)
    ]


def under_settings(
    model: PpcgModel, vectors: tuple[Vector, ...], settings: Sequence[PpcgOptions]
) -> list[tuple[Demand, Predicted]]:
    """Return demand and prediction of every vector, for each setting.

    ``max_shared_memory`` decides which groups are staged and nothing else. Where a vector has the
    same ones as under an earlier setting, its code is the same.
    """
    sizes = candidates(model.kernel, vectors, shared_limit_bytes=0, unroll=False)
    every = np.arange(len(vectors))
    rows = np.full((len(settings), len(vectors)), -1)
    codes: list[npt.NDArray[np.float64]] = []
    offered, count = [], 0
    for setting, own in zip(settings, rows, strict=True):
        own_code = _under(sizes, setting, every)
        code = np.array([*model.launch(own_code).staged, own_code.unroll])
        for before, earlier in zip(codes, rows, strict=False):
            same = (own < 0) & (code == before).all(axis=0)
            own[same] = earlier[same]
        fresh = np.flatnonzero(own < 0)
        own[fresh] = count + np.arange(len(fresh))
        count += len(fresh)
        codes.append(code)
        offered.append(_under(sizes, setting, fresh))
    demand, expected = model.columns(joined(offered))
    return [(rows_of(demand, own), rows_of(expected, own)) for own in rows]


def _under(
    sizes: PpcgCandidates, setting: PpcgOptions, rows: npt.NDArray[np.intp]
) -> PpcgCandidates:
    """Return some candidates as they are offered under a setting."""
    return replace(
        rows_of(sizes, rows),
        shared_limit_bytes=np.full(len(rows), float(setting.max_shared_memory)),
        unroll=np.full(len(rows), float(setting.unroll_gpu_tile)),
    )


def _limit(default: _Cell) -> float:
    """Return how long a kernel of ours may take; the default itself is not held to it."""
    return float(default.expected.time_s[0]) / FASTER


def _margin(facts: KernelFacts) -> float:
    """Return how many times a kernel's cost its default has to be."""
    trips = dict(facts.work.trips)
    streams = any(trips[loop.name] > STREAMING for loop in facts.inner_loops)
    uncertain = streams or _is_triangular(facts)
    return STREAMING_MARGIN if uncertain and facts.loops else MARGIN


def _is_triangular(facts: KernelFacts) -> bool:
    """Tell whether the bounds of a loop that goes to threads depend on another loop."""
    mapped = {loop.name for loop in facts.parallel_loops}
    return any(mapped & set(statement.coupled) for statement in facts.work.statements)


def _warps(cell: _Cell, profile: GpuProfile) -> npt.NDArray[np.float64]:
    """Return the warps of an SM that run at a time."""
    blocks = np.minimum(cell.expected.resident_blocks, cell.demand.blocks / profile.sm_count)
    return np.asarray(blocks * np.ceil(cell.demand.threads / profile.threads_per_warp))


def _fewest_warps(default: _Cell, profile: GpuProfile) -> float:
    found = float(_warps(default, profile)[0])
    return min(LEAST_WARPS, found) if found else LEAST_WARPS


@dataclass(frozen=True, slots=True)
class _Limits:
    """What keeps a kernel's candidates from being taken, kernel by kernel."""

    slowest_s: Sequence[float]
    fewest_warps: Sequence[float]
    triangular: Sequence[bool]
    profile: GpuProfile

    def allowed(self, cell: _Cell, at: int) -> npt.NDArray[np.int64]:
        """Return the costs, the greatest number for what is not allowed.

        The first candidate, the default's sizes, always is.
        """
        kept = cell.expected.time_s <= self.slowest_s[at]
        kept &= _warps(cell, self.profile) >= self.fewest_warps[at]
        most = SAFE_REGISTERS * cell.demand.registers * cell.demand.threads
        kept &= (cell.demand.threads <= SAFE_THREADS) | (most <= self.profile.registers_per_block)
        if self.triangular[at]:
            kept &= cell.demand.threads >= TRIANGLE_THREADS
        kept[0] = True
        if not np.where(kept, cell.costs, NEVER).min() < NEVER:
            kept[:] = True  # nothing launches within the limits: any that does
        return np.where(kept, cell.costs, NEVER)


def _problem(
    space: _Space, allowed: npt.NDArray[np.int64], objective: ObjectiveName
) -> TableProblem:
    return TableProblem(
        kernel=space.facts.name,
        variables=variable_names(space.model.kernel),
        cost=table_of(space.vectors, allowed, OBJECTIVES.get(objective).unit),
    )


def table_of(
    space_vectors: Sequence[Vector], cell_costs: npt.NDArray[np.int64], unit: str
) -> Table:
    """Return the vectors that launch with their costs."""
    pairs = [
        (vector, int(cost))
        for vector, cost in zip(space_vectors, cell_costs, strict=True)
        if cost != NEVER
    ]
    return Table(rows=tuple(v for v, _ in pairs), values=tuple(c for _, c in pairs), unit=unit)


def _described(
    space: _Space,
    cell: _Cell,
    row: int,
    default: _Cell,
    allowed: npt.NDArray[np.int64],
    setting: PpcgOptions,
    profile: GpuProfile,
    options: ModelOptions,
    share_s: float,
) -> KernelSelection:
    facts, kernel = space.facts, space.model.kernel
    vector = space.vectors[row]
    kept = setting == _DEFAULT and (row == 0 or not vector)
    prediction = prediction_at(cell.demand, cell.expected, row)
    solution = None
    if vector and prediction is not None:
        table = _table_costs(cell, allowed, facts, kept=kept)
        problem = _problem(space, table, options.objective)
        solution = solve_table(problem, timeout_s=options.timeout_s or DEFAULT_TIMEOUT_S)
    depth = len(kernel.band)
    described = predicted_kernel(
        facts,
        profile,
        options.objective,
        layout=Layout(
            tile_sizes=tuple(zip(kernel.band, vector[:depth], strict=True)) if vector else (),
            block=tuple(zip(kernel.threads, vector[depth:], strict=True)) if vector else (),
        ),
        places=_places(space, vector, setting),
        shared_limit_bytes=setting.max_shared_memory,
        prediction=prediction,
    )
    proven = not vector or (solution is not None and solution.proven)
    usual = prediction_at(default.demand, default.expected, 0)
    return replace(
        described,
        note=described.note if usual is not None else _too_large(default.demand, profile),
        objective=int(cell.costs[row]) if prediction is not None else 0,
        optimal="proven" if proven else "best found",
        solver_calls=0 if solution is None else solution.solver_calls,
        solve_time_s=share_s + (0.0 if solution is None else solution.solve_time_s),
        compared=len(space.vectors),
        default=usual,
        keeps_default=kept,
    )


def _too_large(default: Demand, profile: GpuProfile) -> str:
    """Return why PPCG's default does not launch."""
    threads, registers = int(default.threads[0]), int(default.registers[0])
    why = f"{int(default.shared_bytes[0])} bytes of shared memory"
    if threads * registers > profile.registers_per_block:
        why = f"{threads} threads of about {registers} registers each"
    return f"PPCG's default does not launch: its block would have {why}"


def _places(space: _Space, vector: Vector, setting: PpcgOptions) -> Places:
    """Return where PPCG puts references."""
    kernel = space.model.kernel
    private = {u.access.reference for g in kernel.groups if g.private for u in g.uses}
    if not vector:
        return Places(private, frozenset())
    chosen = candidates(
        kernel,
        (vector,),
        shared_limit_bytes=setting.max_shared_memory,
        unroll=setting.unroll_gpu_tile,
    )
    staged = space.model.launch(chosen).staged
    shared = {
        use.access.reference
        for group, on in zip(kernel.groups, staged, strict=True)
        if on[0]
        for use in group.uses
    }
    return Places(private, shared)
