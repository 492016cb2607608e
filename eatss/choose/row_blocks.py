"""Which kernels that share rows become one, and with which blocks: what costs least.

Every run of kernels, and every part of one, is compared with the same kernels apart, each with the
sizes selected for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from eatss.analysis.facts import SECTOR_BYTES, KernelFacts
from eatss.analysis.layout import FusedRows
from eatss.base.frozen import complete, frozen
from eatss.base.memo import Memo
from eatss.base.targets import CUDA
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import FULL_SPEED
from eatss.choose.objectives import NEVER, cheapest, costs, first_least, summed_cost
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, in_one_launch
from eatss.cost.cuda_model import rows_prediction
from eatss.cost.expected import Prediction
from eatss.cost.terms import prediction_at
from eatss.plan.launch import trips_of
from eatss.plan.phases import RowPhase, RowRun

ROWS = (1, 2, 4, 8)
"""Rows of a block."""

LANES = (32, 64, 128, 256, 512, 1024)
"""Threads of a row."""

LEAST_THREADS = 64
"""Threads of a block."""

STEPS = (1, 2, 4, 8)
"""Elements of a row that a thread takes at a time, where a tile is not the whole row."""

MOST_KEPT = 16
"""Elements of a row that a thread has, where a tile is the whole row. Measured, not derived: on an
H100 a softmax of rows of 2000 doubles takes 0.244 ms with 8, 0.249 ms with 16 and 0.475 ms with
64. A warp that has a row for itself waits for no other: one of 1024 floats takes 0.142 ms and
0.075 J with 32 on an H200, 0.143 ms and 0.081 J with 16 of two warps."""

MOST_OF_LONG = 64
"""The same of rows that blocks of all sizes have more of. On an H200 a normalisation of rows of
25 088 floats takes 0.065 ms with 49 of 512 threads, 0.057 ms with 52 in vectors of 4, 0.058 ms with
28 of 1024 in vectors, 0.096 ms without."""


@frozen
class _Joined:
    """Kernels as one: how, what is expected, and its cost."""

    block: FusedRows
    predicted: Prediction
    cost: int


def with_row_blocks(
    found: dict[str, KernelSelection],
    facts: Mapping[str, KernelFacts],
    runs: Sequence[RowRun],
    profile: GpuProfile,
    options: ModelOptions,
    *,
    in_order: bool,
) -> dict[str, KernelSelection]:
    """Return selections of which some are one kernel with those behind them, where that costs less.

    Args:
        found: the selections of all kernels of a program, each for itself.
        facts: the kernels.
        runs: which of them share rows.
        profile: the card.
        options: what is best.
        in_order: whether sums keep their order.
    """
    joining, plain = _Joining(facts, profile, options, in_order), found
    for run in sorted(runs, key=lambda one: one.steps):
        known = complete(found[name].predicted for name in run.kernels)
        if known is None:
            continue
        if run.steps:
            own = joining.joined(run, math.inf)
            if own is not None and own.cost < summed_cost(known, options.objective):
                found = found | _in_one(own, plain)
            continue
        for joined in joining.best(run, known):
            found = found | _in_one(joined, found)
    return found


@dataclass(frozen=True, slots=True)
class _Joining:
    """Kernels of a program on a card, what is best, and whether sums keep their order."""

    facts: Mapping[str, KernelFacts]
    profile: GpuProfile
    options: ModelOptions
    in_order: bool
    once: Memo = field(default_factory=Memo)

    def best(self, run: RowRun, apart: Sequence[Prediction]) -> list[_Joined]:
        """Return the parts of a run to be one kernel each: those with which all of it costs least.

        ``apart`` is what is expected of each kernel for itself.
        """
        best: list[tuple[int, list[_Joined]]] = [(0, [])]
        for end, last in enumerate(apart, start=1):
            cost, before = summed_cost([last], self.options.objective), best[end - 1]
            choices = [(before[0] + cost, before[1])]
            for start in range(end):
                part = run.part(start, end)
                if len(part.phases) > 1:
                    limit_s = FULL_SPEED * sum(one.time_s for one in apart[start:end])
                    joined = self.joined(part, limit_s)
                    if joined is not None:
                        so_far, others = best[start]
                        choices.append((so_far + joined.cost, [*others, joined]))
            best.append(choices[first_least(min(cost, NEVER) for cost, _ in choices)])
        return best[-1][1]

    def joined(self, run: RowRun, limit_s: float) -> _Joined | None:
        """Return the best blocks of a run as one kernel, ``None`` where there are none.

        What is expected to take much longer than the fastest, or than ``limit_s``, is left out.
        """
        if not any(phase.launch.sum_loop is not None for phase in run.phases):
            return None
        ways = [self._best(run, self._blocks(run, 0), limit_s)]
        if any(map(self._is_beside, run.phases)):
            ways.append(self._best(run, self._blocks(run, 1), limit_s))
        return cheapest((one for one in ways if one is not None), lambda one: one.cost)

    def _is_beside(self, phase: RowPhase) -> bool:
        """Tell whether rows lie beside each other in memory, as columns do."""
        return phase.lane_loop is not None and any(
            phase.rows[-1] in one.spatial and phase.lane_loop not in one.invariant
            for one in self.facts[phase.kernel].references
        )

    def _best(self, run: RowRun, every: FusedRows, limit_s: float) -> _Joined | None:
        """Return the best of some blocks, ``None`` where there are none."""
        if not len(every.rows):
            return None
        found = rows_prediction(
            self.facts, run, every, self.profile, in_order=self.in_order, once=self.once
        )
        times = np.where(found.fits, found.expected.time_s, np.inf)
        cost = np.where(np.isfinite(times), costs(found.expected, self.options.objective), NEVER)
        cost = np.where(times <= min(limit_s, FULL_SPEED * float(times.min())), cost, NEVER)
        row = first_least(cost)
        predicted = prediction_at(found.demand, found.expected, row)
        if cost[row] == NEVER or predicted is None:
            return None
        block = replace(
            every,
            rows=int(every.rows[row]),
            lanes=int(every.lanes[row]),
            tile=int(every.tile[row]),
            whole=int(every.whole[row]),
        )
        return _Joined(block=block, predicted=predicted, cost=int(cost[row]))

    def _blocks(self, run: RowRun, columns: int) -> FusedRows:
        """Return rows, lanes and tiles of blocks, and whether a tile has a whole row."""
        loops = ((one.kernel, one.lane_loop) for one in run.phases if one.lane_loop is not None)
        trips = max(trips_of(self.facts[kernel])[loop] for kernel, loop in loops)
        length = max([int(trips), *(phase.length or 0 for phase in run.phases)])
        open_ = any(own.begin is None for own in run.registers.kept)
        vector = run.registers.vector if run.registers.kept and not columns else 1
        most_threads = self.profile.threads_per_block
        filling = [SECTOR_BYTES // own.element_bytes for own in run.registers.kept if columns]
        most_lanes = most_threads // max(filling, default=1)  # columns beside each other
        most = MOST_KEPT if length <= MOST_KEPT * most_lanes else MOST_OF_LONG
        lines: list[tuple[int, int, int, int]] = []
        together = 1 << (run.together - 1).bit_length() if run.together else 0
        for rows, lanes in product((together,) if together else ROWS, LANES):
            threads = rows * lanes
            if LEAST_THREADS <= threads <= most_threads and lanes <= 2 * length:
                slots = -(-length // lanes)
                tiles = {lanes * steps for steps in STEPS if lanes * steps < 2 * length}
                room = most << (lanes == CUDA.lanes and not together)
                if slots > vector:  # whole vectors of it
                    slots = -(-slots // vector) * vector
                if 1 << (slots - 1).bit_length() <= room:
                    tiles.add(lanes * slots)
                lines += [(rows, lanes, one, int(open_ and one >= length)) for one in sorted(tiles)]
        table = np.array(lines, dtype=np.int64).reshape(len(lines), 4).T
        names = ("rows", "lanes", "tile", "whole")
        return FusedRows(
            kernels=run.kernels,
            loops=len(run.phases[0].rows),
            **dict(zip(names, table, strict=True)),
            columns=columns,
            steps=int(run.steps > 0),
        )


def _in_one(
    joined: _Joined, selections: Mapping[str, KernelSelection]
) -> dict[str, KernelSelection]:
    """Return the selections of kernels that are one."""
    first, *others = joined.block.kernels
    which = "both" if len(others) == 1 else "all of them"
    note = f"its blocks are those of {first}, which take rows through {which}"
    return in_one_launch(selections, joined.block, joined.predicted, note)
