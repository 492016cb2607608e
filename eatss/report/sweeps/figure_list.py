"""Which figures a sweep gives, each with what it shows in words and its data as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from eatss.evaluation.cards import first_to_last
from eatss.evaluation.correlations import TARGETS, most_telling, of_target
from eatss.evaluation.population import (
    Floats,
    Population,
    by_sizes,
    is_choice,
    is_text,
    size_words,
    varies,
)
from eatss.evaluation.standing import Objective, best_over_time, predicted
from eatss.evaluation.studies import HeatMap, heat_map
from eatss.evaluation.sweep_evaluation import Evaluated
from eatss.frozen import frozen
from eatss.report.measurement import counter_words
from eatss.report.sweeps import distribution_figures as distributions
from eatss.report.sweeps import metric_figures as metrics
from eatss.report.sweeps import study_figures as studies
from eatss.report.sweeps.tables import Cell, csv_of, split_study_table

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
    csv: Callable[[], str]
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
    return tuple(
        figure
        for part in (_distributions, _metrics, _studies, _models, _cards)
        for figure in part(found)
    )


def _distributions(one: Evaluated) -> Iterable[SweepFigure]:
    found = one.found
    thrifty = found.with_energy()
    yield SweepFigure(
        name="sorted-by-performance",
        caption="All variants sorted by performance. Where energy does not fall as performance "
        "rises, speed alone is a poor guide.",
        axes=lambda: distributions.sorted_distribution(found),
        csv=lambda: _variants_csv(found, np.argsort(found.performance, kind="stable")),
    )
    if len(thrifty) > 1:
        yield SweepFigure(
            name="sorted-by-energy",
            caption="The same, sorted by energy.",
            axes=lambda: distributions.sorted_distribution(thrifty, by="energy"),
            csv=lambda: _variants_csv(thrifty, np.argsort(thrifty.energy_j, kind="stable")),
        )
        yield SweepFigure(
            name="energy-over-performance",
            caption="Energy over performance: the best variants are low and to the right.",
            axes=lambda: distributions.performance_energy_scatter(thrifty),
            csv=lambda: _variants_csv(thrifty),
        )
    yield SweepFigure(
        name="spectrum",
        caption="Where default, paper's choice and ours stand among all variants.",
        axes=lambda: distributions.spectrum(found),
        csv=lambda: _variants_csv(found),
    )
    if len(thrifty) > 2:
        yield SweepFigure(
            name="hull",
            caption="Variants right of the vertical line are faster than the one of least energy, "
            "those above the horizontal line are thriftier than the fastest.",
            axes=lambda: distributions.hull_figure(thrifty),
            csv=lambda: _hull_csv(thrifty, one),
        )
    trade = one.evaluation.trade_off
    if trade is not None and len(trade.weighted) > 1:
        yield SweepFigure(
            name="weights",
            caption="What the best variant for each weight of time loses in time and in energy.",
            axes=lambda: distributions.weighted_choice(thrifty),
            csv=lambda: _weights_csv(thrifty, one),
        )


def _metrics(one: Evaluated) -> Iterable[SweepFigure]:
    found, related = one.found, one.evaluation.correlations
    for target in TARGETS[:3]:
        if of_target(related, target):
            yield SweepFigure(
                name=f"correlation-with-{target}",
                caption="Pearson's coefficients with 95 % intervals; dots are Spearman's. Names of "
                "metrics that go otherwise with efficiency than with performance are bold.",
                axes=lambda target=target: metrics.correlation_bars(  # type: ignore[misc]
                    related, target=target, movers=one.evaluation.movers
                ),
                csv=lambda target=target: csv_of(  # type: ignore[misc]
                    ("metric", "variants", "pearson", "low", "high", "pearson_p", "spearman",
                     "spearman_p"),
                    map(
                        attrgetter("metric", "samples", "pearson", "low", "high", "pearson_p",
                                   "spearman", "spearman_p"),
                        of_target(related, target),
                    ),
                ),
            )  # fmt: skip
    for name in most_telling(related, SPLITS) if found.has_energy else ():
        side = counter_words(name) if is_text(name) else f"{counter_words(name)} above its mean"
        yield SweepFigure(
            name=f"split-at-mean-of-{_file_name(name)}",
            caption=f"Variants with {side} beside the others.",
            axes=lambda name=name: metrics.metric_split(found, name)[0],  # type: ignore[misc]
            csv=lambda name=name: _columns_csv(  # type: ignore[misc]
                (name, found.column(name)),
                (found.performance_unit, found.performance),
                (found.efficiency_unit, found.efficiency),
            ),
            wide=True,
        )
    explained = _power_metric(one)
    if explained is not None:
        yield SweepFigure(
            name=f"power-over-{_file_name(explained)}",
            caption=f"Mean power over {counter_words(explained)}, with the line of least squares.",
            axes=lambda: metrics.power_over_metric(found, explained),
            csv=lambda: _columns_csv(
                (explained, found.column(explained)), ("power_w", found.power_w)
            ),
        )


def _studies(one: Evaluated) -> Iterable[SweepFigure]:
    found, evaluation = one.found, one.evaluation
    if evaluation.split_study:
        yield SweepFigure(
            name="splits",
            caption="The fastest variant at each split of shared memory and warp fraction, over "
            "the default.",
            axes=lambda: studies.split_bars(evaluation.split_study),
            csv=lambda: split_study_table(evaluation).csv,
            wide=len(evaluation.split_study) > _NARROW,
        )
    points = evaluation.size_study
    if points:
        yield SweepFigure(
            name="sizes",
            caption="Choices over problem sizes; numbers beside points are "
            f"{points[0].efficiency_unit}.",
            axes=lambda: studies.size_figure(points),
            csv=lambda: csv_of(
                ("sizes", "scale", "choice", "time_s", "energy_j", "power_w",
                 points[0].performance_unit, points[0].efficiency_unit),
                [
                    (size_words(p.sizes), p.scale, p.choice, p.time_s, p.energy_j, p.power_w,
                     p.performance, p.efficiency)
                    for p in points
                ],
            ),
        )  # fmt: skip
    names = [i.value for i in evaluation.influences if i.levels <= _MOST_LEVELS][:2]
    if len(names) == 2:
        for quantity in ("performance", "efficiency") if found.has_energy else ("performance",):
            grid = heat_map(found, names[0], names[1], quantity=quantity)
            yield SweepFigure(
                name=f"heat-map-of-{quantity}",
                caption=f"Best {quantity} for each {names[0]} and {names[1]}, the two values that "
                "explain most of the time.",
                axes=lambda grid=grid: studies.heat_map_figure(grid),  # type: ignore[misc]
                csv=lambda grid=grid: _heat_csv(grid),  # type: ignore[misc]
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
            axes=lambda: studies.best_over_time_figure(progress),
            csv=lambda: csv_of(
                ("variants", "at_s", "best_time_s", "best_energy_j", "strategy"),
                map(attrgetter("variants", "at_s", "time_s", "energy_j", "strategy"), progress),
            ),
        )


def _models(one: Evaluated) -> Iterable[SweepFigure]:
    found = one.found
    for check in one.evaluation.predictions:
        objective: Objective = check.objective
        yield SweepFigure(
            name=f"predicted-{objective}",
            caption=f"Predicted over measured {objective}: on the line both are the same.",
            axes=lambda objective=objective: metrics.prediction_figure(  # type: ignore[misc]
                found, objective=objective
            ),
            csv=lambda objective=objective: _columns_csv(  # type: ignore[misc]
                (f"predicted_{objective}", predicted(found, objective)[0]),
                (f"measured_{objective}", predicted(found, objective)[1]),
            ),
        )


def _cards(one: Evaluated) -> Iterable[SweepFigure]:
    cards = [card.uuid for card in one.evaluation.cards.cards if card.references > 1]
    if cards:
        own = [r for r in one.sweep.rows if r.stage == "reference" and r.measured]
        yield SweepFigure(
            name="drift",
            caption="References over the mean of their card: what drifts here drifts in all rows.",
            axes=lambda: studies.drift_figure(own, cards),
            csv=lambda: csv_of(
                columns := ("card", "at_s", "time_s", "energy_j"), map(attrgetter(*columns), own)
            ),
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
    names = tuple(dict.fromkeys(name for row in points for name, _ in row.values))
    rows = []
    for k in range(len(found)) if order is None else order:
        row = found.rows[int(k)]
        point = dict(row.values)
        rows.append(
            (
                row.role,
                row.time_s,
                row.energy_j,
                float(found.performance[int(k)]),
                None if not row.energy_j else float(found.efficiency[int(k)]),
                *(point.get(name) for name in names),
            )
        )
    columns = ("role", "time_s", "energy_j", found.performance_unit, found.efficiency_unit)
    return csv_of((*columns, *names), rows)


def _hull_csv(found: Population, one: Evaluated) -> str:
    trade = one.evaluation.trade_off
    hull, front = (set(), set()) if trade is None else (set(trade.hull), set(trade.pareto))
    return csv_of(
        (found.performance_unit, found.efficiency_unit, "role", "hull", "front"),
        [
            (
                float(found.performance[k]), float(found.efficiency[k]), row.role,
                int(row.variant in hull), int(row.variant in front),
            )
            for k, row in enumerate(found.rows)
        ],
    )  # fmt: skip


def _weights_csv(found: Population, one: Evaluated) -> str:
    trade = one.evaluation.trade_off
    rows = {row.variant: row for row in found.rows}
    return csv_of(
        ("alpha_low", "alpha_high", "time_s", "energy_j"),
        [
            (w.alpha_low, w.alpha_high, rows[w.variant].time_s, rows[w.variant].energy_j)
            for w in (() if trade is None else trade.weighted)
        ],
    )


def _columns_csv(*columns: tuple[str, Floats]) -> str:
    """Return columns beside each other; NaN is empty."""
    rows: list[list[Cell]] = [
        [None if not np.isfinite(value) else float(value) for value in row]
        for row in zip(*(values for _, values in columns), strict=True)
    ]
    return csv_of([name for name, _ in columns], rows)


def _heat_csv(found: HeatMap) -> str:
    return csv_of(
        (found.rows, found.columns, f"{found.statistic}_{found.unit}", "variants"),
        [
            (found.row_values[row], found.column_values[column], float(value),
             int(found.counts[row, column]))
            for (row, column), value in np.ndenumerate(found.cells)
            if np.isfinite(value)
        ],
    )  # fmt: skip


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
