"""How deep tiles of a loop over time are, and how large: what costs least.

Every depth and size is compared with the steps apart, each kernel with the sizes selected for it.
What is left of the steps runs so anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter

import numpy as np

from eatss.analysis.facts import KernelFacts, StatementFacts
from eatss.analysis.layout import TimeTile, mapped
from eatss.base.frozen import complete, frozen
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda_candidates import Integers
from eatss.choose.objectives import NEVER, cheapest, first_least, run_costs, summed_cost
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, in_one_launch
from eatss.cost.cuda_model import CudaModel
from eatss.cost.demand import Column, Demand
from eatss.cost.expected import Prediction
from eatss.cost.terms import Predicted, predict, prediction_at
from eatss.cost.time_tiles import TilePrices
from eatss.plan.time_tiles import TimeRun, TimeTilePlan

COLUMNS = (1, 2, 4)
"""Neighbouring cells of a thread."""

LENGTHS = range(16, 1025)
"""Cells along the first dimension, at least and at most."""

LINES = ((1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (4, 4), (4, 8))
"""Lines of a warp and warps of a block, where cells have three dimensions."""

_MARGIN = 1.11
"""So many times less than steps apart tiles are to cost and to take: energy is predicted within
11 % in the median."""

_FULL_SPEED = 1.05
"""So many times the time of the fastest tile may be taken: with 1.15, tiles took up to 1.3 times as
long as kernels by hand, for 0.8 to 1.1 of their energy."""


@frozen
class _Tiled:
    """A tile, what is expected of all steps, and their cost."""

    tile: TimeTile
    predicted: Prediction
    cost: int


@frozen
class _Depth:
    """The tiles of a depth, a column each: what launches ask and take, and what all steps cost."""

    tiles: TimeTile
    demand: Demand
    expected: Predicted
    times_s: Column
    energies_j: Column
    costs: Integers

    def best(self, limit_s: float) -> _Tiled | None:
        """Return the tile that costs least of those that take no longer, if there is one."""
        value = np.where(self.times_s <= limit_s, self.costs, NEVER)
        row = first_least(value)
        one = prediction_at(self.demand, self.expected, row)
        if one is None or value[row] == NEVER:
            return None
        total = float(self.times_s[row]), float(self.energies_j[row])
        return _Tiled(
            tile=mapped(int, mapped(itemgetter(row), self.tiles)),
            predicted=replace(one, time_s=total[0], energy_j=total[1]),
            cost=int(value[row]),
        )


def with_time_tiles(
    found: dict[str, KernelSelection],
    facts: Mapping[str, KernelFacts],
    runs: Sequence[TimeRun],
    profile: GpuProfile,
    options: ModelOptions,
) -> dict[str, KernelSelection]:
    """Return selections of which some take several steps of time at once, where that costs less.

    Args:
        found: the selections of all kernels of a program, each for itself.
        facts: the kernels.
        runs: which of them are the steps of a loop over time.
        profile: the card.
        options: what is best.
    """
    arrays = {array.name: array for one in facts.values() for array in one.work.arrays}
    taken_bytes = sum(one.elements * one.element_bytes for one in arrays.values())
    room_bytes = float(profile.memory_bytes - taken_bytes)
    for run in runs:
        known = complete(found[name].predicted for name in run.kernels)
        if known is not None:
            statements = {
                one.name: one for name in run.kernels for one in facts[name].work.statements
            }
            model = CudaModel.of(facts[run.kernels[0]], profile)
            best = _best(run, known, statements, model, options, room_bytes)
            if best is not None:
                note = f"time tiles of {run.kernels[0]} take its steps; it runs what they leave"
                found = found | in_one_launch(found, best.tile, best.predicted, note)
    return found


def _best(
    run: TimeRun,
    apart: Sequence[Prediction],
    statements: Mapping[str, StatementFacts],
    model: CudaModel,
    options: ModelOptions,
    room_bytes: float,
) -> _Tiled | None:
    """Return the tile with which all steps cost least, ``None`` where they do apart.

    What is expected to take much longer than the fastest is left out, and what needs more memory
    beside the arrays than there is room for.
    """
    alone_s, alone_j = (sum(getattr(one, name) for one in apart) for name in ("time_s", "energy_j"))
    alone = summed_cost(apart, options.objective)
    depths: list[_Depth] = []
    for _, plan in run.plans if {*run.updates} <= {*statements} else ():
        prices = partial(TilePrices, run=run, plan=plan, statements=statements, model=model)
        every = candidates(run, plan)
        all_of = prices(tile=every)
        chosen = np.flatnonzero(all_of.fits)
        if not (all_of.launches and len(chosen) and all_of.twin_bytes <= room_bytes):
            continue
        every = mapped(itemgetter(chosen), every)
        demand = prices(tile=every).demand
        expected = predict(demand, model.card, model.constants)
        rest = 1.0 - all_of.launches * plan.depth / run.steps
        times, energies = expected.time_s + rest * alone_s, expected.energy_j + rest * alone_j
        depths.append(
            _Depth(
                tiles=every,
                demand=demand,
                expected=expected,
                times_s=times,
                energies_j=energies,
                costs=run_costs(times, energies, options.objective),
            )
        )
    fastest_s = min([alone_s, *(float(one.times_s.min()) for one in depths)])
    limit_s = min(_FULL_SPEED * fastest_s, alone_s / _MARGIN)
    found = [one.best(limit_s) for one in depths]
    best = cheapest((one for one in found if one), lambda one: one.cost)
    return best if best is not None and best.cost * _MARGIN < alone else None


def candidates(run: TimeRun, plan: TimeTilePlan) -> TimeTile:
    """Return the tiles of a depth, a column each."""
    lengths = sorted(_lengths(run.cells[0])) if run.dims > 1 else [1]
    lines = LINES if run.dims > 2 else ((1, 1),)
    table = [
        (columns, length, *own, prefetch)
        for columns, length, own, prefetch in product(COLUMNS, lengths, lines, plan.prefetches)
    ]
    columns, length, rows, warps, prefetch = np.array(table, dtype=np.int64).reshape(-1, 5).T
    return TimeTile(
        kernels=run.kernels,
        depth=np.full(len(table), plan.depth),
        columns=columns,
        length=length,
        rows=rows,
        warps=warps,
        prefetch=prefetch,
    )


def _lengths(cells: int) -> set[int]:
    """Return the lengths with which tiles along the first dimension are as equal as can be."""
    equal = {-(-cells // tiles) for tiles in range(1, cells // LENGTHS.start + 2)}
    return {one for one in equal if one in LENGTHS} or {cells}
