"""``SweepEvaluation``: all numbers of one sweep; ``SweepReport``: those of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eatss.base.frozen import frozen
from eatss.base.shown import Shown, in_lines
from eatss.tune.evaluation.cards import CardComparison, compare_cards, on_one_scale
from eatss.tune.evaluation.correlations import (
    Correlation,
    MeanSplit,
    Mover,
    correlations,
    mean_split,
    most_telling,
    movers,
)
from eatss.tune.evaluation.population import (
    FailureCount,
    OverLimit,
    Population,
    StatusCount,
    by_sizes,
    count_failures,
    count_statuses,
    over_limit,
    population,
)
from eatss.tune.evaluation.standing import (
    Choice,
    MeanRatios,
    PredictionCheck,
    check_prediction,
    choices,
    geometric_means,
)
from eatss.tune.evaluation.studies import (
    Influence,
    SizePoint,
    SplitBar,
    influences,
    size_study,
    split_study,
)
from eatss.tune.evaluation.tradeoff import TradeOff, trade_off
from eatss.tune.store.nouns import Identity, Row, Sizes, Sweep

if TYPE_CHECKING:
    from eatss.tune.evaluation.standing import ChoiceName

SPLITS_SHOWN = 5
"""So many metrics are split at their mean, as in Fig. 9 of BEAST."""


@frozen
class SweepEvaluation(Shown):
    """All that is computed of one sweep.

    Attributes:
        identity: What the sweep is of.
        cards: Its cards, and how their rows are compared.
        sizes: The problem size that everything but ``size_study`` is of: the one with the most
            measured variants.
        variants: Measured variants of this size.
        tried: All variants of this size.
        unstable: Measured variants whose times vary more than they should; they count.
        over_limit: Measured variants whose one short window drew more than the card's power limit;
            ``None`` where none did.
        statuses: How the variants ended.
        failures: Why some have no time.
        performance_unit: ``GFLOP/s``, or ``runs/s`` where operations are not counted.
        efficiency_unit: ``GFLOP/J`` or ``runs/J``.
        choices: Median, default, paper's, ours, fastest, least energy, and where they stand.
        trade_off: ``None`` where no energy was measured.
        correlations: Metrics and values with performance, efficiency, product and power, each from
            -1 to +1.
        movers: Metrics that go otherwise with efficiency than with performance.
        mean_splits: The most telling metrics, split at their means.
        influences: How much each value of the space explains.
        split_study: Splits of shared memory and warp fractions against the default.
        size_study: Choices over problem sizes.
        predictions: The model against the measurement, in time and in energy.
        processor_s: Seconds of a processor that generating and compiling took, of all rows.
        card_s: Seconds that cards were taken.
        card_j: Joules that cards drew in their windows, of the rows that know.
    """

    shown_by = "eatss.report.sweep_tables:evaluation_parts"

    identity: Identity
    cards: CardComparison
    sizes: Sizes
    variants: int
    tried: int
    unstable: int
    over_limit: OverLimit | None
    statuses: tuple[StatusCount, ...]
    failures: tuple[FailureCount, ...]
    performance_unit: str
    efficiency_unit: str
    choices: tuple[Choice, ...]
    trade_off: TradeOff | None
    correlations: tuple[Correlation, ...]
    movers: tuple[Mover, ...]
    mean_splits: tuple[MeanSplit, ...]
    influences: tuple[Influence, ...]
    split_study: tuple[SplitBar, ...]
    size_study: tuple[SizePoint, ...]
    predictions: tuple[PredictionCheck, ...]
    processor_s: float
    card_s: float
    card_j: float | None

    def __repr__(self) -> str:
        known = self.identity
        head = (
            f"SweepEvaluation {known.program}: target {known.target}, {known.card}; "
            f"{self.variants} of {self.tried} variants measured"
        )
        return in_lines(head, [_line(choice) for choice in self.choices])

    def choice(self, name: ChoiceName) -> Choice | None:
        """Return a choice by name, ``None`` where the sweep has none."""
        return next((one for one in self.choices if one.name == name), None)


def _line(choice: Choice) -> str:
    found = choice.figures
    if found is None:
        return f"{choice.name}: not measured"
    energy = "- J" if found.energy_j is None else f"{found.energy_j:.4g} J"
    return f"{choice.name}: {1e3 * found.time_s:.4g} ms, {energy}"


@frozen
class SweepReport:
    """What ``eatss report`` computes: each sweep, and geometric means of choices over all."""

    sweeps: tuple[SweepEvaluation, ...]
    means: tuple[MeanRatios, ...]
    schema_version: int = field(default=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A sweep with its evaluation and the rows that figures draw.

    ``rows`` are on one scale, of all sizes; ``found`` are the measured ones of the main size.
    """

    sweep: Sweep
    evaluation: SweepEvaluation
    rows: tuple[Row, ...]
    found: Population


def evaluate(sweep: Sweep) -> Evaluated:
    """Compute everything of one sweep. Rows of other cards count only where they can be scaled."""
    cards = compare_cards(sweep)
    rows = on_one_scale(sweep, cards)
    groups = by_sizes(rows)
    sizes = next(iter(groups), ())
    own = groups.get(sizes, ())
    found = population(own)
    related = correlations(found)
    telling = most_telling(related, SPLITS_SHOWN)
    joules = [row.card_j for row in sweep.rows if row.card_j is not None]
    checks = (check_prediction(found, "time"), check_prediction(found, "energy"))
    splits = (mean_split(found, name) for name in telling)
    evaluation = SweepEvaluation(
        identity=sweep.identity,
        cards=cards,
        sizes=sizes or sweep.identity.sizes,
        variants=len(found),
        tried=len(own),
        unstable=sum(row.status == "unstable" for row in found.rows),
        over_limit=over_limit(found, sweep),
        statuses=count_statuses(own),
        failures=count_failures(own),
        performance_unit=found.performance_unit,
        efficiency_unit=found.efficiency_unit,
        choices=choices(found, own),
        trade_off=trade_off(found),
        correlations=related,
        movers=movers(related),
        mean_splits=tuple(one for one in splits if one is not None),
        influences=influences(found),
        split_study=split_study(found),
        size_study=size_study(rows),
        predictions=tuple(one for one in checks if one is not None),
        processor_s=sum(row.made_s for row in sweep.rows),
        card_s=sum(row.card_s for row in sweep.rows),
        card_j=sum(joules) if joules else None,
    )
    return Evaluated(sweep=sweep, evaluation=evaluation, rows=rows, found=found)


def summed_up(evaluated: Sequence[Evaluated]) -> SweepReport:
    """Return the report of several sweeps."""
    evaluations = tuple(one.evaluation for one in evaluated)
    return SweepReport(
        sweeps=evaluations, means=geometric_means(one.choices for one in evaluations)
    )
