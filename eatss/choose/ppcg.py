"""The sizes and options that PPCG's code is predicted to run best with.

A search looks through all whole sizes of each kernel (:mod:`eatss.choose.search`), whatever
``--max-shared-memory`` is. PPCG has one for a program, so the kernels are chosen together then: for
every setting that one of them likes the best sizes of each, and the setting with the least sum.
PPCG's own default is always a candidate. What is not expected to be better than it by more than the
model errs is not taken.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout
from eatss.base.diagnostics import NoSolutionError, Progress, no_progress
from eatss.base.tape import Taped
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import predicted_kernel
from eatss.choose.cuda_candidates import pairs_within, points_along, powers, reach
from eatss.choose.objectives import NEVER, OBJECTIVES, costs, nothing_allowed, values
from eatss.choose.options import ModelOptions, ObjectiveName
from eatss.choose.search import (
    IRREGULAR_MARGIN,
    Costs,
    Effort,
    Search,
    Sizes,
    efforts_of,
    prove,
    search,
)
from eatss.choose.selection import (
    PPCG_DEFAULT,
    PPCG_SHARED_BYTES,
    KernelSelection,
    PpcgOptions,
)
from eatss.choose.smt import SmtScript, applied, box_term, searched_script, symbol
from eatss.cost.demand import Demand
from eatss.cost.ppcg_model import PpcgModel
from eatss.cost.terms import Predicted, prediction_at, too_large
from eatss.plan.intervals import Box, Ends, Interval, Monomial, least_of, most_of
from eatss.plan.numbers import Flag, Number
from eatss.plan.ppcg import PpcgCandidates, PpcgKernel

DEFAULT_TILE = 32
"""PPCG's tile along every loop."""

DEFAULT_BLOCKS: dict[int, tuple[int, ...]] = {0: (), 1: (512,), 2: (32, 16), 3: (32, 4, 4)}
"""PPCG's threads of a block, the last number along ``x``, by the number of mapped loops."""


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


def regular_vectors(kernel: PpcgKernel) -> Sizes:
    """Return vectors of a kind that the prediction was fitted on: powers of two, whole tiles."""
    mapped, trips = len(kernel.threads), [kernel.trips[name] for name in kernel.band]
    reaches, serial = [*map(reach, trips[:mapped])], trips[mapped:]
    least = min(LEAST_THREADS, prod(reaches))
    blocks = [
        own
        for own in powers(min(one, MOST_THREADS) for one in reaches)
        if least <= prod(own) <= MOST_THREADS and own[-1] >= min(4, reaches[-1])
    ]
    every = points_along(POINTS, mapped, MOST_POINTS[mapped], mapped)
    threads, points = pairs_within(blocks, every, reaches)
    left = trips[:mapped] % (threads * points)
    # one point a thread needs one test for the whole thread, which costs nothing inside
    beyond = np.where((points > 1) & (left > 0), points - left // threads, 0)
    whole = (beyond <= MOST_GUARDED * points).all(axis=1)
    threads, points = threads[whole], points[whole]
    sizes = SERIAL_TILES[min(2, max(1, len(serial)))]
    choices = [*product(*(sorted({min(size, most) for size in sizes}) for most in serial))]
    tiles = np.array(choices, dtype=np.int64).reshape(len(choices), len(serial))
    found = np.hstack([threads * points, threads]).repeat(len(tiles), axis=0)
    return np.insert(found, [mapped] * len(serial), np.tile(tiles, (len(threads), 1)), axis=1)


def candidates(
    kernel: PpcgKernel, vectors: Sequence[Vector] | Sizes, options: PpcgOptions
) -> PpcgCandidates:
    """Return vectors as columns, under options that hold for the whole program.

    Sizes beyond a loop's trips count as its trips, threads beyond a tile as the tile.
    """
    columns: Any = np.array(vectors, dtype=np.float64).T
    return _candidates(kernel, columns, len(vectors), options)


def _candidates(
    kernel: PpcgKernel, columns: Sequence[Number], count: int, options: PpcgOptions
) -> PpcgCandidates:
    trips, ones = kernel.trips, np.ones(count)
    tiles = {n: np.minimum(own, trips[n]) for n, own in zip(kernel.band, columns, strict=False)}
    blocks = zip(kernel.threads, columns[len(kernel.band) :], strict=False)
    return PpcgCandidates(
        tile_sizes=tuple(tiles.items()),
        block=tuple((name, np.minimum(own, tiles[name])) for name, own in blocks),
        stages=ones,
        resident=ones,
        shared_limit_bytes=options.max_shared_memory * ones,
        unroll=options.unroll_gpu_tile * ones,
    )


MARGIN = 1.05
"""Sizes of ours are taken where the default is expected to cost so many times as much. Of 150
programs on an H200 seven take 1.02 to 1.09 times their default's energy with these margins, and
nine 1.03 to 1.37 times its time; the default takes 1.77 times as much energy on average."""

UNSURE_MARGIN = 1.35
"""The same for launches of few warps, which are predicted least well (with 1.2 Floyd and Warshall's
loops would take 1.11 times their default's energy), and where the default is near its floor."""

AT_FLOOR = 0.66
"""A default of which memory, L2 or the host alone takes so much of the time runs as fast as it can.
Of 14 such programs on an H200 ten ran longer with sizes that were expected to take less time, by
up to 1.2 times; nine of them were expected to save less energy than the margin."""

TRIANGLE_THREADS = 128
"""Threads of a block over a triangle, at least: smaller ones were predicted worst. On an H200
correlation takes 19.5 ms with 64, where its default takes 16.5."""

SAFE_THREADS = 256
"""Threads of a block that launch whatever the compiler does with registers."""

SAFE_REGISTERS = 1.4
"""So many times the registers that are expected must fit larger blocks: 12 of 7 524 that pass, as
nvcc compiled them, need more than there are."""

LEAST_WARPS = 8
"""Warps of an SM that keep the prediction true: with fewer, what a warp waits for decides, which is
known least. Where the default has fewer, others may. Products do best with 8 on an H200, 100 sums
a thread."""

_WEIGHTS = {"tile": 0.1, "serial": 0.05, "threads": 0.2, "staged": 1.0, "points": 0.5,
            "whole": 0.5}  # fmt: skip
"""What a cut along a size is worth: what is staged decides most. Set by hand, by the gaps of eight
kernels after 25 000 boxes, as the number of boxes of a batch is."""

_MOST_MULTIPLES = 12
"""Points of a thread along a loop that a search begins with."""

_CHANGED = 1.5
"""Sizes of a new point that are neither parent's, on average; this and the next two set by hand,
by what was found for the kernels of this repository."""

_SPREAD = 0.6
"""Standard deviation of the logarithm by which such sizes differ."""

_WHOLE = 0.7
"""Share of new tiles that are whole points of the threads."""

_AGAIN = 40
"""Times as many boxes after which bounds are recorded anew: which monomials tell most changes."""


class PpcgSpace:
    """All sizes of a kernel that fit a card, in PPCG's code.

    A vector has the tiles of the band and the threads of the mapped loops; then for each group of
    references that may be staged 2 where it is in shared memory, else 1; and last, of boxes, the
    points of a thread along the mapped loops, and for each loop 1 where its tiles are whole: they
    divide its trips, and threads divide them; else 2. A loop cut off costs tests and addresses,
    whatever its tile: so both kinds are bounded apart.
    """

    def __init__(
        self,
        facts: KernelFacts,
        model: PpcgModel,
        profile: GpuProfile,
        most_bytes: int,
        objective: ObjectiveName,
    ) -> None:
        """Take a kernel and the shared memory that a block may have."""
        self.facts, self.profile, self.objective = facts, profile, objective
        self._bounds, self._costs = Taped(self._bounds_of, _AGAIN), Taped(self._costs_of)
        self._needed = Taped(self._needed_of)
        self.model, self.kernel, self.most_bytes = model, model.kernel, most_bytes
        self.depth, self.mapped = len(self.kernel.band), len(self.kernel.threads)
        self.groups = sum(group.may_be_staged for group in self.kernel.groups)
        self.width = self.depth + self.mapped
        serial = self.depth - self.mapped
        counts = (self.mapped, serial, self.mapped, self.groups, self.mapped, self.depth)
        self.weights = np.repeat([*_WEIGHTS.values()], counts)
        trips = [self.kernel.trips[name] for name in self.kernel.band]
        most = [min(one, profile.threads_per_block) for one in trips[: self.mapped]]
        self._highs = np.array([*trips, *most, *[2] * self.groups, *trips[: self.mapped],
                                *[2] * self.depth])  # fmt: skip
        default = np.array([*default_vector(self.kernel), *[1] * self.groups])
        default = np.minimum(default, self._highs[: self.width + self.groups])
        self.default = self.as_staged(default[None], np.array([1.0 * PPCG_SHARED_BYTES]))[0]
        mapped = {loop.name for loop in facts.parallel_loops}
        # the bounds of a loop that goes to threads depend on another loop
        self.triangular = any(mapped & set(one.coupled) for one in facts.work.statements)
        self.least_threads = TRIANGLE_THREADS if self.triangular else 1
        demand, expected = model.columns(self.layouts(self.default[None], PPCG_DEFAULT))
        self.of_default = demand, expected
        self.default_cost = float(values(expected, objective)[0])
        whole = 1.0 - demand.split_bytes / np.maximum(1.0, demand.memory_bytes)  # of lines
        terms = {**expected.terms_s, "memory": whole * expected.terms_s["memory"]}
        floor = max(float(terms[name][0]) for name in ("memory", "L2", "launches"))
        self.at_floor = floor > AT_FLOOR * float(expected.time_s[0])
        warps = self.warps(demand.threads, demand.blocks, expected.resident_blocks)
        self.fewest_warps = min(LEAST_WARPS, float(warps[0]) or LEAST_WARPS)

    @cached_property
    def kind(self) -> str:
        """What costs follow from, with arrays and statements by number: their order counts."""
        facts, work = self.facts, self.facts.work
        arrays = sorted(work.arrays, key=lambda own: own.name)
        names = [*(own.name for own in arrays), *(own.name for own in work.statements)]
        work = replace(work, arrays=tuple(arrays))
        every = facts.loops, facts.inner_loops, facts.element_bytes, facts.overlaps, work
        numbers = {name: f"#{at}" for at, name in enumerate(names)}
        return re.sub(r"\w+", lambda found: numbers.get(found[0], found[0]), repr(every))

    def layouts(self, points: Sizes, options: PpcgOptions) -> PpcgCandidates:
        """Return points as columns, staged by PPCG's rule under options of the program."""
        return candidates(self.kernel, points[:, : self.width], options)

    def as_staged(self, points: Sizes, limit_bytes: Number) -> Sizes:
        """Return points with what PPCG stages where a block may have so much shared memory."""
        layouts = replace(self.layouts(points, PPCG_DEFAULT), shared_limit_bytes=limit_bytes)
        pairs = zip(self.kernel.groups, self.model.plan(layouts).staged, strict=True)
        flags = [own + 1 for group, own in pairs if group.may_be_staged]
        found = points.copy()
        found[:, self.width :] = np.array(flags).reshape(self.groups, len(points)).T
        return found

    def possible(self, points: Sizes) -> Sizes:
        """Return points with what PPCG stages where there is room for what they say."""
        return self.as_staged(points, np.minimum(self.needed_bytes(points), self.most_bytes))

    def needed_bytes(self, points: Sizes) -> npt.NDArray[np.float64]:
        """Return the least ``--max-shared-memory`` that has room for what is staged."""
        found: npt.NDArray[np.float64] = self._needed(*self._columns(points))
        return found

    def _columns(self, points: Sizes) -> Any:
        """Return the sizes of points, without what only boxes have."""
        return 1.0 * points.T[: self.width + self.groups]

    def _needed_of(self, *sizes: Number) -> Number:
        return self.model.plan(self._decided(sizes)).shared_bytes

    def _decided(self, sizes: Sequence[Number]) -> PpcgCandidates:
        """Return points, a column a size, staged as they say."""
        layouts = _candidates(self.kernel, sizes, len(sizes[0]), PPCG_DEFAULT)
        return replace(layouts, staged_groups=self._flags(sizes))

    def _flags(self, sizes: Sequence[Number]) -> tuple[Number, ...]:
        """Return for each group of the kernel whether it is staged, an entry each."""
        columns = iter(sizes[self.width : self.width + self.groups])
        return tuple(next(columns) - 1.0 if g.may_be_staged else 0.0 for g in self.kernel.groups)

    # -- boxes ------------------------------------------------------------------------------------

    def root(self) -> tuple[Sizes, Sizes]:
        """Return everything."""
        return np.ones_like(self._highs)[None], self._highs[None]

    def shrunk(self, lows: Sizes, highs: Sizes) -> tuple[Sizes, Sizes]:
        """Return boxes without sizes that no layout has: tiles are threads times points, about."""
        least, most = lows.T.copy(), highs.T.copy()
        first = self.depth, self.width + self.groups
        for _ in range(2):
            self._fit(least, most)
            self._keep_kinds(least, most)
            others, every = (np.prod(own[self.depth : self.width], axis=0) for own in (least, most))
            for at in range(self.mapped):
                places = [at, *(begin + at for begin in first)]
                tile, threads, points = least[places]
                tiles, count, all_points = most[places]
                whole = most[at - self.depth] == 1
                count = np.minimum(count, tiles)
                count = np.minimum(count, self.profile.threads_per_block * threads // others)
                threads = np.maximum(
                    threads, -(-self.least_threads * count // np.maximum(1, every))
                )
                fewer = np.where(whole, tiles // points, (tiles - 1) // np.maximum(1, points - 1))
                count = np.where(points > 1, np.minimum(count, fewer), count)
                tile = np.maximum(tile, threads)
                points = np.maximum(points, -(-tile // np.maximum(1, count)))
                all_points = np.minimum(all_points, -(-tiles // threads))
                tiles = np.minimum(tiles, all_points * count)
                tile = np.maximum(tile, (points - 1) * threads + np.where(whole, threads, 1))
                threads = np.maximum(threads, -(-tile // np.maximum(1, all_points)))
                least[places] = tile, threads, points
                most[places] = tiles, count, all_points
        return least.T, most.T

    @cached_property
    def _sizes_of_kinds(self) -> list[dict[int, Sizes]]:
        """By loop and kind all tiles of it, between two that do not exist, as the plan has them."""
        found = []
        for at, name in enumerate(self.kernel.band):
            sizes = np.arange(1, self.kernel.trips[name] + 1)
            cut = self.kernel.is_cut(name, sizes)
            kinds = {1: sizes[~cut]} if at < self.mapped else {1: sizes[~cut], 2: sizes[cut]}
            ends = [0], [len(sizes) + 1]
            found.append({n: np.concatenate([ends[0], own, ends[1]]) for n, own in kinds.items()})
        return found

    def _keep_kinds(self, least: Sizes, most: Sizes) -> None:
        """Keep tiles of the kinds that boxes have; threads and points divide what is whole, too."""
        for at, kinds in enumerate(self._sizes_of_kinds):
            kind = at - self.depth
            places = [at, self.depth + at, self.width + self.groups + at][
                :: 1 if at < self.mapped else 3
            ]
            for number, sizes in kinds.items():
                some = np.ix_(places, (least[kind] == number) & (most[kind] == number))
                least[some] = sizes[np.searchsorted(sizes[:-1], least[some])]
                most[some] = sizes[np.searchsorted(sizes[1:-1], most[some], side="right")]

    def _fit(self, least: Sizes, most: Sizes) -> None:
        """Leave out tiles for which the plan has no room with all others at their least.

        A larger tile never needs less. Where the last one is that has room is a guess.
        """

        def needed(at: int, tile: Sizes) -> npt.NDArray[np.float64]:
            points = least.T[:, : self.width + self.groups].copy()
            points[:, at] = np.maximum(1, tile)
            return self.needed_bytes(points)

        now = needed(0, least[0])
        for at in range(self.depth if self.groups else 0):
            more = np.maximum(1.0, needed(at, most[at]) - now)
            steps = np.floor((most[at] - least[at]) * (self.most_bytes - now) / more + 1e-6)
            next_one = np.clip(least[at] + steps + 1, least[at], most[at]).astype(np.int64)
            full = needed(at, next_one) > self.most_bytes
            most[at] = np.where(full, next_one - 1, most[at])

    def _box(self, ends: Sequence[Ends]) -> PpcgCandidates:
        """Return boxes as layouts of intervals.

        A tile is threads times a factor, which points round up: so they cancel in products.
        """
        kernel, ones = self.kernel, np.ones(len(ends[0][0]))
        sizes = {f"tile {name}": own for name, own in zip(kernel.band, ends, strict=False)}
        points = dict(zip(kernel.threads, ends[self.width + self.groups :], strict=False))
        for name, (threads, count) in zip(kernel.threads, ends[self.depth :], strict=False):
            tile, tiles = sizes.pop(f"tile {name}")
            fewest, most = points[name]
            least = np.maximum(fewest - 1.0 + 1.0 / count, tile / count)
            sizes[f"threads {name}"] = threads, count
            sizes[f"factor {name}"] = np.maximum(1.0, least), np.minimum(tiles / threads, most)
        box = Box(sizes)
        known = box.intervals
        for name, own in zip(kernel.threads, ends, strict=False):
            size = Monomial(((f"factor {name}", 1.0), (f"threads {name}", 1.0)))
            known[f"tile {name}"] = box.named(f"tile {name}", Interval(*own, box, size, size))
        return PpcgCandidates(
            tile_sizes=tuple((name, known[f"tile {name}"]) for name in kernel.band),
            block=tuple((name, known[f"threads {name}"]) for name in kernel.threads),
            points=tuple((name, Interval(*own)) for name, own in points.items()),
            loops_cut=tuple(
                (name, Interval(own[0] > 1, own[1] > 1))
                for name, own in zip(kernel.band, ends[-self.depth :], strict=True)
            ),
            stages=ones,
            resident=ones,
            shared_limit_bytes=self.most_bytes * ones,
            unroll=0.0 * ones,
            staged_groups=self._flags([Interval(*own) for own in ends]),
        )

    def bounds(self, lows: Sizes, highs: Sizes) -> Costs:
        """Return costs times margins that no point of a box goes under."""
        found: Costs = self._bounds(*1.0 * lows.T, *1.0 * highs.T)
        return found

    def _bounds_of(self, *columns: Number) -> Number:
        half = len(columns) // 2
        return self._weighed(self._box([*zip(columns[:half], columns[half:], strict=True)]))

    def _weighed(self, layouts: PpcgCandidates) -> Number:
        """Return costs times margins, infinite where nothing fits or is staged as it is said."""
        plan = self.model.plan(layouts)
        demand, expected = self.model.columns(layouts)
        fits = (plan.shared_bytes <= self.most_bytes) & plan.is_ruled
        weighed = values(expected, self.objective) * self.margins(demand, expected)
        return np.where(most_of(fits & self.allowed(demand, expected)), weighed, inf)

    # -- points -----------------------------------------------------------------------------------

    def regular(self) -> Sizes:
        """Return points of a kind that the prediction was fitted on, not staged yet."""
        vectors = regular_vectors(self.kernel)
        unstaged = np.ones((len(vectors), self.groups), dtype=np.int64)
        found: Sizes = np.minimum(
            np.hstack([vectors, unstaged]), self._highs[: self.width + self.groups]
        )
        threads = slice(self.depth, self.width)
        found[:, threads] = np.minimum(found[:, threads], found[:, : self.mapped])
        return found

    def seeds(self, effort: Effort) -> Sizes:
        """Return points to begin with: the default, regular ones, and some all over the space."""
        dice = np.random.default_rng(0)
        count = 2 * effort.children
        unit = dice.random((count, len(self._highs)))
        found = np.rint(np.exp(unit * np.log(self._highs))).astype(np.int64)
        threads = found[:, self.depth : self.width]
        for at in range(self.mapped):  # the first threads are those along x
            place = self.mapped - 1 - at
            others = threads[:, place + 1 :].prod(axis=1)
            threads[:, place] = np.minimum(threads[:, place], MOST_THREADS // others)
            points = np.rint(np.exp(unit[:, place] * np.log(_MOST_MULTIPLES))).astype(np.int64)
            found[:, place] = np.minimum(threads[:, place] * points, self._highs[place])
        found = found[:, : self.width + self.groups]
        every = np.concatenate([self.default[None], found, self.regular()])
        return self.possible(every)

    def costs(self, points: Sizes) -> Costs:
        """Return costs of points times margins, infinite where one does not fit as it says."""
        tiles, threads = points[:, : self.mapped], points[:, self.depth : self.width]
        fits = (threads <= tiles).all(axis=1)
        fits &= threads.prod(axis=1) <= self.profile.threads_per_block
        found = np.full(len(points), inf)
        if fits.any():
            found[fits] = self._costs(*self._columns(points[fits]))
        return found

    def _costs_of(self, *sizes: Number) -> Number:
        return self._weighed(self._decided(sizes))

    def warps(self, threads: Number, blocks: Number, resident: Number) -> Number:
        """Return the warps of an SM that run at a time."""
        each = self.model.card.warps_of(threads)
        return np.minimum(resident, blocks / self.profile.sm_count) * each

    def allowed(self, demand: Demand, expected: Predicted) -> Flag:
        """Tell which launches are sure to fit, and are of a kind that is predicted well."""
        threads, resident = demand.threads, expected.resident_blocks
        kept = self.warps(threads, demand.blocks, resident) >= self.fewest_warps
        most = SAFE_REGISTERS * demand.registers * threads
        kept = kept & ((threads <= SAFE_THREADS) | (most <= self.profile.registers_per_block))
        kept = kept & (threads >= self.least_threads)
        return kept & (expected.time_s <= self.of_default[1].time_s[0])

    def margins(self, demand: Demand, expected: Predicted) -> Costs:
        """Return how many times the cost of sizes the default has to be, at least."""
        warps = self.warps(demand.threads, demand.blocks, expected.resident_blocks)
        unsure = least_of(warps < LEAST_WARPS)
        return np.where(self.at_floor | (unsure > 0), UNSURE_MARGIN, MARGIN)

    def samples(self, lows: Sizes, highs: Sizes) -> Sizes:
        """Return points of boxes: the middle, with tiles of whole points, and the least sizes."""
        middle = np.sqrt(lows * highs).astype(np.int64)
        for at in range(self.mapped):
            threads = middle[:, self.depth + at]
            whole = np.maximum(1, np.rint(middle[:, at] / threads).astype(np.int64)) * threads
            middle[:, at] = np.clip(whole, lows[:, at], highs[:, at])
        every = np.concatenate([middle, lows])
        own = every[:, : self.width + self.groups]
        return np.unique(own, axis=0, return_index=True)[0]  # else NumPy loads masked arrays

    def children(self, parents: Sizes, count: int, dice: np.random.Generator) -> Sizes:
        """Return points that have each size of one of two parents; some sizes are others.

        A loop's tile and threads come together. Most tiles are whole points of the threads.
        """
        width = parents.shape[1]
        tiles, threads = slice(self.mapped), slice(self.depth, self.width)
        of_one = dice.random((count, width)) < 1 / 2
        of_one[:, threads] = of_one[:, tiles]
        # the better ones have more
        ones, others = (len(parents) * dice.random((2, count)) ** 1.5).astype(np.int64)
        found = np.where(of_one, parents[ones], parents[others])
        points = found[:, tiles] / found[:, threads]
        other = dice.random((count, width)) < _CHANGED / width
        factors = np.exp(dice.normal(0.0, _SPREAD, (count, width)))
        steps = dice.integers(-2, 3, (count, width))
        found = np.where(other, np.rint(found * factors).astype(np.int64) + steps, found)
        found = np.clip(found, 1, self._highs[:width])
        # of other threads each has as many points
        kept = other[:, threads] & ~other[:, tiles]
        tile = np.where(kept, np.rint(points * found[:, threads]), found[:, tiles])
        whole = np.maximum(1, np.rint(tile / found[:, threads])) * found[:, threads]
        found[:, tiles] = np.where(dice.random(tile.shape) < _WHOLE, whole, tile)
        return self.possible(np.clip(found, 1, self._highs[:width]))


class _Kernel:
    """A kernel, what the search found of it, and what that is under options of the program."""

    def __init__(self, space: PpcgSpace, effort: Effort) -> None:
        self.space = space
        self.points = np.concatenate([space.default[None], space.regular()])
        self.regular, self.least_regular = len(self.points), inf
        self._default: dict[bytes, float] = {}
        self._priced: list[tuple[Sizes, Costs]] = []
        settings = (PPCG_DEFAULT, replace(PPCG_DEFAULT, max_shared_memory=space.most_bytes))
        for one in settings:
            self.under(one)
        effort = replace(effort, enough=self.least_regular / IRREGULAR_MARGIN)
        self.search = Search(space, space.seeds(effort), effort)
        self.found = self.search.found

    def end(self) -> None:
        """Take what was found."""
        self.points = np.concatenate([self.points, self.found.good])

    def of(self, space: PpcgSpace) -> _Kernel:
        """Return the same of a kernel like this one."""
        found = copy(self)
        found.space = space
        return found

    @property
    def needed_bytes(self) -> int:
        """The least ``--max-shared-memory`` that the best sizes are for."""
        found = self.found
        return int(self.space.needed_bytes(np.array([found.sizes]))[0]) if found.sizes else 0

    @property
    def bound(self) -> float:
        """What nothing costs less than, times its margin."""
        return min(self.least_regular, IRREGULAR_MARGIN * self.found.bound)

    def margin(self, row: int, demand: Demand, expected: Predicted) -> float:
        """Return how many times the cost of a point of ours the default has to be."""
        if row == 0 and expected.energy_j[0] == self.space.of_default[1].energy_j[0]:
            return 1.0  # the default, or what is the same
        more = IRREGULAR_MARGIN if row >= self.regular else 1.0
        return more * float(self.space.margins(demand, expected)[0])

    def under(self, setting: PpcgOptions) -> Costs:
        """Return costs of the points under a setting times margins, those of the default first.

        They are infinite for what is not allowed: the least is taken.
        """
        limit = np.full(len(self.points), 1.0 * setting.max_shared_memory)
        points = self.space.as_staged(self.points, limit)
        weighed = self._costs(points)
        weighed[self.regular :] *= IRREGULAR_MARGIN
        place = points[0].tobytes()
        if place not in self._default:
            demand, expected = self.at(0, setting)
            cost = float(values(expected, self.space.objective)[0])
            self._default[place] = cost * self.margin(0, demand, expected)
        weighed[0] = self._default[place]
        self.least_regular = min(self.least_regular, float(weighed[: self.regular].min()))
        return weighed

    def _costs(self, points: Sizes) -> Costs:
        """Return costs of the points as they are staged, each once: settings stage most alike."""
        found = np.full(len(points), np.nan)
        for before, its in self._priced:
            same = (points[: len(before)] == before).all(axis=1)
            found[: len(before)][same] = its[same]
        new = np.isnan(found)
        found[new] = self.space.costs(points[new])
        self._priced.append((points, found.copy()))
        return found

    def at(self, row: int, setting: PpcgOptions) -> tuple[Demand, Predicted]:
        """Return what a point asks of the card, and what is expected of it."""
        space = self.space
        return space.model.columns(space.layouts(self.points[row : row + 1], setting))


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
    most_bytes = options.shared_per_block(profile)
    spaces, kinds = _spaces(kernels, profile, options), dict[str, _Kernel]()
    times = Counter(space.kind for space, _ in spaces)
    for number, (space, effort) in enumerate(spaces):
        progress(f"searching sizes of {space.facts.name}", number, len(spaces))
        if space.kind not in kinds:
            kinds[space.kind] = _Kernel(space, replace(effort, times=times[space.kind]))
    prove([own.search for own in kinds.values()])
    for own in kinds.values():
        own.end()
    searched = {space.facts.name: kinds[space.kind].of(space) for space, _ in spaces}
    limits = {PPCG_SHARED_BYTES, most_bytes, 0, *(own.needed_bytes for own in searched.values())}
    others = sorted(limit for limit in limits - {PPCG_SHARED_BYTES} if limit <= most_bytes)
    settings = [PPCG_DEFAULT, *(replace(PPCG_DEFAULT, max_shared_memory=own) for own in others)]
    used = (own.space.of_default[0].shared_bytes[0] for own in searched.values())
    if not all(own <= most_bytes for own in used):
        del settings[0]
    tried = [[own.under(one) for one in settings] for own in searched.values()]
    if most_bytes < PPCG_SHARED_BYTES and settings[0] == PPCG_DEFAULT:
        for first, *_ in tried:  # more room than there is: only for the default's own sizes
            first[1:] = inf
    chosen, rows = _best_setting(tried)
    setting = settings[chosen]
    picked = {
        name: _Picked(own, row, *own.at(row, setting))
        for (name, own), row in zip(searched.items(), rows, strict=True)
    }
    findings = [
        nothing_allowed(name, options.objective)
        for name, one in picked.items()
        if one.cost == NEVER and np.isfinite(one.expected.time_s[0])
    ]
    if findings:
        raise NoSolutionError(*findings)
    if setting != PPCG_DEFAULT:  # no more than is used: what had no room has none then, either
        most_used = max(int(one.demand.shared_bytes[0]) for one in picked.values())
        setting = replace(setting, max_shared_memory=most_used)
    return tuple(
        picked[facts.name].described(setting)
        if facts.name in picked
        else _untiled(facts, profile, options)
        for facts in kernels
    ), setting


_MOST_COST = 2**60
"""What stands for the cost where nothing fits."""


def proof_script(space: PpcgSpace, effort: Effort, *comments: str) -> SmtScript:
    """Return the question for sizes that fit and cost less than what a search proves."""
    left: list[tuple[Sizes, Sizes, Costs]] = []
    found = search(space, space.seeds(effort), effort, told=lambda *boxes: left.append(boxes))
    kernel, (low, high) = space.kernel, (ends[0] for ends in space.root())
    staged = [f"staged_{at}" for at, group in enumerate(kernel.groups) if group.may_be_staged]
    names = [
        *(f"tile_{name}" for name in kernel.band),
        *(f"threads_{name}" for name in kernel.threads),
        *staged,
        *(f"points_{name}" for name in kernel.threads),
        *(f"whole_{name}" for name in kernel.band),
    ]
    sides = zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True)
    block = applied("*", (symbol(f"threads_{name}") for name in kernel.threads), "1")
    limits = [(f"size_{name}", box_term({name: side})) for name, side in sides]
    limits.append(("threads_of_a_block", f"(<= {block} {space.profile.threads_per_block})"))
    for loop in kernel.threads:
        tile, threads, points = (symbol(f"{of}_{loop}") for of in ("tile", "threads", "points"))
        limits.append((f"block_{loop}", f"(<= {threads} {tile})"))
        whole = f"(< (* (- {points} 1) {threads}) {tile}) (<= {tile} (* {points} {threads}))"
        limits.append((f"points_of_{loop}", f"(and {whole})"))
    boxes = (
        (least, most, cost)
        for lows, highs, bounds in left
        for least, most, cost in zip(lows.tolist(), highs.tolist(), bounds.tolist(), strict=True)
    )
    sizes = ", ".join(f"{name} = {size}" for name, size in zip(names, found.sizes, strict=False))
    unit = OBJECTIVES.get(space.objective).unit
    about = (
        f"found: {sizes or 'nothing that fits'}; cost {found.cost:.0f}, in {unit}, margins "
        "counted; whole_x is 1 where tiles divide the trips of x, and threads divide them, else 2"
    )
    least_cost = int(min(found.bound, _MOST_COST))
    return searched_script(names, limits, boxes, least_cost, *comments, about)


def proofs_of_ppcg(
    kernels: Sequence[KernelFacts], profile: GpuProfile, options: ModelOptions, file: str
) -> tuple[SmtScript, ...]:
    """Return for each kernel the question for sizes that cost less than is proven."""
    spaces = _spaces(kernels, profile, options)
    return tuple(
        proof_script(space, effort, f"{space.facts.name} of {file}, {profile.name}")
        for space, effort in spaces
    )


def _spaces(
    kernels: Sequence[KernelFacts], profile: GpuProfile, options: ModelOptions
) -> list[tuple[PpcgSpace, Effort]]:
    """Return the kernels that have sizes, each with its share of the effort."""
    began, most_bytes = time.perf_counter(), options.shared_per_block(profile)
    models = ((facts, PpcgModel.of(facts, profile)) for facts in kernels)
    spaces = [
        PpcgSpace(facts, model, profile, most_bytes, options.objective)
        for facts, model in models
        if model.kernel.threads
    ]
    efforts = efforts_of(options, [space.default_cost for space in spaces], began)
    return list(zip(spaces, efforts, strict=True))


def _best_setting(tried: Sequence[Sequence[Costs]]) -> tuple[int, list[int]]:
    """Return the setting with the least sum of weighed costs, the first of equal ones, and rows.

    PPCG's own setting is the first, where a kernel has its own sizes, or ours where those beat
    them by their margin.
    """
    found: list[tuple[float, int, list[int]]] = []
    for number in range(len(tried[0]) if tried else 1):
        rows = [int(np.argmin(own[number])) for own in tried]
        total = sum(float(own[number][row]) for own, row in zip(tried, rows, strict=True))
        found.append((total, number, rows))
    _, number, rows = min(found)
    return number, rows


@dataclass(frozen=True)
class _Picked:
    """A point that is taken, what it asks of the card, and what is expected of it."""

    own: _Kernel
    row: int
    demand: Demand
    expected: Predicted

    @property
    def cost(self) -> int:
        """Its cost, ``NEVER`` where it is not allowed."""
        return int(costs(self.expected, self.own.space.objective)[0])

    def described(self, setting: PpcgOptions) -> KernelSelection:
        """Return the selection under the program's setting."""
        own, space, row = self.own, self.own.space, self.row
        kernel, point = space.kernel, own.points[row : row + 1]
        usual = prediction_at(*space.of_default, 0)
        prediction = prediction_at(self.demand, self.expected, 0)
        objective = self.cost if prediction is not None else 0
        most = own.bound / own.margin(row, self.demand, self.expected)
        bound = int(min(objective, most)) if objective else 0
        why = too_large(space.of_default[0], space.model.card, 0)
        plan = space.model.plan(space.layouts(point, setting))
        sizes = [int(size) for size in point[0]]
        pairs = zip(kernel.groups, plan.staged, strict=True)
        return predicted_kernel(
            space.facts,
            space.profile,
            space.objective,
            layout=Layout(
                tile_sizes=tuple(zip(kernel.band, sizes, strict=False)),
                block=tuple(zip(kernel.threads, sizes[space.depth :], strict=False)),
            ),
            private={u.access.reference for g in kernel.groups if g.private for u in g.uses},
            shared={use.access.reference for group, on in pairs if on[0] for use in group.uses},
            shared_limit_bytes=setting.max_shared_memory,
            prediction=prediction,
            objective=objective,
            bound=bound,
            optimal="proven" if bound >= (1 - own.search.effort.gap) * objective else "best found",
            solve_time_s=own.found.seconds,
            boxes=own.found.boxes,
            compared=own.found.points,
            default=usual,
            keeps_default=setting == PPCG_DEFAULT and row == 0,
            **({} if usual is not None else {"note": f"PPCG's default does not launch: {why}"}),
        )


def _untiled(facts: KernelFacts, profile: GpuProfile, options: ModelOptions) -> KernelSelection:
    """Return the selection of a kernel that runs in one thread."""
    model = PpcgModel.of(facts, profile)
    nothing = np.zeros((1, 0), dtype=np.int64)
    demand, expected = model.columns(candidates(model.kernel, nothing, PPCG_DEFAULT))
    prediction = prediction_at(demand, expected, 0)
    cost = int(costs(expected, options.objective)[0]) if prediction is not None else 0
    return predicted_kernel(
        facts,
        profile,
        options.objective,
        layout=Layout(tile_sizes=(), block=()),
        shared_limit_bytes=PPCG_SHARED_BYTES,
        prediction=prediction,
        objective=cost,
        bound=cost,
        default=prediction,
        keeps_default=True,
    )
