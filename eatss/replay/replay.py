"""Strategies on a recorded sweep: what they would have found, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf

from eatss.diagnostics import input_error
from eatss.point import variant_key
from eatss.replay.recorded import (
    UNITS,
    Mark,
    Objective,
    Recorded,
    RegretAt,
    Replay,
    Run,
    Step,
    Summary,
    recorded,
)
from eatss.store.nouns import Sweep
from eatss.strategies.budget import Budget
from eatss.strategies.choose import make
from eatss.strategies.strategy import StrategyJob, Wait

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
    objective: Objective = "time",
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
        objective: what is to be small: ``time``, ``energy`` or ``edp``.
        shares: at which shares of the budget regret is given, each over 0 and up to 1.

    Raises:
        InputError: ``EATSS-T007`` there is nothing to replay, ``EATSS-T008`` no strategy, no seed
            or no share, ``EATSS-T009`` a strategy waits though it was told everything, and those
            of :func:`eatss.strategies.make`.
    """
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not strategies or not numbers or not shares or not all(0 < one <= 1 for one in shares):
        raise input_error(
            "EATSS-T008",
            "a replay needs a strategy, a seed and shares of the budget over 0 and up to 1",
            hint="for instance --strategy random,local --seeds 20",
        )
    strategies = tuple(dict.fromkeys(strategies))
    known = recorded(sweep, objective)
    within = budget or Budget(variants=len(known.space))
    runs = tuple(_run(known, strategy, seed, within) for strategy in strategies for seed in numbers)
    offered = {
        variant_key(point): known.costs[variant_key(point)] for point in known.space.points()
    }
    best_variant = min(offered, key=lambda variant: offered[variant])
    best = offered[best_variant]
    top = known.ranked[0] if known.ranked else None
    return Replay(
        program=sweep.identity.program,
        target=sweep.identity.target,
        card=sweep.identity.card,
        uuid=known.uuid,
        sizes=known.sizes,
        other_sizes=known.other_sizes,
        objective=objective,
        unit=UNITS[objective],
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
        model_top=None if top is None else _known(offered[variant_key(top)] / best - 1),
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
                    "EATSS-T009",
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
            step = Step(
                variant=variant,
                cost=_known(cost),
                best=_known(best),
                spent_s=spent_s,
                spent_j=spent_j,
            )
            steps.append(step)
            strategy.tell(point, cost)
    finally:
        strategy.close()
    return Run(strategy=name, seed=seed, steps=tuple(steps), ended=ended)


def _summary(
    name: str, runs: Sequence[Run], best: float, budget: Budget, shares: Sequence[float]
) -> Summary:
    near = [next((place for place in _near(run, best)), None) for run in runs]
    places = sorted(place for place in near if place is not None)
    middle = _middle([inf if place is None else place for place in near], 0.5)
    seconds = [
        inf if at is None else run.steps[at - 1].spent_s for run, at in zip(runs, near, strict=True)
    ]
    return Summary(
        strategy=name,
        runs=len(runs),
        regrets=tuple(_regrets(runs, best, budget, share) for share in shares),
        within=NEAR,
        evaluations_within=None if middle is None else int(middle),
        seconds_within=_middle(seconds, 0.5),
        reached=len(places),
    )


def _near(run: Run, best: float) -> Iterator[int]:
    """Yield the evaluations, counted from 1, after which a run is near the best."""
    for place, step in enumerate(run.steps, 1):
        if step.best is not None and step.best <= best * (1 + NEAR):
            yield place


def _regrets(runs: Sequence[Run], best: float, budget: Budget, share: float) -> RegretAt:
    found = [_best_at(run, budget, share) / best - 1 for run in runs]
    return RegretAt(
        share=share,
        median=_middle(found, 0.5),
        lower=_middle(found, 0.25),
        upper=_middle(found, 0.75),
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
