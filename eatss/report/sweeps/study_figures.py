"""Figures of studies: splits, sizes, heat maps, what was found when, and how cards drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eatss.report.plot_file import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    finished,
)
from eatss.report.render import figure as shown
from eatss.report.sweeps.style import CHOICE_COLOURS, CHOICE_MARKS, own_axes
from eatss.tune.evaluation.cards import Taken, references, relative_to_own_mean
from eatss.tune.evaluation.population import Floats
from eatss.tune.evaluation.standing import BestSoFar, ChoiceName
from eatss.tune.evaluation.studies import HeatMap, SizePoint, SplitBar
from eatss.tune.store.nouns import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
_STUDIED: tuple[ChoiceName, ...] = ("default", "paper", "ours", "fastest")


def split_bars(bars: Sequence[SplitBar], axes: Axes | None = None) -> Axes:
    """Draw speed-up and energy at each split and warp fraction, over the default's.

    [EATSS, Fig. 8]: speed-up above 1 and energy below 1 are better.
    """
    axes = axes or own_axes(width_in=max(6.0, 1.2 + 0.48 * len(bars)))
    x = np.arange(len(bars), dtype=float)
    axes.bar(x - 0.2, [one.speedup for one in bars], 0.38, color=BLUE, label="speed-up (high)")
    if any(one.energy is not None for one in bars):
        energies = [np.nan if one.energy is None else one.energy for one in bars]
        axes.bar(x + 0.2, energies, 0.38, color=VERMILION, hatch="//", label="energy (low)")
    axes.axhline(1.0, color=BLACK, linewidth=0.8)
    axes.set_xticks(x, [_split_name(one) for one in bars], fontsize=8)
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    axes.set_ylim(top=1.18 * axes.get_ylim()[1])
    return finished(
        axes,
        "Split and warp fraction: the fastest variant of each",
        "split of shared memory, warp fraction",
        "ratio to the default",
        lines="y",
    )


def size_figure(points: Sequence[SizePoint], axes: Axes | None = None) -> Axes:
    """Draw performance, and power on a second axis, over problem sizes; labels are PPW.

    [EATSS, Figs. 12 and 13]
    """
    axes = axes or own_axes(height_in=4.8)
    right = axes.twinx()
    powered = False
    for choice in _STUDIED:
        own = [one for one in points if one.choice == choice]
        if not own:
            continue
        scale = [one.scale for one in own]
        colour, mark = CHOICE_COLOURS[choice], CHOICE_MARKS[choice]
        axes.plot(
            scale, [one.performance for one in own], color=colour, marker=mark, markersize=5,
            label=f"{choice}: performance",
        )  # fmt: skip
        if choice in ("default", "ours"):
            powers = [(one.scale, one.power_w) for one in own if one.power_w is not None]
            if powers:
                powered = True
                right.plot(
                    *zip(*powers, strict=True), color=colour, marker=mark, markersize=4,
                    fillstyle="none", linestyle=":", label=f"{choice}: power",
                )  # fmt: skip
            _ppw_labels(axes, own, above=choice == "ours")
    axes.set_xscale("log")
    scales = sorted({one.scale for one in points})
    axes.set_xticks(scales, [f"{scale:.4g}" for scale in scales])
    axes.minorticks_off()
    axes.margins(x=0.09, y=0.14)
    axes.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    right.set_ylabel("mean power in W (dotted)")
    right.set_visible(powered)
    return finished(
        axes,
        f"Over problem sizes; numbers are {points[0].efficiency_unit if points else 'PPW'}",
        "problem size (geometric mean of those that differ)",
        f"performance in {points[0].performance_unit if points else 'GFLOP/s'}",
        legend=2,
        right=right,
    )


def heat_map_figure(found: HeatMap, axes: Axes | None = None) -> Axes:
    """Draw a quantity over two values, with numbers where there is room for them."""
    rows, columns = found.cells.shape
    axes = axes or own_axes(
        width_in=max(5.0, 2.0 + 0.55 * columns), height_in=max(3.0, 1.4 + 0.45 * rows)
    )
    colours = axes.imshow(found.cells, cmap="cividis", aspect="auto", origin="lower")
    axes.set_xticks(range(columns), [f"{value}" for value in found.column_values])
    axes.set_yticks(range(rows), [f"{value}" for value in found.row_values])
    axes.figure.colorbar(colours, ax=axes, label=f"{found.quantity} in {found.unit}")
    known = found.cells[np.isfinite(found.cells)]
    if known.size and rows * columns <= 120:
        middle = (known.min() + known.max()) / 2
        for (row, column), value in np.ndenumerate(found.cells):
            if np.isfinite(value):
                axes.text(
                    column, row, shown(float(value), 3), ha="center", va="center", fontsize=7,
                    color="white" if value < middle else "black",
                )  # fmt: skip
    over = "best" if found.statistic == "best" else "mean"
    title = f"{found.quantity.capitalize()}: {over} over all other values"
    axes.set(title=title, xlabel=found.columns, ylabel=found.rows)
    return axes


def best_over_time_figure(found: Sequence[BestSoFar], axes: Axes | None = None) -> Axes:
    """Draw how far the best time and energy so far were from the sweep's, over its seconds."""
    axes = axes or own_axes()
    at, unit = _durations([one.at_s for one in found])
    times = np.array([one.time_s for one in found])
    over = 100 * (times / times[-1] - 1)
    worst = float(over.max())
    axes.step(at, over, where="post", color=BLUE, linewidth=1.6, label="time")
    energies = np.array([np.nan if one.energy_j is None else one.energy_j for one in found])
    if np.isfinite(energies).any():
        over = 100 * (energies / np.nanmin(energies) - 1)
        worst = max(worst, float(np.nanmax(over)))
        axes.step(
            at, over, where="post", color=VERMILION, linestyle="--", linewidth=1.6, label="energy"
        )
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_yticks([0, 1, 3, 10, 30, 100, 300], ["0", "1", "3", "10", "30", "100", "300"])
    axes.set_ylim(-0.2, 1.3 * max(1.0, worst))
    labels = f"time of the sweep in {unit}", "best so far over the best of all, in %"
    return finished(axes, "The best found, as the sweep went on", *labels, legend=3)


def drift_figure(rows: Sequence[Row], cards: Sequence[str], axes: Axes | None = None) -> Axes:
    """Draw references over the time of the sweep, each over the mean of its variant and card."""
    axes = axes or own_axes()
    for number, card in enumerate(cards):
        own = references(rows, card)
        colour = _LINES[number % len(_LINES)]
        marks: tuple[tuple[Taken, str, str, str], ...] = (
            ("time_s", "time", "o", "full"), ("energy_j", "energy", "^", "none"),
        )  # fmt: skip
        for taken, name, mark, fill in marks:
            hours, ratios = relative_to_own_mean(own, taken)
            if hours.size:
                axes.plot(
                    hours * 60, 100 * (ratios - 1), mark, color=colour, markersize=4,
                    fillstyle=fill, label=f"{card[:12]}: {name}",
                )  # fmt: skip
    axes.axhline(0, color=BLACK, linewidth=0.8)
    labels = "time of the sweep in minutes", "reference over its card's mean, in %"
    return finished(axes, "Drift: one variant measured again and again", *labels, legend=2)


def _split_name(one: SplitBar) -> str:
    split = "-" if one.split is None else f"{one.split}"
    fraction = "" if one.warp_fraction is None else f"\n{one.warp_fraction}"
    return f"{split}{fraction}"


def _ppw_labels(axes: Axes, points: Sequence[SizePoint], *, above: bool) -> None:
    for one in points:
        if one.efficiency is not None:
            axes.annotate(
                shown(one.efficiency, 3), (one.scale, one.performance),
                xytext=(0, 8 if above else -13), textcoords="offset points", ha="center",
                fontsize=8,
                bbox={"boxstyle": "round,pad=0.1", "facecolor": "#ffffffcc", "linewidth": 0},
            )  # fmt: skip


def _durations(seconds: Sequence[float]) -> tuple[Floats, str]:
    longest = max(seconds, default=0.0)
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if longest > 3 * size:
            return np.array(seconds) / size, unit
    return np.array(seconds), "seconds"
