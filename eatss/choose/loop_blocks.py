"""Which loops on the host one block runs, and with how many threads: what costs least.

Every loop is compared with its launches, each kernel with the sizes selected for it. The phases get
layouts of their own: one SM has to run them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from operator import itemgetter

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, LoopBlock
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import CudaChoice, KernelVariants
from eatss.choose.cuda_candidates import every_candidate
from eatss.choose.objectives import NEVER, cheapest, costs, first_least, summed_cost
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection
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
    selections: Sequence[KernelSelection],
    kernels: Sequence[KernelFacts],
    runs: Sequence[LoopRun],
    variants: KernelVariants,
    profile: GpuProfile,
    options: ModelOptions,
) -> tuple[KernelSelection, ...]:
    """Return selections of which one block runs loops on the host, where that costs less.

    Args:
        selections: of all kernels of a program, each for itself, some of them one already.
        kernels: their facts.
        runs: which of them are in a loop on the host.
        variants: how the generator can cut each of them.
        profile: the card.
        options: what is best.
    """
    facts, found = {one.name: one for one in kernels}, {one.name: one for one in selections}
    for run in runs:
        own = [facts[name] for name in run.kernels]
        apart = [found[name] for name in run.kernels]
        small = all(map(_is_small, own))
        if not any(one.joined for one in apart) and (small or run.spans):
            offered = [_plain(one, variants, profile) for one in own]
            blocks = [*_whole(run, own, offered, profile, options)] if small else []
            if run.spans:
                before = apart[0].predicted
                blocks += _in_tiles(run, own[0], offered[0], before, profile, options)
            block = cheapest(blocks, lambda one: one.cost)
            if block is not None and _is_less(block, own, apart, profile, options):
                found |= dict(_in_block(block, own, apart, profile, options))
    return tuple(found[one.name] for one in selections)


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


def _whole(
    run: LoopRun,
    kernels: Sequence[KernelFacts],
    offered: Sequence[Sequence[Candidates]],
    profile: GpuProfile,
    options: ModelOptions,
) -> Iterator[_Block]:
    """Yield the blocks that can run all of a loop."""
    for threads in (one for one in THREADS if one <= profile.threads_per_block):
        phases = [
            _phase(facts, own, threads, profile, options)
            for facts, own in zip(kernels, offered, strict=True)
        ]
        known = [one for one in phases if one is not None]
        if len(known) == len(phases):
            layouts, parts = zip(*((one[:2], one[2]) for one in known), strict=True)
            block = LoopBlock(kernels=run.kernels, threads=threads)
            cost = summed_cost(parts, options.objective)
            yield _Block(block=block, layouts=layouts, parts=parts, cost=cost)


def _in_tiles(
    run: LoopRun,
    facts: KernelFacts,
    offered: Sequence[Candidates],
    launched: Prediction | None,
    profile: GpuProfile,
    options: ModelOptions,
) -> Iterator[_Block]:
    """Yield the blocks for tiles of a loop over wavefronts: a thread has a point a step."""
    plain = next((own for own in offered if own.spread is None), None)
    if launched is None or plain is None:
        return
    zero = {group: np.zeros(1, dtype=np.int64) for group in plain.staged}
    one = replace(
        plain.map(itemgetter(slice(0, 1))), staged=zero, stages=np.ones(1, dtype=np.int64)
    )
    offers = [
        across
        for across in product(LENGTHS, repeat=len(run.loops))
        if CUDA.lanes <= prod(across) <= profile.threads_per_block
        and all(size < 2 * span for size, span in zip(across, run.spans[1:], strict=True))
    ]
    if not offers:
        return
    one = one.map(lambda column: np.repeat(column, len(offers)))
    sizes = dict(zip(run.loops, np.array(offers).T, strict=True))
    tile_sizes = tuple((name, sizes.get(name, size)) for name, size in one.tile_sizes)
    block = tuple((name, sizes[name]) for name, _ in one.block)
    own = replace(one, tile_sizes=tile_sizes, block=block)
    for row, (across, step_s) in enumerate(
        zip(offers, step_of_tile_s(facts, own, profile), strict=True)
    ):
        for steps in STEPS:
            tile = LoopBlock(kernels=run.kernels, threads=prod(across), tiles=(steps, *across))
            parts = (tiles_prediction(run, tile, step_s, launched, profile),)
            cost = summed_cost(parts, options.objective)
            yield _Block(block=tile, layouts=((own, row),), parts=parts, cost=cost)


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


def _is_less(
    best: _Block,
    kernels: Sequence[KernelFacts],
    apart: Sequence[KernelSelection],
    profile: GpuProfile,
    options: ModelOptions,
) -> bool:
    """Tell whether a block is expected to cost and to take less than launches of a graph."""
    launched = []
    for facts, one in zip(kernels, apart, strict=True):
        if one.predicted is None:
            return False
        model = CudaModel.of(facts, profile)
        launched.append(replayed(model, one.predicted, one.predicted.launches))
    taken_s, launched_s = (sum(one.time_s for one in of) for of in (best.parts, launched))
    cost = summed_cost(launched, options.objective)
    margin = _MARGIN_IN_TILES if best.block.tiles else _MARGIN
    return margin * taken_s < launched_s and margin * best.cost < cost < NEVER


def _in_block(
    best: _Block,
    kernels: Sequence[KernelFacts],
    apart: Sequence[KernelSelection],
    profile: GpuProfile,
    options: ModelOptions,
) -> Iterator[tuple[str, KernelSelection]]:
    """Yield the selections of the phases: the first has what is expected of all."""
    total = replace(
        max(best.parts, key=lambda one: one.time_s),
        time_s=sum(one.time_s for one in best.parts),
        energy_j=sum(one.energy_j for one in best.parts),
        launches=best.parts[0].launches if best.block.tiles else 1,
        blocks=best.parts[0].blocks if best.block.tiles else 1,
        threads=best.block.threads,
        resident_blocks=1,
    )
    nothing = replace(total, time_s=0.0, energy_j=0.0, times_s=(), energies_j=(), launches=0)
    first = kernels[0].name
    for facts, before, (own, row) in zip(kernels, apart, best.layouts, strict=True):
        one = CudaChoice(facts, (), profile, options).described(own, row)
        one = replace(
            one, objective=before.objective, optimal=before.optimal, compared=before.compared
        )
        if facts.name == first:
            yield first, replace(one, loop_block=best.block, predicted=total)
        else:
            note = f"a phase of the block of {first}, which runs their loop"
            yield facts.name, replace(one, predicted=nothing, note=note)
