"""Which loops on the host one block runs, and with how many threads: what costs least.

Every loop is compared with its launches, each kernel with the sizes selected for it. The phases get
layouts of their own: one SM has to run them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from operator import itemgetter

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, LoopBlock
from eatss.base.frozen import complete, fixed, frozen
from eatss.base.targets import CUDA
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import CudaChoice, KernelVariants
from eatss.choose.cuda_candidates import every_candidate
from eatss.choose.objectives import NEVER, cheapest, costs, first_least, summed_cost
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, in_one_launch
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction
from eatss.cost.loop_blocks import in_phases, replayed, step_of_tile_s, tiles_prediction
from eatss.plan.loop_blocks import LoopRun, side_by_side

THREADS = (128, 256, 512, 1024)
"""Threads of a block."""

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Values of a parallel loop that a tile has, a thread each."""

STEPS = (16, 32, 64, 128)
"""Values of a loop over wavefronts that a tile has."""

MOST_POINTS = 1 << 17
"""Points of a launch beyond which one SM does not do what all of them do; only saves time."""

_MARGIN, _MARGIN_IN_TILES = 2.0, 1.15
"""So many times less than launches a block is to cost and to take. Measured on an H200: what one
block takes for all of a loop was 0.5 to 3.6 times as much as expected, floyd-warshall of 100 twice
as much."""


@frozen
class _Block:
    """A block, the layouts of its phases, what is expected of each, and what all of it costs."""

    block: LoopBlock
    layouts: tuple[tuple[Candidates, int], ...]
    parts: tuple[Prediction, ...]
    cost: int


def with_loop_blocks(
    found: dict[str, KernelSelection],
    facts: Mapping[str, KernelFacts],
    runs: Sequence[LoopRun],
    variants: KernelVariants,
    profile: GpuProfile,
    options: ModelOptions,
) -> dict[str, KernelSelection]:
    """Return selections of which one block runs loops on the host, where that costs less.

    Args:
        found: the selections of all kernels of a program, each for itself, some of them one
            already.
        facts: the kernels.
        runs: which of them are in a loop on the host.
        variants: how the generator can cut each of them.
        profile: the card.
        options: what is best.
    """
    for run in runs:
        own = [facts[name] for name in run.kernels]
        apart = [found[name] for name in run.kernels]
        launched = complete(one.predicted for one in apart)
        small = all(map(_is_small, own))
        if launched is None or any(one.joined for one in apart) or not (small or run.spans):
            continue
        offered = [_plain(one, variants, profile) for one in own]
        loop = _Loop(run, own, offered, launched, profile, options)
        blocks = [*(loop.whole() if small else ()), *(loop.in_tiles() if run.spans else ())]
        block = cheapest(blocks, lambda one: one.cost)
        if block is not None and loop.is_less(block):
            found = found | loop.in_block(block, apart)
    return found


def _is_small(facts: KernelFacts) -> bool:
    points = sum(one.instances or 0 for one in facts.work.statements)
    return points <= MOST_POINTS * (facts.work.launches or 1)


def _plain(facts: KernelFacts, variants: KernelVariants, profile: GpuProfile) -> list[Candidates]:
    """Return the layouts of a kernel that a block can have as a phase, and others."""
    return [
        own
        for own in every_candidate(facts, variants.get(facts.name, ()), profile)
        if own.warps is None and own.shared_sum is None
    ]


@fixed
class _Loop:
    """A loop on the host: its kernels, their layouts, and what is expected of their launches."""

    run: LoopRun
    facts: Sequence[KernelFacts]
    offered: Sequence[Sequence[Candidates]]
    launched: Sequence[Prediction]
    profile: GpuProfile
    options: ModelOptions

    def _block(
        self,
        block: LoopBlock,
        layouts: tuple[tuple[Candidates, int], ...],
        parts: tuple[Prediction, ...],
    ) -> _Block:
        cost = summed_cost(parts, self.options.objective)
        return _Block(block=block, layouts=layouts, parts=parts, cost=cost)

    def whole(self) -> Iterator[_Block]:
        """Yield the blocks that can run all of it."""
        for threads in (one for one in THREADS if one <= self.profile.threads_per_block):
            phases = complete(
                _phase(facts, own, threads, self.profile, self.options)
                for facts, own in zip(self.facts, self.offered, strict=True)
            )
            if phases is not None:
                layouts, parts = zip(*((one[:2], one[2]) for one in phases), strict=True)
                block = LoopBlock(kernels=self.run.kernels, threads=threads)
                yield self._block(block, layouts, parts)

    def in_tiles(self) -> Iterator[_Block]:
        """Yield the blocks for tiles of a loop over wavefronts: a thread has a point a step."""
        run, profile, launched = self.run, self.profile, self.launched[0]
        plain = next((own for own in self.offered[0] if own.spread is None), None)
        offers = [
            across
            for across in product(LENGTHS, repeat=len(run.loops))
            if CUDA.lanes <= prod(across) <= profile.threads_per_block
            and all(size < 2 * span for size, span in zip(across, run.spans[1:], strict=True))
        ]
        if plain is None or not offers:
            return
        zero = {group: np.zeros(1, dtype=np.int64) for group in plain.staged}
        one = replace(
            plain.map(itemgetter(slice(0, 1))), staged=zero, stages=np.ones(1, dtype=np.int64)
        ).map(lambda column: np.repeat(column, len(offers)))
        sizes = dict(zip(run.loops, np.array(offers).T, strict=True))
        tile_sizes = tuple((name, sizes.get(name, size)) for name, size in one.tile_sizes)
        block = tuple((name, sizes[name]) for name, _ in one.block)
        own = replace(one, tile_sizes=tile_sizes, block=block)
        steps_s = step_of_tile_s(self.facts[0], own, profile)
        for row, (across, step_s) in enumerate(zip(offers, steps_s, strict=True)):
            for steps in STEPS:
                tile = LoopBlock(kernels=run.kernels, threads=prod(across), tiles=(steps, *across))
                part = tiles_prediction(run, tile, step_s, launched, profile)
                yield self._block(tile, ((own, row),), (part,))

    def is_less(self, best: _Block) -> bool:
        """Tell whether a block is expected to cost and to take less than launches of a graph."""
        launched = [
            replayed(CudaModel.of(facts, self.profile), one, one.launches)
            for facts, one in zip(self.facts, self.launched, strict=True)
        ]
        taken_s, launched_s = (sum(one.time_s for one in of) for of in (best.parts, launched))
        cost = summed_cost(launched, self.options.objective)
        margin = _MARGIN_IN_TILES if best.block.tiles else _MARGIN
        return margin * taken_s < launched_s and margin * best.cost < cost < NEVER

    def in_block(
        self, best: _Block, apart: Sequence[KernelSelection]
    ) -> dict[str, KernelSelection]:
        """Return the selections of the phases: the first has what is expected of all."""
        total = replace(
            max(best.parts, key=lambda one: one.time_s),
            time_s=sum(one.time_s for one in best.parts),
            energy_j=sum(one.energy_j for one in best.parts),
            launches=best.parts[0].launches if best.block.tiles else 1,
            blocks=best.parts[0].blocks if best.block.tiles else 1,
            threads=best.block.threads,
            resident_blocks=1,
        )
        phases = {
            facts.name: replace(
                CudaChoice(facts, (), self.profile, self.options).described(own, row),
                objective=before.objective,
                optimal=before.optimal,
                compared=before.compared,
                predicted=total,
            )
            for facts, before, (own, row) in zip(self.facts, apart, best.layouts, strict=True)
        }
        note = f"a phase of the block of {self.facts[0].name}, which runs their loop"
        return in_one_launch(phases, best.block, total, note)


def _phase(
    facts: KernelFacts,
    offered: Sequence[Candidates],
    threads: int,
    profile: GpuProfile,
    options: ModelOptions,
) -> tuple[Candidates, int, Prediction] | None:
    """Return the layout with which a phase of a block costs least, and what is expected of it.

    Nothing of it is staged. Threads that share sums are all of the block.
    """
    model = in_phases(facts, profile, threads)
    best: tuple[int, Candidates, int, Prediction] | None = None
    for own in offered:
        alone = prod(own.threads.values(), start=np.ones(len(own))) * own.lanes
        fits = side_by_side(threads, alone, meet=own.spread is not None) > 0
        fits = fits & (own.stages == 1) & (own.chunks * own.outer_chunks == 1)
        for on in own.staged.values():
            fits = fits & (on == 0)
        rows = np.flatnonzero(fits)
        if not len(rows):
            continue
        expected = model.columns(own.map(itemgetter(rows)))
        value = np.where(expected.fits, costs(expected.total, options.objective), NEVER)
        row = first_least(value)
        prediction = expected.at(row)
        if prediction is not None and value[row] < (NEVER if best is None else best[0]):
            best = int(value[row]), own, int(rows[row]), prediction
    return None if best is None else best[1:]
