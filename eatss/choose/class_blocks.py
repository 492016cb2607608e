"""How many threads a class of tiles has, and how many points a block of a panel: what costs least.

Blocks are compared with the kernels apart, a launch a step, each with the sizes selected for it.
Products that are one launch have the same sizes: those with which one costs least that has the
blocks of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import ClassBlock
from eatss.base.diagnostics import NoSolutionError
from eatss.base.frozen import complete
from eatss.base.targets import CUDA
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import CudaChoice, select_cuda
from eatss.choose.objectives import NEVER, costs, first_least, summed_cost
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, ReferenceSelection, in_one_launch
from eatss.cost.class_blocks import class_demand
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction
from eatss.cost.terms import predict, prediction_at
from eatss.plan.class_blocks import THREADS, WIDTHS, ClassProducts, ClassRun

_NOTE = "its class of tiles is the launch of {}"


def with_class_blocks(
    found: dict[str, KernelSelection],
    facts: Mapping[str, KernelFacts],
    runs: Sequence[ClassRun | ClassProducts],
    choices: Mapping[str, CudaChoice],
    profile: GpuProfile,
    options: ModelOptions,
) -> dict[str, KernelSelection]:
    """Return selections of which some are one launch a block of steps, where that costs less.

    Args:
        found: the selections of all kernels of a program, each for itself.
        facts: the kernels.
        runs: which of them are classes of tiles.
        choices: the layouts of each kernel.
        profile: the card.
        options: what is best.
    """
    for run in runs:
        known = complete(found[name].predicted for name in run.kernels)
        if known is None:
            continue
        if isinstance(run, ClassProducts):
            found = found | _together([choices[name] for name in run.kernels], found, known)
            continue
        best = _best(run, known, facts, profile, options)
        if best is not None:
            found = found | in_one_launch(found, *best, _NOTE.format(run.kernels[0]))
    return found


def _best(
    run: ClassRun,
    apart: Sequence[Prediction],
    facts: Mapping[str, KernelFacts],
    profile: GpuProfile,
    options: ModelOptions,
) -> tuple[ClassBlock, Prediction] | None:
    """Return the block that costs least, ``None`` where kernels apart do."""
    model = CudaModel.of(facts[run.kernels[0]], profile)
    widths = WIDTHS if run.is_wide else (1,)
    most = profile.threads_per_block
    table = [pair for pair in product(THREADS, widths) if pair[1] <= pair[0] <= most]
    threads, width = np.array(table, dtype=np.float64).T
    demand = class_demand(
        run, ClassBlock(kernels=run.kernels, threads=threads, width=width), facts, model
    )
    expected = predict(demand, model.card, model.constants)
    fits = np.isfinite(expected.time_s)
    if options.shared_per_block_bytes is not None:
        fits &= demand.shared_bytes <= options.shared_per_block_bytes
    value = np.where(fits, costs(expected, options.objective), NEVER)
    row = first_least(value)
    predicted = prediction_at(demand, expected, row)
    alone = summed_cost(apart, options.objective)
    if predicted is None or not fits[row] or value[row] >= alone:
        return None
    block = ClassBlock(kernels=run.kernels, threads=int(threads[row]), width=int(width[row]))
    return block, predicted


def _together(
    choices: Sequence[CudaChoice],
    before: Mapping[str, KernelSelection],
    apart: Sequence[Prediction],
) -> dict[str, KernelSelection]:
    """Return the selections of products that are one launch; none where launches cost less."""
    first, *_ = choices
    facts, objective = [one.facts for one in choices], first.options.objective
    work = [sum(own.instances or 0 for own in one.work.statements) for one in facts]
    launches = [one.work.launches or 1 for one in facts]
    times = sum(work) / max(1, work[0]) * launches[0] / max(launches)
    cuts = [{own.cut for own in one.variants if not own.spreads} for one in choices]
    joined = CudaChoice(facts[0], (), first.profile, first.options)
    joined.model = replace(joined.model, beside=(times, float(max(launches)), len(facts)))
    joined.every = [
        own
        for own in first.every
        if own.shared_sum is None and all(own.variant.cut in one for one in cuts)
    ]
    try:
        chosen = select_cuda(joined)
    except NoSolutionError:
        return {}
    predicted, threads = chosen.predicted, chosen.threads_per_block
    if predicted is None or threads % CUDA.lanes:
        return {}
    if not first_least(summed_cost(own, objective) for own in (apart, [predicted])):
        return {}
    places = [one.placement for one in chosen.references]
    found = {
        one.name: replace(
            before[one.name],
            **chosen.chosen(),
            usage=chosen.usage,
            references=tuple(map(ReferenceSelection.at, one.references, places)),
        )
        for one in facts
    }
    block = ClassBlock(kernels=tuple(found), threads=threads, width=1)
    return in_one_launch(found, block, predicted, _NOTE.format(facts[0].name))
