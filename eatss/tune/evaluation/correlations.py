"""Which metrics go with performance, efficiency and their product [BEAST, Secs. 3.5 and 3.6]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from eatss.base.frozen import frozen
from eatss.tune.evaluation.population import Floats, Population, explaining_names, varies

Target: TypeAlias = Literal["performance", "efficiency", "product", "power"]
TARGETS: tuple[Target, ...] = ("performance", "efficiency", "product", "power")

FEWEST = 4
"""Fewer samples than this have no interval."""


@frozen
class Correlation:
    """How a metric goes with a target over ``samples`` variants.

    ``low`` and ``high`` bound Pearson's coefficient with 95 % confidence, by Fisher's
    transformation. The p-values are of no correlation at all, of this metric alone: of twenty
    metrics without any, one has a p-value under 0.05.
    """

    metric: str
    target: Target
    samples: int
    pearson: float
    low: float
    high: float
    pearson_p: float
    spearman: float
    spearman_p: float


@frozen
class Mover:
    """A metric that stands elsewhere for efficiency than for performance; ranks from 1.

    ``clear`` says that the intervals of the two coefficients do not overlap.
    """

    metric: str
    performance: float
    efficiency: float
    rank_by_performance: int
    rank_by_efficiency: int
    clear: bool


@frozen
class MeanSplit:
    """Variants with a metric above its mean beside the others: counts and means of each side."""

    metric: str
    mean: float
    above: int
    below: int
    performance_above: float
    performance_below: float
    efficiency_above: float | None
    efficiency_below: float | None


def correlation(metric: str, x: Floats, target: Target, y: Floats) -> Correlation | None:
    """Return the correlation where both are known; ``None`` for under 4 samples or a constant."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if x.size < FEWEST or not varies(x) or not varies(y):
        return None
    linear, ranked = stats.pearsonr(x, y), stats.spearmanr(x, y)
    interval = linear.confidence_interval(0.95)
    numbers = (linear.statistic, interval.low, interval.high, ranked.statistic)
    if not np.isfinite(numbers).all():
        return None
    return Correlation(
        metric=metric,
        target=target,
        samples=int(x.size),
        pearson=float(linear.statistic),
        low=float(interval.low),
        high=float(interval.high),
        pearson_p=float(linear.pvalue),
        spearman=float(ranked.statistic),
        spearman_p=float(ranked.pvalue),
    )


def correlations(found: Population) -> tuple[Correlation, ...]:
    """Return all metrics and numeric values of the space with each target, from -1 to +1."""
    targets: Mapping[Target, Floats] = {
        "performance": found.performance,
        "efficiency": found.efficiency,
        "product": found.performance * found.efficiency,
        "power": found.power_w,
    }
    listed: list[Correlation] = []
    for target, y in targets.items():
        each = (
            correlation(name, found.column(name), target, y) for name in explaining_names(found)
        )
        listed += sorted(filter(None, each), key=lambda one: one.pearson)
    return tuple(listed)


def of_target(found: tuple[Correlation, ...], target: Target) -> tuple[Correlation, ...]:
    """Return the correlations with one target, in their order."""
    return tuple(one for one in found if one.target == target)


def movers(found: tuple[Correlation, ...]) -> tuple[Mover, ...]:
    """Return metrics by how much their coefficient changes from performance to efficiency.

    Only those are movers that change by more than half the width of the wider of both intervals.
    """
    thrift = {one.metric: (k, one) for k, one in enumerate(of_target(found, "efficiency"), 1)}
    listed = []
    for at_speed, a in enumerate(of_target(found, "performance"), 1):
        at_thrift, b = thrift.get(a.metric, (0, a))
        if abs(a.pearson - b.pearson) > max(a.high - a.low, b.high - b.low) / 2:
            listed.append(
                Mover(
                    metric=a.metric,
                    performance=a.pearson,
                    efficiency=b.pearson,
                    rank_by_performance=at_speed,
                    rank_by_efficiency=at_thrift,
                    clear=a.high < b.low or b.high < a.low,
                )
            )
    return tuple(
        sorted(listed, key=lambda one: (-abs(one.performance - one.efficiency), one.metric))
    )


def mean_split(found: Population, metric: str) -> MeanSplit | None:
    """Return both sides of a metric's mean; ``None`` where it is constant or not there."""
    x = found.column(metric)
    if not varies(x):
        return None
    mean = float(np.nanmean(x))
    above, below = x > mean, x <= mean
    return MeanSplit(
        metric=metric,
        mean=mean,
        above=int(above.sum()),
        below=int(below.sum()),
        performance_above=float(found.performance[above].mean()),
        performance_below=float(found.performance[below].mean()),
        efficiency_above=_mean(found.efficiency[above]),
        efficiency_below=_mean(found.efficiency[below]),
    )


def most_telling(found: tuple[Correlation, ...], count: int) -> tuple[str, ...]:
    """Return the metrics that go most with performance or efficiency, either way."""
    strength: dict[str, float] = {}
    for one in found:
        if one.target in ("performance", "efficiency"):
            strength[one.metric] = max(strength.get(one.metric, 0.0), abs(one.pearson))
    return tuple(sorted(strength, key=lambda name: (-strength[name], name))[:count])


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None
