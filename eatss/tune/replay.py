"""Replay: strategies tried on a recorded sweep, without a card, the same each time.

Strategies see a recorded sweep as its points, what each costs, and what it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.base.targets import MEASURES, ObjectiveName, SweepTarget
from eatss.tune.evaluation import rows_of_one_card, sizes_of
from eatss.tune.points import Value, variant_key
from eatss.tune.rows import BESIDE, Sizes, Sweep, cost, predicted_cost
from eatss.tune.strategies import Budget, ListedSpace, StrategyJob, Wait, make

SHARES = (0.1, 0.25, 0.5, 1.0)
"""The shares of the budget at which regret is given."""

NEAR = 0.05
"""The regret that counts as near the best."""

_ROUNDING = 1e-9


@frozen
class Step:
    """One evaluation of a run.

    Attributes:
        variant: :func:`eatss.tune.points.variant_key` of what was measured.
        cost: What it cost, in the unit of the objective; ``None`` if it failed.
        best: The least cost so far; ``None`` before the first variant that works.
        spent_s: Seconds that all evaluations took so far: to generate, compile and measure.
    """

    variant: str
    cost: float | None
    best: float | None
    spent_s: float


@frozen
class Run:
    """One strategy with one seed."""

    strategy: str
    seed: int
    steps: tuple[Step, ...]


@frozen
class Summary:
    """What the runs of one strategy come to.

    Regret is the best found over the best of the sweep, less 1.

    Attributes:
        strategy: Its name.
        runs: How many seeds.
        regrets: At each of ``SHARES`` of the budget that of the middle run; ``None`` where it has
            found nothing yet.
        evaluations_within: Median of the evaluations until a run is within 5 %; ``None`` where the
            middle one never is.
        reached: How many runs come that near within the budget.
    """

    strategy: str
    runs: int
    regrets: tuple[float | None, ...]
    evaluations_within: int | None
    reached: int


@frozen
class Replay(Shown):
    """What strategies would have found in a recorded sweep.

    Attributes:
        program: Name of the program.
        target: Who generated the code.
        card: Name of the card.
        sizes: The problem size.
        objective: What was to be small.
        unit: Of costs: ``s``, ``J`` or ``J s``.
        variants: How many variants were recorded.
        failed: How many of them have no cost.
        best: The least cost of the sweep.
        best_variant: The variant that has it.
        budget: What each run might spend.
        summaries: One a strategy, in the order asked for.
        runs: Strategy by strategy, seed by seed.
    """

    shown_by = "replay"

    program: str
    target: SweepTarget
    card: str
    sizes: Sizes
    objective: ObjectiveName
    unit: str
    variants: int
    failed: int
    best: float
    best_variant: str
    budget: Budget
    summaries: tuple[Summary, ...]
    runs: tuple[Run, ...]
    schema_version: int = 4


@frozen
class Recorded:
    """What a replay needs of a sweep.

    Attributes:
        sizes: The problem size.
        space: The variants that were recorded, failed ones too.
        spent_s: By variant, the seconds that its first measurement took.
        costs: By variant; infinity for one that failed.
        ranked: Points by what was predicted of them, the best first; ``None`` without predictions.
    """

    sizes: Sizes
    space: ListedSpace
    spent_s: Mapping[str, float]
    costs: Mapping[str, float]
    ranked: tuple[dict[str, Value], ...] | None


def recorded(sweep: Sweep, objective: ObjectiveName) -> Recorded:
    """Return what strategies can be tried on: the rows of the card with the most measured variants.

    A careful row counts before one of the first pass. Rows of other names than most have are no
    points of the space: strategies are not offered them.

    Raises:
        InputError: ``EATSS-T007``, no variant has such a cost.
    """
    rows = rows_of_one_card(sweep)
    names = Counter(frozenset(dict(row.values)) for row in rows).most_common(1)
    offered = [row for row in rows if dict(row.values).keys() == names[0][0]]
    costs = {row.variant: cost(row, objective) for row in offered}
    if min(costs.values(), default=inf) == inf:
        raise input_error(
            "EATSS-T007",
            f"nothing to replay: no variant of '{sweep.identity.program}' was measured with "
            f"{MEASURES[objective].what}",
            hint="replay a store that `eatss sweep` has filled, or choose another objective",
        )
    cards = {row.card for row in offered}
    spent_s: dict[str, float] = {}
    for row in sweep.rows:
        if row.stage not in BESIDE and row.card in cards:
            spent_s.setdefault(row.variant, row.made_s + row.card_s)
    expected = {row.variant: predicted_cost(row.metrics, objective) for row in offered}
    predicted = [row for row in offered if expected[row.variant] < inf]
    predicted.sort(key=lambda row: expected[row.variant])
    return Recorded(
        sizes=sizes_of(rows, sweep),
        space=ListedSpace(dict(offered[0].values), (dict(row.values) for row in offered)),
        spent_s=spent_s,
        costs=costs,
        ranked=tuple(dict(row.values) for row in predicted) or None,
    )


def replayed(
    sweep: Sweep,
    strategies: Sequence[str],
    seeds: int = 20,
    budget: Budget | None = None,
    objective: ObjectiveName = "time",
) -> Replay:
    """Return what strategies would have found in a recorded sweep, and when.

    Only variants that were recorded are offered. A variant is told at once, at what it cost, and
    the run has then spent what generating, compiling and measuring it took. Nothing is measured,
    and the same arguments give the same result.

    Args:
        sweep: what was recorded; of several cards, the rows of the one with the most measured
            variants.
        strategies: names, as of ``--strategy``; one given twice counts once.
        seeds: how many runs each has, with seeds from 0 on.
        budget: what a run may spend; without one, all variants. The last variant that fits counts.
        objective: what is to be small, a name of ``eatss.objectives``.

    Raises:
        InputError: ``EATSS-T007`` there is nothing to replay, no strategy or no seed,
            ``EATSS-T005`` a strategy waits though it was told everything, and those of
            :func:`eatss.tune.strategies.make`.
    """
    if not strategies or seeds < 1:
        raise input_error(
            "EATSS-T007",
            "a replay needs a strategy and a seed",
            hint="for instance --strategy random,local --seeds 20",
        )
    strategies = tuple(dict.fromkeys(strategies))
    known = recorded(sweep, objective)
    within = budget or Budget(variants=len(known.space))
    runs = tuple(_run(known, name, seed, within) for name in strategies for seed in range(seeds))
    best_variant = min(known.costs, key=known.costs.__getitem__)
    best = known.costs[best_variant]
    return Replay(
        program=sweep.identity.program,
        target=sweep.identity.target,
        card=sweep.identity.card,
        sizes=known.sizes,
        objective=objective,
        unit=MEASURES[objective].unit,
        variants=len(known.costs),
        failed=sum(cost == inf for cost in known.costs.values()),
        best=best,
        best_variant=best_variant,
        budget=within,
        summaries=tuple(
            _summary(name, [run for run in runs if run.strategy == name], best, within)
            for name in strategies
        ),
        runs=runs,
    )


def _run(known: Recorded, name: str, seed: int, budget: Budget) -> Run:
    strategy = make(name, StrategyJob(space=known.space, seed=seed, ranked=known.ranked))
    steps: list[Step] = []
    best, spent_s = inf, 0.0
    while budget.share(len(steps), spent_s) < 1:
        point = strategy.ask()
        if point is None:
            break
        if isinstance(point, Wait):
            raise input_error(
                "EATSS-T005",
                f"the strategy '{name}' waits, though it was told all that it asked for",
                hint="mend the strategy, or choose another one",
            )
        variant = variant_key(point)
        cost = known.costs[variant]
        spent_s += known.spent_s[variant]
        if budget.share(len(steps) + 1, spent_s) > 1:
            break
        best = min(best, cost)
        steps.append(Step(variant=variant, cost=_known(cost), best=_known(best), spent_s=spent_s))
        strategy.tell(point, cost)
    return Run(strategy=name, seed=seed, steps=tuple(steps))


def _summary(name: str, runs: Sequence[Run], best: float, budget: Budget) -> Summary:
    near = [
        next((at for at, step in enumerate(run.steps, 1) if _best(step) <= best * (1 + NEAR)), inf)
        for run in runs
    ]
    middle = _middle(near)
    return Summary(
        strategy=name,
        runs=len(runs),
        regrets=tuple(
            _middle([_best_at(run, budget, share) / best - 1 for run in runs]) for share in SHARES
        ),
        evaluations_within=None if middle is None else int(middle),
        reached=sum(isfinite(at) for at in near),
    )


def _best(step: Step) -> float:
    return inf if step.best is None else step.best


def _best_at(run: Run, budget: Budget, share: float) -> float:
    """Return the least cost that a run has found when so much of the budget is spent."""
    within = (
        _best(step)
        for place, step in enumerate(run.steps, 1)
        if budget.share(place, step.spent_s) <= share + _ROUNDING
    )
    return min(within, default=inf)


def _middle(values: Sequence[float]) -> float | None:
    """Return the value that half of all are at most, one of them; ``None`` if infinite."""
    return _known(sorted(values)[ceil(len(values) / 2) - 1])


def _known(value: float) -> float | None:
    return None if value == inf else value
