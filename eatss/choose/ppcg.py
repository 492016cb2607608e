"""The sizes and options that PPCG's code is predicted to run best with.

PPCG has one ``--max-shared-memory`` for a program, so the kernels are
chosen together: for every setting of the options the best sizes of each kernel, then the setting
with the least sum. PPCG's own default is always a candidate. What is not expected to be better than
it by more than the model errs, or is expected to be slower, is not taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout, mapped
from eatss.base.diagnostics import NoSolutionError, Progress, no_progress
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import predicted_kernel
from eatss.choose.cuda_candidates import reach
from eatss.choose.objectives import NEVER, costs, nothing_allowed
from eatss.choose.options import DEFAULT_TIMEOUT_S, ModelOptions, ObjectiveName
from eatss.choose.selection import (
    PPCG_DEFAULT,
    PPCG_SHARED_BYTES,
    KernelSelection,
    PpcgOptions,
)
from eatss.choose.solver import proven_least
from eatss.cost.demand import Demand
from eatss.cost.ppcg_model import PpcgModel
from eatss.cost.terms import Predicted, prediction_at, too_large
from eatss.plan.numbers import Number
from eatss.plan.ppcg import PpcgCandidates, PpcgKernel

DEFAULT_TILE = 32
"""PPCG's tile along every loop."""

DEFAULT_BLOCKS: dict[int, tuple[int, ...]] = {0: (), 1: (512,), 2: (32, 16), 3: (32, 4, 4)}
"""PPCG's threads of a block, the last number along ``x``, by the number of mapped loops."""


SHARED_LIMITS = (PPCG_SHARED_BYTES, 0, 16384, 32768, 49152)
"""What ``--max-shared-memory`` may be; one number for the program."""

POINTS = (1, 2, 4, 5, 8, 10, 16)
"""Points of a thread along one loop; fives for trips such as 4000, which no larger power of two
divides."""

MOST_POINTS = {1: 16, 2: 40, 3: 16}
"""Points of a thread in all, by the number of mapped loops."""

MOST_GUARDED = 0.25
"""Share of a thread's points along a loop that may stand behind tests of their own, because the
loop's end cuts tiles off. PPCG tests them at every step of the loops inside."""

LEAST_THREADS = 32
MOST_THREADS = 1024

SERIAL_TILES = {1: (8, 16, 32, 64, 128), 2: (4, 8, 16, 32, 64)}
"""Tiles of the loops that are not mapped, by how many they are."""

Vector = tuple[int, ...]
"""Tiles of all loops of the band, then threads of the mapped ones."""


def default_vector(kernel: PpcgKernel) -> Vector:
    """Return what PPCG takes where it is told nothing."""
    tiles = (DEFAULT_TILE,) * len(kernel.band)
    return tiles + DEFAULT_BLOCKS[len(kernel.threads)]


def offered(kernel: PpcgKernel) -> tuple[Vector, ...]:
    """Return the vectors to choose from, PPCG's default first."""
    mapped = len(kernel.threads)  # the leading loops of the band
    trips = tuple(kernel.trips[name] for name in kernel.band)
    return (default_vector(kernel), *_vectors(trips[:mapped], trips[mapped:]))


@lru_cache(maxsize=256)
def _vectors(mapped: Vector, serial: Vector) -> tuple[Vector, ...]:
    """Return the vectors for loops of so many trips, those mapped to threads first."""
    sizes = SERIAL_TILES[min(2, max(1, len(serial)))]
    tiles_of_serial = list(
        product(*(sorted({min(size, trips) for size in sizes}) for trips in serial))
    )
    return tuple(
        tuple(t * p for t, p in zip(threads, points, strict=True)) + chosen + threads
        for threads, points in _mapped(mapped)
        for chosen in tiles_of_serial
    )


def _mapped(loops: Vector) -> list[tuple[Vector, Vector]]:
    """Return threads and points of a thread along the mapped loops."""
    count = len(loops)
    if not count:
        return [((), ())]
    reaches = [reach(trips) for trips in loops]
    least = min(LEAST_THREADS, prod(reaches))
    threads = [
        choice
        for choice in product(*([1 << n for n in range(11) if 1 << n <= r] for r in reaches))
        if least <= prod(choice) <= MOST_THREADS and choice[-1] >= min(4, reaches[-1])
    ]
    points = [p for p in product(POINTS, repeat=count) if prod(p) <= MOST_POINTS[count]]
    return [
        (t, p)
        for t in threads
        for p in points
        if all(
            a * b <= most and guarded(trips, a, b) <= MOST_GUARDED * b
            for trips, a, b, most in zip(loops, t, p, reaches, strict=True)
        )
    ]


def guarded(trips: int, threads: int, points: int) -> int:
    """Return how many points of a thread along a loop may lie beyond its end.

    One point a thread needs one test for the whole thread, which costs nothing inside.
    """
    left = trips % (threads * points)
    return 0 if points == 1 or not left else points - left // threads


def candidates(
    kernel: PpcgKernel, vectors: Sequence[Vector], options: PpcgOptions
) -> PpcgCandidates:
    """Return vectors as columns, under options that hold for the whole program.

    Sizes beyond a loop's trips count as its trips, threads beyond a tile as the tile.
    """
    table, ones = np.array(vectors, dtype=np.float64).T, np.ones(len(vectors))
    trips = kernel.trips
    tiles = {n: np.minimum(own, trips[n]) for n, own in zip(kernel.band, table, strict=False)}
    blocks = zip(kernel.threads, table[len(kernel.band) :], strict=True)
    return PpcgCandidates(
        tile_sizes=tuple(tiles.items()),
        block=tuple((name, np.minimum(own, tiles[name])) for name, own in blocks),
        stages=ones,
        resident=ones,
        shared_limit_bytes=options.max_shared_memory * ones,
        unroll=options.unroll_gpu_tile * ones,
    )


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


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kernel under one setting of the options, every vector costed."""

    setting: PpcgOptions
    demand: Demand
    expected: Predicted
    costs: npt.NDArray[np.int64]


class _Kernel:
    """A kernel with its vectors, under each setting of the options.

    The first vector is PPCG's default, and the first setting PPCG's own.
    """

    def __init__(
        self,
        facts: KernelFacts,
        profile: GpuProfile,
        settings: Sequence[PpcgOptions],
        objective: ObjectiveName,
    ) -> None:
        self.facts, self.profile, self.objective = facts, profile, objective
        self.model = PpcgModel.of(facts, profile)
        kernel = self.model.kernel
        self.vectors: tuple[Vector, ...] = offered(kernel) if kernel.threads else ((),)
        found = zip(settings, under_settings(self.model, self.vectors, settings), strict=True)
        self.cells = [_Cell(one, *costed, costs(costed[1], objective)) for one, costed in found]
        mapped = {loop.name for loop in facts.parallel_loops}
        # the bounds of a loop that goes to threads depend on another loop
        self.triangular = any(mapped & set(one.coupled) for one in facts.work.statements)

    @property
    def default(self) -> _Cell:
        """The kernel under PPCG's own options; its own sizes are the first entry."""
        return self.cells[0]

    @property
    def margin(self) -> float:
        """How many times the cost of a kernel of ours its default has to be."""
        trips = self.model.kernel.trips
        streams = any(trips[loop.name] > STREAMING for loop in self.facts.inner_loops)
        uncertain = (streams or self.triangular) and self.facts.loops
        return STREAMING_MARGIN if uncertain else MARGIN

    def warps(self, cell: _Cell) -> Number:
        """Return the warps of an SM that run at a time."""
        blocks = cell.demand.blocks / self.profile.sm_count
        each = np.ceil(cell.demand.threads / self.profile.threads_per_warp)
        return np.minimum(cell.expected.resident_blocks, blocks) * each

    def allowed(self, cell: _Cell) -> npt.NDArray[np.int64]:
        """Return the costs, the greatest number for what is not allowed.

        The first candidate, the default's sizes, always is.
        """
        threads = cell.demand.threads
        fewest = min(LEAST_WARPS, float(self.warps(self.default)[0]) or LEAST_WARPS)
        kept = cell.expected.time_s <= float(self.default.expected.time_s[0]) / FASTER
        kept &= self.warps(cell) >= fewest
        most = SAFE_REGISTERS * cell.demand.registers * threads
        kept &= (threads <= SAFE_THREADS) | (most <= self.profile.registers_per_block)
        if self.triangular:
            kept &= threads >= TRIANGLE_THREADS
        kept[0] = True
        found = np.where(kept, cell.costs, NEVER)
        # where nothing launches within the limits, any that does
        return found if found.min() < NEVER else cell.costs

    def table(self, cell: _Cell, *, kept: bool) -> list[int]:
        """Return the costs of what is allowed.

        Where the default is ``kept``, everything else costs its margin more, as it is not surely
        better.
        """
        table = self.allowed(cell)
        launches = table < NEVER
        if kept:
            dearer = np.ceil(np.where(launches, table, 0) * self.margin).astype(np.int64)
            table = np.where(launches, dearer, NEVER)
            table[0] = cell.costs[0]
        found: list[int] = table[table != NEVER].tolist()
        return found

    def described(self, cell: _Cell, row: int, timeout_s: float, share_s: float) -> KernelSelection:
        """Return the selection of a vector under a setting; it took so long to find it."""
        kernel, vector, default = self.model.kernel, self.vectors[row], self.default
        kept = cell.setting == PPCG_DEFAULT and (row == 0 or not vector)
        prediction = prediction_at(cell.demand, cell.expected, row)
        calls, proven = 0, not vector
        if vector and prediction is not None:
            began, table = time.perf_counter(), self.table(cell, kept=kept)
            calls, proven = 1, proven_least(self.facts.name, table, timeout_s=timeout_s)
            share_s += time.perf_counter() - began
        sizes, threads = vector[: len(kernel.band)], vector[len(kernel.band) :]
        usual = prediction_at(default.demand, default.expected, 0)
        why = too_large(default.demand, self.model.card, 0)
        return predicted_kernel(
            self.facts,
            self.profile,
            self.objective,
            layout=Layout(
                tile_sizes=tuple(zip(kernel.band, sizes, strict=False)),
                block=tuple(zip(kernel.threads, threads, strict=False)),
            ),
            private={u.access.reference for g in kernel.groups if g.private for u in g.uses},
            shared=self._shared(vector, cell.setting) if vector else (),
            shared_limit_bytes=cell.setting.max_shared_memory,
            prediction=prediction,
            objective=int(cell.costs[row]) if prediction is not None else 0,
            optimal="proven" if proven else "best found",
            solver_calls=calls,
            solve_time_s=share_s,
            compared=len(self.vectors),
            default=usual,
            keeps_default=kept,
            **({} if usual is not None else {"note": f"PPCG's default does not launch: {why}"}),
        )

    def _shared(self, vector: Vector, setting: PpcgOptions) -> set[int]:
        """Return the references that PPCG has in shared memory."""
        kernel = self.model.kernel
        plan = self.model.plan(candidates(kernel, (vector,), setting))
        pairs = zip(kernel.groups, plan.staged, strict=True)
        return {use.access.reference for group, on in pairs if on[0] for use in group.uses}


def select_ppcg(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    options: ModelOptions,
    progress: Progress = no_progress,
) -> tuple[tuple[KernelSelection, ...], PpcgOptions]:
    """Select sizes of all kernels of a program, and the options of PPCG that they share.

    Args:
        kernels: the kernels in launch order.
        profile: the card.
        options: how to build and solve the model.
        progress: hears which kernel it is at.

    Raises:
        NoSolutionError: ``EATSS-M020``, the objective allows no candidate that launches.
    """
    began = time.perf_counter()
    most_bytes = options.shared_per_block(profile)
    bytes_limits = sorted({min(m, most_bytes) for m in SHARED_LIMITS[1:]} - {PPCG_SHARED_BYTES})
    settings = [PPCG_DEFAULT, *(replace(PPCG_DEFAULT, max_shared_memory=m) for m in bytes_limits)]
    costed = []
    for number, facts in enumerate(kernels):
        progress(f"enumerating sizes of {facts.name}", number, len(kernels))
        costed.append(_Kernel(facts, profile, settings, options.objective))
    progress("solving")
    usual: _Usual = "any sizes"
    if most_bytes < PPCG_SHARED_BYTES:
        fits = all(one.default.demand.shared_bytes[0] <= most_bytes for one in costed)
        usual = "default alone" if fits else "nothing"
    chosen, rows = _best_setting(costed, len(settings), usual)
    picked = [(one, one.cells[chosen], row) for one, row in zip(costed, rows, strict=True)]
    findings = [
        nothing_allowed(one.facts.name, options.objective)
        for one, cell, row in picked
        if cell.costs[row] == NEVER and np.isfinite(cell.expected.time_s[row])
    ]
    if findings:
        raise NoSolutionError(*findings)
    share_s = (time.perf_counter() - began) / max(1, len(costed))
    timeout_s = options.timeout_s or DEFAULT_TIMEOUT_S
    found = (one.described(cell, row, timeout_s, share_s) for one, cell, row in picked)
    return tuple(found), settings[chosen]


_Usual: TypeAlias = Literal["any sizes", "default alone", "nothing"]
"""What may be chosen under PPCG's own options."""


def _best_setting(
    kernels: Sequence[_Kernel], settings: int, usual: _Usual
) -> tuple[int, list[int]]:
    """Return the setting with the least sum of costs, the first of equal ones, and rows under it.

    Under PPCG's own setting, the first, each kernel has sizes of ours where those beat the
    default's, row 0, by the margin. Another setting counts where it is worth it for the program,
    or where PPCG's own does not.
    """
    default_cost = sum(int(one.default.costs[0]) for one in kernels)
    found: list[tuple[int, int, list[int]]] = []
    for number in range(usual == "nothing", settings):
        rows, total, surely = [], 0, 0.0
        for one in kernels:
            cell = one.cells[number]
            row = int(np.argmin(one.allowed(cell)))
            worth = cell.costs[0] >= one.margin * int(cell.costs[row])
            if number == 0 and not (usual == "any sizes" and worth):
                row = 0
            rows.append(row)
            total += int(cell.costs[row])
            surely += int(cell.costs[row]) * one.margin
        if number == 0 or usual == "nothing" or default_cost >= surely:
            found.append((total, number, rows))
    _, number, rows = min(found)
    return number, rows


def under_settings(
    model: PpcgModel, vectors: tuple[Vector, ...], settings: Sequence[PpcgOptions]
) -> list[tuple[Demand, Predicted]]:
    """Return demand and prediction of every vector, for each setting.

    ``max_shared_memory`` decides which groups are staged and nothing else. Where a vector has the
    same ones as under an earlier setting, its code is the same.
    """
    every = [candidates(model.kernel, vectors, setting) for setting in settings]
    rows = np.full((len(settings), len(vectors)), -1)
    codes: list[npt.NDArray[np.float64]] = []
    new: list[npt.NDArray[np.intp]] = []
    for sizes, own in zip(every, rows, strict=True):
        code = np.array([*model.plan(sizes).staged, sizes.unroll])
        for before, earlier in zip(codes, rows, strict=False):
            same = (own < 0) & (code == before).all(axis=0)
            own[same] = earlier[same]
        fresh = np.flatnonzero(own < 0)
        own[fresh] = sum(map(len, new)) + np.arange(len(fresh))
        codes.append(code)
        new.append(fresh)

    def joined(*columns: Number) -> Number:
        return np.concatenate([one[at] for one, at in zip(columns, new, strict=True)])

    found = model.columns(mapped(joined, *every))
    return [mapped(itemgetter(own), found) for own in rows]
