"""Which figures a sweep gives, each with what it shows in words and its data as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from eatss.base.frozen import frozen
from eatss.report.measurement import counter_words
from eatss.report.sweeps import distribution_figures as distributions
from eatss.report.sweeps import metric_figures as metrics
from eatss.report.sweeps import study_figures as studies
from eatss.report.sweeps.tables import Cell, csv_of, split_study_table
from eatss.tune.evaluation.cards import first_to_last
from eatss.tune.evaluation.correlations import TARGETS, most_telling, of_target
from eatss.tune.evaluation.population import (
    Floats,
    Population,
    by_sizes,
    is_choice,
    is_text,
    size_words,
    varies,
)
from eatss.tune.evaluation.standing import best_over_time, predicted
from eatss.tune.evaluation.studies import heat_map
from eatss.tune.evaluation.sweep_evaluation import Evaluated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLITS = 3
"""So many metrics are drawn split at their mean."""

_NARROW = 8
"""So many bars or columns can be read in half the width of a page."""

_MOST_LEVELS = 40
"""Values with more levels are no axis of a heat map."""


@frozen
class SweepFigure:
    """One figure: ``name`` for files, what it shows, the axes it is drawn on, and its data."""

    name: str
    caption: str
    axes: Callable[[], Axes]
    csv: str
    wide: bool = False

    def draw(self) -> Figure:
        """Return the figure, drawn."""
        figure = self.axes().get_figure(root=True)
        assert figure is not None
        return figure


def sweep_figures(found: Evaluated) -> tuple[SweepFigure, ...]:
    """Return the figures of which a sweep has data."""
    if len(found.found) < 2:
        return ()
    parts = (_distributions, _metrics, _studies, _checks)
    return tuple(figure for part in parts for figure in part(found))


def _distributions(one: Evaluated) -> Iterable[SweepFigure]:
    found, trade = one.found, one.evaluation.trade_off
    thrifty = found.with_energy()
    yield SweepFigure(
        name="sorted-by-performance",
        caption="All variants sorted by performance. Where energy does not fall as performance "
        "rises, speed alone is a poor guide.",
        axes=partial(distributions.sorted_distribution, found),
        csv=_variants_csv(found, np.argsort(found.performance, kind="stable")),
    )
    if len(thrifty) > 1:
        yield SweepFigure(
            name="sorted-by-energy",
            caption="The same, sorted by energy.",
            axes=partial(distributions.sorted_distribution, thrifty, by="energy"),
            csv=_variants_csv(thrifty, np.argsort(thrifty.energy_j, kind="stable")),
        )
        yield SweepFigure(
            name="energy-over-performance",
            caption="Energy over performance: the best variants are low and to the right.",
            axes=partial(distributions.performance_energy_scatter, thrifty),
            csv=_variants_csv(thrifty),
        )
    yield SweepFigure(
        name="spectrum",
        caption="Where default, paper's choice and ours stand among all variants.",
        axes=partial(distributions.spectrum, found),
        csv=_variants_csv(found),
    )
    if trade is not None and len(thrifty) > 2:
        rows = zip(thrifty.performance, thrifty.efficiency, thrifty.rows, strict=True)
        yield SweepFigure(
            name="hull",
            caption="Variants right of the vertical line are faster than the one of least energy, "
            "those above the horizontal line are thriftier than the fastest.",
            axes=partial(distributions.hull_figure, thrifty),
            csv=csv_of(
                (found.performance_unit, found.efficiency_unit, "role", "hull", "front"),
                [
                    (
                        x,
                        y,
                        row.role,
                        int(row.variant in trade.hull),
                        int(row.variant in trade.pareto),
                    )
                    for x, y, row in rows
                ],
            ),
        )
    if trade is not None and len(trade.weighted) > 1:
        taken = {row.variant: (row.time_s, row.energy_j) for row in thrifty.rows}
        yield SweepFigure(
            name="weights",
            caption="What the best variant for each weight of time loses in time and in energy.",
            axes=partial(distributions.weighted_choice, thrifty),
            csv=csv_of(
                ("alpha_low", "alpha_high", "time_s", "energy_j"),
                [(one.alpha_low, one.alpha_high, *taken[one.variant]) for one in trade.weighted],
            ),
        )


def _metrics(one: Evaluated) -> Iterable[SweepFigure]:
    found, related = one.found, one.evaluation.correlations
    for target in TARGETS[:3]:
        if own := of_target(related, target):
            names = ("pearson", "low", "high", "pearson_p", "spearman", "spearman_p")
            yield SweepFigure(
                name=f"correlation-with-{target}",
                caption="Pearson's coefficients with 95 % intervals; dots are Spearman's. Names of "
                "metrics that go otherwise with efficiency than with performance are bold.",
                axes=partial(
                    metrics.correlation_bars, related, target=target, movers=one.evaluation.movers
                ),
                csv=csv_of(
                    ("metric", "variants", *names),
                    map(attrgetter("metric", "samples", *names), own),
                ),
            )
    speed = (found.performance_unit, found.performance)
    thrift = (found.efficiency_unit, found.efficiency)
    for name in most_telling(related, SPLITS) if found.has_energy else ():
        side = counter_words(name) if is_text(name) else f"{counter_words(name)} above its mean"
        yield SweepFigure(
            name=f"split-at-mean-of-{_file_name(name)}",
            caption=f"Variants with {side} beside the others.",
            axes=lambda name=name: metrics.metric_split(found, name)[0],  # type: ignore[misc]
            csv=_columns_csv((name, found.column(name)), speed, thrift),
            wide=True,
        )
    explained = _power_metric(one)
    if explained is not None:
        yield SweepFigure(
            name=f"power-over-{_file_name(explained)}",
            caption=f"Mean power over {counter_words(explained)}, with the line of least squares.",
            axes=partial(metrics.power_over_metric, found, explained),
            csv=_columns_csv((explained, found.column(explained)), ("power_w", found.power_w)),
        )


def _studies(one: Evaluated) -> Iterable[SweepFigure]:
    found, evaluation = one.found, one.evaluation
    if evaluation.split_study:
        yield SweepFigure(
            name="splits",
            caption="The fastest variant at each split of shared memory and warp fraction, over "
            "the default.",
            axes=partial(studies.split_bars, evaluation.split_study),
            csv=split_study_table(evaluation).csv,
            wide=len(evaluation.split_study) > _NARROW,
        )
    points = evaluation.size_study
    if points:
        names = ("scale", "choice", "time_s", "energy_j", "power_w")
        figures = attrgetter(*names, "performance", "efficiency")
        units = (points[0].performance_unit, points[0].efficiency_unit)
        yield SweepFigure(
            name="sizes",
            caption=f"Choices over problem sizes; numbers beside points are {units[1]}.",
            axes=partial(studies.size_figure, points),
            csv=csv_of(
                ("sizes", *names, *units), [(size_words(p.sizes), *figures(p)) for p in points]
            ),
        )
    values = [i.value for i in evaluation.influences if i.levels <= _MOST_LEVELS][:2]
    if len(values) == 2:
        for quantity in ("performance", "efficiency") if found.has_energy else ("performance",):
            grid = heat_map(found, *values, quantity=quantity)
            yield SweepFigure(
                name=f"heat-map-of-{quantity}",
                caption=f"Best {quantity} for each {' and '.join(values)}, the two values that "
                "explain most of the time.",
                axes=partial(studies.heat_map_figure, grid),
                csv=csv_of(
                    (*values, f"{grid.statistic}_{grid.unit}", "variants"),
                    [
                        (grid.row_values[i], grid.column_values[j], value, int(grid.counts[i, j]))
                        for (i, j), value in np.ndenumerate(grid.cells)
                        if np.isfinite(value)
                    ],
                ),
                wide=grid.cells.shape[1] > _NARROW,
            )
    progress = best_over_time(
        row
        for row in first_to_last(one.sweep, evaluation.cards)
        if row.sizes == next(iter(by_sizes(one.rows)), ())
    )
    if len({(one.time_s, one.energy_j) for one in progress}) > 1:
        yield SweepFigure(
            name="best-over-time",
            caption="How far the best so far was from the best of all, while the sweep ran.",
            axes=partial(studies.best_over_time_figure, progress),
            csv=csv_of(
                ("variants", "at_s", "best_time_s", "best_energy_j", "strategy"),
                map(attrgetter("variants", "at_s", "time_s", "energy_j", "strategy"), progress),
            ),
        )


def _checks(one: Evaluated) -> Iterable[SweepFigure]:
    for check in one.evaluation.predictions:
        model, measured = predicted(one.found, check.objective)
        yield SweepFigure(
            name=f"predicted-{check.objective}",
            caption=f"Predicted over measured {check.objective}: on the line both are the same.",
            axes=partial(metrics.prediction_figure, one.found, objective=check.objective),
            csv=_columns_csv(
                (f"predicted_{check.objective}", model), (f"measured_{check.objective}", measured)
            ),
        )
    cards = [card.uuid for card in one.evaluation.cards.cards if card.references > 1]
    if cards:
        own = [r for r in one.sweep.rows if r.stage == "reference" and r.measured]
        columns = ("card", "at_s", "time_s", "energy_j")
        yield SweepFigure(
            name="drift",
            caption="References over the mean of their card: what drifts here drifts in all rows.",
            axes=partial(studies.drift_figure, own, cards),
            csv=csv_of(columns, map(attrgetter(*columns), own)),
        )


def _power_metric(one: Evaluated) -> str | None:
    """Return the metric that power is drawn over: sectors read from L2, or what goes most with it.

    Of the space's own values none is drawn: they are few levels.
    """
    powers = of_target(one.evaluation.correlations, "power")
    own = {name for row in one.found.rows for name, _ in row.metrics}
    measured = [c for c in powers if c.metric in own and varies(one.found.column(c.metric))]
    sectors = [c for c in measured if "sector" in c.metric and "read" in c.metric]
    best = sectors or measured
    return max(best, key=lambda c: abs(c.pearson)).metric if best else None


def _variants_csv(found: Population, order: Iterable[int] | None = None) -> str:
    """Return variants with their values, in an order."""
    points = [row for row in found.rows if not is_choice(row.values)]
    names = dict.fromkeys(name for row in points for name, _ in row.values)
    rows = [
        (
            row.role, row.time_s, row.energy_j, speed, thrift if row.energy_j else None,
            *map(dict(row.values).get, names),
        )
        for row, speed, thrift in zip(found.rows, found.performance, found.efficiency, strict=True)
    ]  # fmt: skip
    columns = ("role", "time_s", "energy_j", found.performance_unit, found.efficiency_unit)
    return csv_of((*columns, *names), rows if order is None else [rows[k] for k in order])


def _columns_csv(*columns: tuple[str, Floats]) -> str:
    """Return columns beside each other; NaN is empty."""
    rows: list[list[Cell]] = [
        [None if not np.isfinite(value) else float(value) for value in row]
        for row in zip(*(values for _, values in columns), strict=True)
    ]
    return csv_of([name for name, _ in columns], rows)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
