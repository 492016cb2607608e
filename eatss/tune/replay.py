"""Replay: strategies tried on a recorded sweep, without a card, the same each time.

In: a ``Sweep``, names of strategies, seeds, a budget. Out: a ``Replay``, what they would have found
and when. Next: ``eatss/report/``. Strategies see a recorded sweep as its points, what each costs,
and what it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf, isfinite

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.base.targets import MEASURES, ObjectiveName, SweepTarget
from eatss.tune.cards import UNKNOWN, cards_of, rows_of_one_card
from eatss.tune.points import Value, variant_key
from eatss.tune.population import by_sizes
from eatss.tune.rows import BESIDE, Role, Row, Sizes, Sweep
from eatss.tune.strategies import Budget, make
from eatss.tune.strategy import ListedSpace, StrategyJob, Wait


@frozen
class Step:
    """One evaluation of a run.

    Attributes:
        variant: :func:`eatss.tune.points.variant_key` of what was measured.
        cost: What it cost, in the unit of the objective; ``None`` if it failed.
        best: The least cost so far; ``None`` before the first variant that works.
        spent_s: Seconds that all evaluations took so far: to generate, compile and measure.
        spent_j: Joules that the card drew so far, as far as they were recorded.
    """

    variant: str
    cost: float | None
    best: float | None
    spent_s: float
    spent_j: float


@frozen
class Run:
    """One strategy with one seed. ``ended``: it had nothing left before the budget was spent."""

    strategy: str
    seed: int
    steps: tuple[Step, ...]
    ended: bool


@frozen
class RegretAt:
    """How far from the best of the sweep runs are at a share of the budget.

    Regret is the best found over the best of the sweep, less 1. Median and quartiles are over the
    seeds, each the regret of a run; ``None`` where such a run has found nothing yet.
    """

    share: float
    median: float | None
    lower: float | None
    upper: float | None


@frozen
class Summary:
    """What the runs of one strategy come to.

    Attributes:
        strategy: Its name.
        runs: How many seeds.
        regrets: At each share of the budget.
        within: The regret that counts as near: 0.05.
        evaluations_within: Median of the evaluations until a run is that near; ``None`` where the
            middle one never is.
        seconds_within: The same in seconds of the sweep.
        reached: How many runs come that near within the budget.
    """

    strategy: str
    runs: int
    regrets: tuple[RegretAt, ...]
    within: float
    evaluations_within: int | None
    seconds_within: float | None
    reached: int


@frozen
class Mark:
    """Where a variant of a role stands: its cost, regret, and rank among all, 1 is the best.

    ``offered``: it is a point of the space, so that a strategy could find it. Others have no rank.
    """

    role: Role
    variant: str
    cost: float | None
    regret: float | None
    rank: int | None
    offered: bool = True


@frozen
class Replay(Shown):
    """What strategies would have found in a recorded sweep.

    Attributes:
        program: Name of the program.
        target: Who generated the code.
        card: Name of the card.
        uuid: Which card of that name: rows of others are left out. ``None``: no row names one.
        sizes: Which problem size: the one with the most measured variants, as of the report.
        other_sizes: How many other sizes were left out.
        objective: What was to be small.
        unit: Of costs: ``s``, ``J`` or ``J s``.
        variants: How many variants were recorded.
        failed: How many of them have no cost.
        best: The least cost of the sweep.
        best_variant: The variant that has it.
        budget: What each run might spend.
        shares: At which shares of the budget regret is given.
        summaries: One a strategy, in the order asked for.
        runs: Strategy by strategy, seed by seed.
        marks: The default, the paper's choice and that of eatss, as far as they were recorded.
        model_top: Regret of the model's first variant; ``None`` without predictions.
    """

    shown_by = "eatss.report.results:replay_parts"

    program: str
    target: SweepTarget
    card: str
    uuid: str | None
    objective: ObjectiveName
    unit: str
    variants: int
    failed: int
    best: float
    best_variant: str
    budget: Budget
    shares: tuple[float, ...]
    summaries: tuple[Summary, ...]
    runs: tuple[Run, ...]
    marks: tuple[Mark, ...]
    model_top: float | None
    sizes: Sizes = ()
    other_sizes: int = 0
    schema_version: int = 1


@frozen
class Recorded:
    """What a replay needs of a sweep.

    Attributes:
        uuid: The card whose rows these are; ``None`` where no row names one.
        sizes: The problem size of these rows.
        other_sizes: How many other sizes there were.
        space: The variants that were recorded on it, failed ones too.
        rows: By variant, the row that counts.
        first: By variant, the row of its first measurement, which says what that took.
        costs: By variant; infinity for one that failed.
        ranked: Points by what was predicted of them, the best first; ``None`` without predictions.
    """

    uuid: str | None
    sizes: Sizes
    other_sizes: int
    space: ListedSpace
    rows: Mapping[str, Row]
    first: Mapping[str, Row]
    costs: Mapping[str, float]
    ranked: tuple[dict[str, Value], ...] | None


def recorded(sweep: Sweep, objective: ObjectiveName) -> Recorded:
    """Return what strategies can be tried on: the rows of one size and of one card.

    These are the size and then the card with the most measured variants. A careful row counts
    before one of the first pass. Rows of other names than most have are no points of the space:
    strategies are not offered them.

    Raises:
        InputError: ``EATSS-T007``, no variant has such a cost.
    """
    groups = by_sizes(rows_of_one_card(sweep))
    sizes = next(iter(groups), ())
    card = next((card.uuid for card in cards_of(sweep)), UNKNOWN)
    first: dict[str, Row] = {}
    for row in sweep.rows:
        if row.stage not in BESIDE and row.card in (card, None) and row.sizes == sizes:
            first.setdefault(row.variant, row)
    rows = {row.variant: row for row in groups.get(sizes, ())}
    named = [(tuple(sorted(dict(row.values))), row) for row in rows.values()]
    of_space = Counter(names for names, _ in named).most_common(1)
    offered = [row for names, row in named if names == of_space[0][0]]
    costs = {variant: cost_of(row, objective) for variant, row in rows.items()}
    if not any(isfinite(costs[row.variant]) for row in offered):
        raise input_error(
            "EATSS-T007",
            f"nothing to replay: no variant of '{sweep.identity.program}' was measured with "
            f"{MEASURES[objective].what}",
            hint="replay a store that `eatss sweep` has filled, or choose another objective",
        )
    predicted = [row for row in offered if isfinite(predicted_of(row, objective))]
    predicted.sort(key=lambda row: predicted_of(row, objective))
    return Recorded(
        uuid=None if card == UNKNOWN else card,
        sizes=sizes,
        other_sizes=max(0, len(groups) - 1),
        space=ListedSpace(dict(offered[0].values), (dict(row.values) for row in offered)),
        rows=rows,
        first=first,
        costs=costs,
        ranked=tuple(dict(row.values) for row in predicted) or None,
    )


def cost_of(row: Row, objective: ObjectiveName) -> float:
    """Return what a variant costs: s, J or J s; infinity where it failed or that was not read.

    What is not over 0 was not read.
    """
    return _cost(row.time_s, row.energy_j, objective) if row.measured else inf


def predicted_of(row: Row, objective: ObjectiveName) -> float:
    """Return what the model predicted that it costs; infinity where it did not."""
    metrics = dict(row.metrics)
    return _cost(metrics.get("predicted_time_s"), metrics.get("predicted_energy_j"), objective)


def _cost(time_s: float | None, energy_j: float | None, objective: ObjectiveName) -> float:
    time_s, energy_j = (one if one is not None and one > 0 else None for one in (time_s, energy_j))
    return MEASURES[objective].of(time_s, energy_j)


SHARES = (0.1, 0.25, 0.5, 1.0)
"""The shares of the budget at which regret is given."""

NEAR = 0.05
"""The regret that counts as near the best."""

_ROUNDING = 1e-9


def replayed(
    sweep: Sweep,
    strategies: Sequence[str],
    seeds: int | Sequence[int] = 20,
    budget: Budget | None = None,
    objective: ObjectiveName = "time",
    *,
    shares: Sequence[float] = SHARES,
) -> Replay:
    """Return what strategies would have found in a recorded sweep, and when.

    Only variants that were recorded are offered. A variant is told at once, at what it cost, and
    the run has then spent what generating, compiling and measuring it took. Nothing is measured,
    and the same arguments give the same result.

    Args:
        sweep: what was recorded; of several sizes, and then of several cards, the rows of the one
            with the most measured variants.
        strategies: names, as of ``--strategy``; one given twice counts once.
        seeds: the seeds of the runs of each, or how many from 0 on.
        budget: what a run may spend; without one, all variants. The last variant that fits counts.
        objective: what is to be small, a name of ``eatss.objectives``.
        shares: at which shares of the budget regret is given, each over 0 and up to 1.

    Raises:
        InputError: ``EATSS-T007`` there is nothing to replay, or no strategy, no seed
            or no share, ``EATSS-T005`` a strategy waits though it was told everything, and those
            of :func:`eatss.tune.strategies.make`.
    """
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not strategies or not numbers or not shares or not all(0 < one <= 1 for one in shares):
        raise input_error(
            "EATSS-T007",
            "a replay needs a strategy, a seed and shares of the budget over 0 and up to 1",
            hint="for instance --strategy random,local --seeds 20",
        )
    strategies = tuple(dict.fromkeys(strategies))
    known = recorded(sweep, objective)
    within = budget or Budget(variants=len(known.space))
    runs = tuple(_run(known, strategy, seed, within) for strategy in strategies for seed in numbers)
    offered = {key: known.costs[key] for key in map(variant_key, known.space.points())}
    best_variant, best = min(offered.items(), key=lambda one: one[1])
    return Replay(
        program=sweep.identity.program,
        target=sweep.identity.target,
        card=sweep.identity.card,
        uuid=known.uuid,
        sizes=known.sizes,
        other_sizes=known.other_sizes,
        objective=objective,
        unit=MEASURES[objective].unit,
        variants=len(offered),
        failed=sum(cost == inf for cost in offered.values()),
        best=best,
        best_variant=best_variant,
        budget=within,
        shares=tuple(shares),
        summaries=tuple(
            _summary(name, [run for run in runs if run.strategy == name], best, within, shares)
            for name in strategies
        ),
        runs=runs,
        marks=tuple(_marks(known, offered, best)),
        model_top=_known(offered[variant_key(known.ranked[0])] / best - 1)
        if known.ranked
        else None,
    )


def _run(known: Recorded, name: str, seed: int, budget: Budget) -> Run:
    strategy = make(name, StrategyJob(space=known.space, seed=seed, ranked=known.ranked))
    steps: list[Step] = []
    best, spent_s, spent_j = inf, 0.0, 0.0
    ended = False
    try:
        while budget.left(len(steps), spent_s, spent_j) is not None:
            point = strategy.ask()
            if point is None:
                ended = True
                break
            if isinstance(point, Wait):
                raise input_error(
                    "EATSS-T005",
                    f"the strategy '{name}' waits, though it was told all that it asked for",
                    hint="mend the strategy, or choose another one",
                )
            variant = variant_key(point)
            cost, first = known.costs[variant], known.first[variant]
            spent_s += first.made_s + first.card_s
            spent_j += first.card_j or 0.0
            if budget.over(len(steps) + 1, spent_s, spent_j):
                break
            best = min(best, cost)
            steps.append(
                Step(
                    variant=variant,
                    cost=_known(cost),
                    best=_known(best),
                    spent_s=spent_s,
                    spent_j=spent_j,
                )
            )
            strategy.tell(point, cost)
    finally:
        strategy.close()
    return Run(strategy=name, seed=seed, steps=tuple(steps), ended=ended)


def _summary(
    name: str, runs: Sequence[Run], best: float, budget: Budget, shares: Sequence[float]
) -> Summary:
    near = [
        next(
            (
                at
                for at, step in enumerate(run.steps, 1)
                if step.best is not None and step.best <= best * (1 + NEAR)
            ),
            None,
        )
        for run in runs
    ]
    middle = _middle([inf if at is None else at for at in near], 0.5)
    seconds = [
        inf if at is None else run.steps[at - 1].spent_s for run, at in zip(runs, near, strict=True)
    ]
    regrets = []
    for share in shares:
        found = [_best_at(run, budget, share) / best - 1 for run in runs]
        lower, median, upper = (_middle(found, quantile) for quantile in (0.25, 0.5, 0.75))
        regrets.append(RegretAt(share=share, median=median, lower=lower, upper=upper))
    return Summary(
        strategy=name,
        runs=len(runs),
        regrets=tuple(regrets),
        within=NEAR,
        evaluations_within=None if middle is None else int(middle),
        seconds_within=_middle(seconds, 0.5),
        reached=sum(at is not None for at in near),
    )


def _best_at(run: Run, budget: Budget, share: float) -> float:
    """Return the least cost that a run has found when so much of the budget is spent."""
    best = inf
    for place, step in enumerate(run.steps, 1):
        if budget.share(place, step.spent_s, step.spent_j) > share + _ROUNDING:
            break
        best = inf if step.best is None else step.best
    return best


def _middle(values: Sequence[float], quantile: float) -> float | None:
    """Return the value that this share of all are at most, one of them; ``None`` if infinite."""
    return _known(sorted(values)[max(0, ceil(quantile * len(values)) - 1)])


def _marks(known: Recorded, offered: Mapping[str, float], best: float) -> Iterator[Mark]:
    for row in known.rows.values():
        if row.role:
            cost = known.costs[row.variant]
            rank = None
            if cost < inf and row.variant in offered:
                rank = 1 + sum(other < cost for other in offered.values())
            yield Mark(
                role=row.role,
                variant=row.variant,
                cost=_known(cost),
                regret=_known(cost / best - 1),
                rank=rank,
                offered=row.variant in offered,
            )


def _known(value: float) -> float | None:
    return None if value == inf else value
