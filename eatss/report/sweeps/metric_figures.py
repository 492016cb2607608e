"""Figures of metrics: correlation bars, splits at the mean, power over a metric, the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eatss.evaluation.correlations import (
    Correlation,
    Mover,
    Target,
    correlation,
    of_target,
)
from eatss.evaluation.population import Population, is_text
from eatss.evaluation.standing import Objective, predicted
from eatss.report.card_plots import predicted_against_measured
from eatss.report.measurement import counter_words
from eatss.report.plot_file import BLACK, BLUE, GREEN, VERMILION, new_figure
from eatss.report.sweeps.style import (
    cloud,
    grid,
    joules,
    legend_below,
    letters,
    letters_legend,
    own_axes,
    places_of,
    plain_logarithm,
    speeds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 40
"""Of more metrics, those with the strongest coefficients are drawn."""

_TARGETS = {
    "performance": "performance",
    "efficiency": "efficiency",
    "product": "performance × efficiency",
    "power": "power",
}


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
    axes.set_xlabel(f"correlation coefficient, {fewest}{max(samples)} variants")
    axes.set_title(f"Correlation with {_TARGETS[target]}")
    grid(axes, "x")
    return axes


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
    mean, words = float(np.nanmean(x)), counter_words(metric)
    names = f"{words} up to its mean", f"{words} above its mean"
    if is_text(metric):
        names = "others", words
    sides = (
        (names[0], x <= mean, GREEN, "o"),
        (names[1], x > mean, VERMILION, "s"),
    )
    first, second, third = panels
    for name, side, colour, mark in sides:
        label = f"{name} ({int(side.sum())})"
        cloud(first, x[side], performance[side], label=label, colour=colour, mark=mark)
        cloud(second, x[side], efficiency[side], label=label, colour=colour, mark=mark)
        cloud(third, performance[side], efficiency[side], label=label, colour=colour, mark=mark)
    for one in (first, second):
        if not is_text(metric):
            one.axvline(mean, color=BLACK, linewidth=0.8, linestyle="--")
        one.set_xlabel(words)
    first.set_ylabel(f"performance in {unit}")
    second.set_ylabel(f"efficiency in {found.efficiency_unit}")
    third.set_xlabel(f"performance in {unit}")
    third.set_ylabel(f"efficiency in {found.efficiency_unit}")
    for one in panels:
        if is_text(metric) and one is not third:
            one.set_xticks([0, 1], ["no", "yes"])
        else:
            one.locator_params(axis="x", nbins=5)
        grid(one)
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
    axes.set_xlabel(counter_words(metric))
    axes.set_ylabel("mean power in W")
    about = "" if one is None else f", r = {one.pearson:.2f} [{one.low:.2f}, {one.high:.2f}]"
    title = f"Power over {counter_words(metric)}{about}"
    legend = letters_legend(places)
    axes.set_title(f"{title}\n{legend}" if legend else title)
    grid(axes)
    letters(axes, places)
    return axes


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
    axes.set_title(f"Predicted and measured {objective}\n{letters_legend(places)}".strip())
    legend_below(axes, 1)
    letters(axes, places)
    return axes
