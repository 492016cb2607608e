"""Figures of metrics: correlation bars, splits at the mean, power over a metric, the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eatss.report.card_plots import predicted_against_measured
from eatss.report.measurement import counter_words
from eatss.report.plot_file import BLACK, BLUE, GREEN, VERMILION, finished, new_figure
from eatss.report.sweeps.style import (
    cloud,
    joules,
    letters,
    own_axes,
    places_of,
    plain_logarithm,
    speeds,
    titled,
)
from eatss.tune.evaluation.correlations import (
    Correlation,
    Mover,
    Target,
    correlation,
    of_target,
)
from eatss.tune.evaluation.population import Population, is_text
from eatss.tune.evaluation.standing import Objective, predicted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 40
"""Of more metrics, those with the strongest coefficients are drawn."""


def correlation_bars(
    found: Sequence[Correlation],
    axes: Axes | None = None,
    *,
    target: Target = "performance",
    movers: Sequence[Mover] = (),
) -> Axes:
    """Draw Pearson's coefficients with a target and their 95 % intervals, from -1 to +1.

    A dot is Spearman's. Names of movers are bold [BEAST, Figs. 6 to 8].
    """
    shown = list(of_target(tuple(found), target))
    if len(shown) > MOST_BARS:
        strong = sorted(shown, key=lambda one: -abs(one.pearson))[:MOST_BARS]
        shown = [one for one in shown if one in strong]
    axes = axes or own_axes(height_in=1.5 + 0.22 * len(shown))
    y = np.arange(len(shown))
    values = np.array([one.pearson for one in shown])
    errors = [
        [max(0.0, one.pearson - one.low) for one in shown],
        [max(0.0, one.high - one.pearson) for one in shown],
    ]
    colours = [VERMILION if value < 0 else BLUE for value in values]
    axes.barh(
        y, values, 0.7, color=colours, xerr=errors, capsize=1.5,
        error_kw={"elinewidth": 0.7, "alpha": 0.7}, label="Pearson, 95 % interval",
    )  # fmt: skip
    axes.plot([one.spearman for one in shown], y, "o", color=BLACK, markersize=3, label="Spearman")
    axes.set_yticks(y, [counter_words(one.metric) for one in shown], fontsize=8)
    bold = {counter_words(one.metric) for one in movers}
    for label in axes.get_yticklabels():
        if label.get_text() in bold:
            label.set_fontweight("bold")
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlim(-1.02, 1.02)
    samples = [one.samples for one in shown] or [0]
    fewest = f"{min(samples)} to " if min(samples) < max(samples) else ""
    samples_label = f"correlation coefficient, {fewest}{max(samples)} variants"
    name = "performance × efficiency" if target == "product" else target
    return finished(axes, f"Correlation with {name}", samples_label, lines="x")


def metric_split(
    found: Population, metric: str, axes: Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw performance and efficiency over a metric, and over each other, split at its mean.

    A text is there or not. Three panels: [BEAST, Fig. 9].
    """
    panels = axes or new_figure(9.6, 3.5).subplots(1, 3)
    x = found.column(metric)
    speed, unit = speeds(found)
    performance, efficiency = found.performance * speed, found.efficiency
    mean, words, text = float(np.nanmean(x)), counter_words(metric), is_text(metric)
    names = ("others", words) if text else (f"{words} up to its mean", f"{words} above its mean")
    first, second, third = panels
    for name, side, colour, mark in (
        (names[0], x <= mean, GREEN, "o"),
        (names[1], x > mean, VERMILION, "s"),
    ):
        label = f"{name} ({int(side.sum())})"
        for axis, across, up in (
            (first, x, performance),
            (second, x, efficiency),
            (third, performance, efficiency),
        ):
            cloud(axis, across[side], up[side], label=label, colour=colour, mark=mark)
    speed_label, thrift_label = f"performance in {unit}", f"efficiency in {found.efficiency_unit}"
    finished(first, "", words, speed_label)
    finished(second, "", words, thrift_label)
    finished(third, "", speed_label, thrift_label)
    for one in panels:
        if text and one is not third:
            one.set_xticks([0, 1], ["no", "yes"])
        else:
            one.locator_params(axis="x", nbins=5)
        if not text and one is not third:
            one.axvline(mean, color=BLACK, linewidth=0.8, linestyle="--")
    handles, labels = third.get_legend_handles_labels()
    third.figure.legend(
        handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize="small",
        markerscale=2.0,
    )  # fmt: skip
    return first, second, third


def power_over_metric(found: Population, metric: str, axes: Axes | None = None) -> Axes:
    """Draw mean power over a metric, with the line of least squares [EATSS, Fig. 9]."""
    axes = axes or own_axes()
    x, y = found.column(metric), found.power_w
    cloud(axes, x, y)
    both = np.isfinite(x) & np.isfinite(y)
    one = correlation(metric, x, "power", y)
    if one is not None:
        slope, offset = np.polyfit(x[both], y[both], 1)
        ends = np.array([x[both].min(), x[both].max()])
        axes.plot(ends, slope * ends + offset, color=BLACK, linewidth=1)
    places = places_of(found, x, y)
    about = "" if one is None else f", r = {one.pearson:.2f} [{one.low:.2f}, {one.high:.2f}]"
    words = counter_words(metric)
    title = titled(f"Power over {words}{about}", places)
    return letters(finished(axes, title, words, "mean power in W"), places)


def prediction_figure(
    found: Population, axes: Axes | None = None, *, objective: Objective = "time"
) -> Axes:
    """Draw what the model predicted over what was measured, with the diagonal."""
    axes = axes or own_axes(height_in=5.0)
    model, measured = predicted(found, objective)
    both = np.isfinite(model) & np.isfinite(measured) & (model > 0)
    factor, unit = (1e3, "ms") if objective == "time" else joules(found)
    x, y = measured * factor, model * factor
    pairs = list(zip(y[both].tolist(), x[both].tolist(), strict=True))
    predicted_against_measured(pairs, unit, quantity=objective, label="variants", axes=axes)
    for points in axes.collections:
        points.set_rasterized(len(pairs) > 400)
    plain_logarithm(axes, "x")
    plain_logarithm(axes, "y")
    places = places_of(found, x, y)
    title = titled(f"Predicted and measured {objective}", places)
    return letters(finished(axes, title, axes.get_xlabel(), axes.get_ylabel(), legend=1), places)
