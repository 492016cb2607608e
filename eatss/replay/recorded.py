"""A recorded sweep as strategies see it: its points, what each costs, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite, prod
from typing import Literal, TypeAlias

from eatss.diagnostics import input_error
from eatss.evaluation.cards import compare_cards, on_one_scale
from eatss.evaluation.population import by_sizes
from eatss.frozen import frozen
from eatss.point import Value
from eatss.store.nouns import BESIDE, Role, Row, Sizes, Sweep
from eatss.strategies.budget import Budget
from eatss.strategies.in_order import ListedSpace
from eatss.targets import TargetName

Objective: TypeAlias = Literal["time", "energy", "edp"]
"""What is to be small: seconds of a run, joules of a run, or their product."""

UNITS: dict[str, str] = {"time": "s", "energy": "J", "edp": "J s"}
"""The unit of a cost, by objective."""


@frozen
class Step:
    """One evaluation of a run.

    Attributes:
        variant: :func:`eatss.point.variant_key` of what was measured.
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
class Replay:
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

    program: str
    target: TargetName
    card: str
    uuid: str | None
    objective: Objective
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


_WHAT: Mapping[Objective, str] = {
    "time": "a time",
    "energy": "an energy",
    "edp": "both a time and an energy",
}


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


def recorded(sweep: Sweep, objective: Objective) -> Recorded:
    """Return what strategies can be tried on: the rows of one size and of one card.

    These are the size and then the card with the most measured variants. A careful row counts
    before one of the first pass. Rows of other names than most have are no points of the space:
    strategies are not offered them.

    Raises:
        InputError: ``EATSS-T007``, no variant has such a cost.
    """
    groups = by_sizes(on_one_scale(sweep, compare_cards(sweep)))
    sizes = next(iter(groups), ())
    own = [row for row in sweep.latest if row.sizes == sizes]
    cards = Counter(row.card for row in own if row.measured and row.card is not None)
    uuid = cards.most_common(1)[0][0] if cards else None
    kept = [
        one
        for one in sweep.rows
        if one.stage not in BESIDE and one.card in (uuid, None) and one.sizes == sizes
    ]
    first: dict[str, Row] = {}
    for row in kept:
        first.setdefault(row.variant, row)
    rows: dict[str, Row] = {}
    for row in replace(sweep, rows=tuple(kept)).latest:
        if row.variant not in rows or row.card is not None:
            rows[row.variant] = row
    names = Counter(tuple(sorted(dict(row.values))) for row in rows.values())
    of_space = names.most_common(1)[0][0] if names else ()
    offered = [row for row in rows.values() if tuple(sorted(dict(row.values))) == of_space]
    costs = {variant: cost_of(row, objective) for variant, row in rows.items()}
    if not any(isfinite(costs[row.variant]) for row in offered):
        raise input_error(
            "EATSS-T007",
            f"nothing to replay: no variant of '{sweep.identity.program}' was measured with "
            f"{_WHAT[objective]}",
            hint="replay a store that `eatss sweep` has filled, or choose another objective",
        )
    predicted = [row for row in offered if isfinite(predicted_of(row, objective))]
    predicted.sort(key=lambda row: predicted_of(row, objective))
    return Recorded(
        uuid=uuid,
        sizes=sizes,
        other_sizes=max(0, len(groups) - 1),
        space=ListedSpace(dict(offered[0].values), (dict(row.values) for row in offered)),
        rows=rows,
        first=first,
        costs=costs,
        ranked=tuple(dict(row.values) for row in predicted) or None,
    )


def cost_of(row: Row, objective: Objective) -> float:
    """Return what a variant costs: s, J or J s; infinity where it failed or that was not read.

    What is not over 0 was not read.
    """
    return _cost(row.time_s, row.energy_j, objective) if row.measured else inf


def predicted_of(row: Row, objective: Objective) -> float:
    """Return what the model predicted that it costs; infinity where it did not."""
    metrics = dict(row.metrics)
    return _cost(metrics.get("predicted_time_s"), metrics.get("predicted_energy_j"), objective)


def _cost(time_s: float | None, energy_j: float | None, objective: Objective) -> float:
    needed = {"time": (time_s,), "energy": (energy_j,), "edp": (time_s, energy_j)}[objective]
    return prod(one if one is not None and one > 0 else inf for one in needed)
