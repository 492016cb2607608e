"""``SweepEvaluation``: all numbers of one sweep; ``SweepReport``: those of several.

Which rows count, and which metrics go with performance, efficiency and their
product [BEAST, Secs. 3.5 and 3.6]. Of several cards the rows of one count: two cards of one kind
differ by some percent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy import stats

from eatss.base.frozen import Names, frozen
from eatss.base.shown import Shown
from eatss.base.targets import ObjectiveName
from eatss.tune.population import (
    FailureCount,
    Floats,
    OverLimit,
    Population,
    TradeOff,
    count_failures,
    explaining_names,
    over_limit,
    population,
    trade_off,
    varies,
)
from eatss.tune.rows import BESIDE, Identity, Row, Rows, Sizes, Sweep
from eatss.tune.standing import (
    Choice,
    MeanRatios,
    PredictionCheck,
    SplitBar,
    check_prediction,
    choices,
    geometric_means,
    split_study,
)

if TYPE_CHECKING:
    from eatss.tune.standing import ChoiceName

UNKNOWN = "unknown"
"""The card of measured rows that name none, as of an imported sweep: one, as far as is known."""


@frozen
class CardRows:
    """One card: its measured variants, and whether its rows count."""

    uuid: str
    rows: int
    used: bool


def cards_of(sweep: Sweep) -> tuple[CardRows, ...]:
    """Return the cards of a sweep, the one with the most measured variants first: it is used."""
    counts = Counter(row.card or UNKNOWN for row in sweep.latest if row.measured).most_common()
    return tuple(
        CardRows(uuid=card, rows=count, used=at == 0) for at, (card, count) in enumerate(counts)
    )


def rows_of_one_card(sweep: Sweep) -> Rows:
    """Return one row a variant, in the order of the sweep, of the card and the size that are used.

    The careful row of a variant stands, and a measured one before a failed one. Rows that came to
    no card are kept: they failed. A role that any row of a variant has is the variant's.
    """
    used = next((card.uuid for card in cards_of(sweep)), None)
    roles = {row.variant: row.role for row in sweep.rows if row.role and row.stage not in BESIDE}
    of_card = tuple(row for row in sweep.latest if not (used and row.card) or row.card == used)
    sizes = sizes_of(of_card, sweep)
    found: dict[str, Row] = {}
    for row in of_card:
        known = found.get(row.variant)
        if (row.sizes == sizes or not used) and not (known and known.measured):
            found[row.variant] = replace(row, role=row.role or roles.get(row.variant, ""))
    return tuple(found.values())


def sizes_of(rows: Rows, sweep: Sweep) -> Sizes:
    """Return the problem size of most of what was measured."""
    counts = Counter(row.sizes for row in rows if row.measured).most_common(1)
    return counts[0][0] if counts else sweep.identity.sizes


Target: TypeAlias = Literal["performance", "efficiency", "product", "power"]
TARGETS: tuple[Target, ...] = ("performance", "efficiency", "product", "power")

FEWEST = 4
"""Fewer samples than this have no interval."""


@frozen
class Correlation:
    """How a metric goes with a target over ``samples`` variants.

    ``low`` and ``high`` bound Pearson's coefficient with 95 % confidence, by Fisher's
    transformation.
    """

    metric: str
    target: Target
    samples: int
    pearson: float
    low: float
    high: float
    spearman: float


Correlations: TypeAlias = tuple[Correlation, ...]


def correlation(metric: str, x: Floats, target: Target, y: Floats) -> Correlation | None:
    """Return the correlation where both are known; ``None`` for under 4 samples or a constant."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if x.size < FEWEST or not varies(x) or not varies(y):
        return None
    linear, ranked = stats.pearsonr(x, y), stats.spearmanr(x, y)
    interval = linear.confidence_interval(0.95)
    numbers = [*map(float, (linear.statistic, interval.low, interval.high, ranked.statistic))]
    if not np.isfinite(numbers).all():
        return None
    pearson, low, high, spearman = numbers
    return Correlation(
        metric=metric,
        target=target,
        samples=int(x.size),
        pearson=pearson,
        low=low,
        high=high,
        spearman=spearman,
    )


def correlations(found: Population) -> Correlations:
    """Return all metrics and numeric values of the space with each target, from -1 to +1."""
    targets: Mapping[Target, Floats] = {
        "performance": found.performance,
        "efficiency": found.efficiency,
        "product": found.performance * found.efficiency,
        "power": found.power_w,
    }
    listed = []
    for target, y in targets.items():
        each = (
            correlation(name, found.column(name), target, y) for name in explaining_names(found)
        )
        listed += sorted(filter(None, each), key=lambda one: one.pearson)
    return tuple(listed)


def of_target(found: Correlations, target: Target) -> Correlations:
    """Return the correlations with one target, in their order."""
    return tuple(one for one in found if one.target == target)


def most_telling(found: Correlations, count: int) -> Names:
    """Return the metrics that go most with performance or efficiency, either way."""
    strength: dict[str, float] = {}
    for one in found:
        if one.target in ("performance", "efficiency"):
            strength[one.metric] = max(strength.get(one.metric, 0.0), abs(one.pearson))
    return tuple(sorted(strength, key=lambda name: (-strength[name], name))[:count])


@frozen
class SweepEvaluation(Shown):
    """All that is computed of one sweep.

    Attributes:
        identity: What the sweep is of.
        cards: Its cards; the rows of the first count.
        sizes: The problem size.
        variants: Measured variants.
        tried: All variants.
        unstable: Measured variants whose times vary more than they should; they count.
        over_limit: Measured variants whose one short window drew more than the card's power limit;
            ``None`` where none did.
        failures: Why some have no time.
        performance_unit: ``GFLOP/s``, or ``runs/s`` where operations are not counted.
        efficiency_unit: ``GFLOP/J`` or ``runs/J``.
        choices: Median, default, paper's, ours, fastest, least energy, and where they stand.
        trade_off: ``None`` where no energy was measured.
        correlations: Metrics and values with performance, efficiency, product and power, each from
            -1 to +1.
        split_study: Splits of shared memory and warp fractions against the default.
        predictions: The model against the measurement, in each objective.
        processor_s: Seconds of a processor that generating and compiling took, of all rows.
        card_s: Seconds that cards were taken.
        card_j: Joules that cards drew in their windows, of the rows that know.
    """

    shown_by = "evaluation"

    identity: Identity
    cards: tuple[CardRows, ...]
    sizes: Sizes
    variants: int
    tried: int
    unstable: int
    over_limit: OverLimit | None
    failures: tuple[FailureCount, ...]
    performance_unit: str
    efficiency_unit: str
    choices: tuple[Choice, ...]
    trade_off: TradeOff | None
    correlations: Correlations
    split_study: tuple[SplitBar, ...]
    predictions: tuple[PredictionCheck, ...]
    processor_s: float
    card_s: float
    card_j: float | None

    def __repr__(self) -> str:
        known, measured = self.identity, f"{self.variants} of {self.tried} variants measured"
        return f"<SweepEvaluation {known.program}: target {known.target}, {known.card}; {measured}>"

    def choice(self, name: ChoiceName) -> Choice | None:
        """Return a choice by name, ``None`` where the sweep has none."""
        return next((one for one in self.choices if one.name == name), None)


@frozen
class SweepReport:
    """What ``eatss report`` computes: each sweep, and geometric means of choices over all."""

    sweeps: tuple[SweepEvaluation, ...]
    means: tuple[MeanRatios, ...]
    schema_version: int = field(default=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A sweep with its evaluation and the rows that figures draw.

    ``rows`` are of one card; ``found`` are the measured ones.
    """

    sweep: Sweep
    evaluation: SweepEvaluation
    rows: Rows
    found: Population


def evaluate(sweep: Sweep) -> Evaluated:
    """Compute everything of one sweep, of the card with the most rows."""
    rows = rows_of_one_card(sweep)
    found = population(rows)
    joules = [row.card_j for row in sweep.rows if row.card_j is not None]
    checks = (check_prediction(found, name) for name in get_args(ObjectiveName))
    evaluation = SweepEvaluation(
        identity=sweep.identity,
        cards=cards_of(sweep),
        sizes=sizes_of(rows, sweep),
        variants=len(found),
        tried=len(rows),
        unstable=sum(row.status == "unstable" for row in found.rows),
        over_limit=over_limit(found, sweep),
        failures=count_failures(rows),
        performance_unit=found.performance_unit,
        efficiency_unit=found.efficiency_unit,
        choices=choices(found, rows),
        trade_off=trade_off(found),
        correlations=correlations(found),
        split_study=split_study(found),
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
