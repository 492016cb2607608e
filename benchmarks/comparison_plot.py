"""Comparisons drawn as Fig. 7 of EATSS has them: speed, energy and PPW over a baseline's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eatss.base.files import StrPath
from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio
from eatss.report.plots import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    check_plot_file,
    finished,
    new_figure,
    plain_numbers,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_VARIANTS = (GREY, BLUE, ORANGE, GREEN, PURPLE, "#56b4e9", VERMILION, "#f0e442")
"""Colours of a baseline and of variants, which people with colour blindness can tell apart."""

_RATIOS: dict[str, Callable[[ComparisonRow], Ratio | None]] = {
    "performance\n(higher is better)": lambda row: row.speedup,
    "energy\n(lower is better)": lambda row: row.energy_ratio,
    "PPW, GFLOP/J\n(higher is better)": lambda row: row.ppw_ratio,
}
"""The panels of a plot of comparisons [EATSS, Fig. 7]: each a ratio to the baseline."""

_GROUP_WIDTH = 0.8

_LOG_FROM = 4.0
"""Ratios beyond this factor, or below its inverse, get a logarithmic axis."""


def plot_comparisons(comparisons: Sequence[Comparison], path: StrPath) -> None:
    """Draw comparisons, one group of bars a program, with intervals; ``x`` marks what failed.

    With two programs or more, geometric means over the programs that have a ratio stand last.

    Args:
        comparisons: at least one.
        path: a PNG, SVG or PDF to write.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file cannot be
            written.
    """
    file = Path(fspath(path))
    check_plot_file(file)
    rows = [
        {
            row.measurement.variant: row
            for row in one.rows
            if row.measurement.variant != one.baseline
        }
        for one in comparisons
    ]
    baselines = {one.baseline for one in comparisons}
    baseline = baselines.pop() if len(baselines) == 1 else "the baseline"
    names = [baseline, *dict.fromkeys(variant for one in rows for variant in one)]
    groups = [one.program for one in comparisons] + ["geo. mean"] * (len(comparisons) > 1)
    figure = new_figure(max(6.4, 1.6 + len(groups) * (0.22 * len(names) + 0.25)), 7.2)
    drawn = figure.subplots(len(_RATIOS), 1, sharex=True)
    entries: dict[str, Artist] = {}
    for (title, ratio_of), axes in zip(_RATIOS.items(), drawn, strict=True):
        ratios = [{name: ratio_of(row) for name, row in one.items()} for one in rows]
        _draw_ratios(axes, ratios, names)
        finished(axes, "", "", title, lines="y")
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    slanted = {"rotation": 45, "rotation_mode": "anchor", "ha": "right"} if len(groups) > 6 else {}
    drawn[-1].set_xticks(range(len(groups)), groups, **slanted)
    drawn[-1].set_xlim(-0.6, len(groups) - 0.4)
    figure.legend(
        list(entries.values()), list(entries), loc="outside upper center", ncols=4, frameon=False
    )
    figure.supylabel(f"ratio to {baseline}")
    save_figure(figure, file)


def _draw_ratios(
    axes: Axes, programs: Sequence[Mapping[str, Ratio | None]], names: Sequence[str]
) -> None:
    """Draw the bars of the baseline, then of each variant; means come last, after two or more."""
    bar = _GROUP_WIDTH / len(names)
    groups = np.arange(len(programs) + (len(programs) > 1))
    shown = np.ones(1)
    for number, name in enumerate(names):
        at = groups - _GROUP_WIDTH / 2 + (number + 0.5) * bar
        known = np.ones((len(groups), 3))
        if number:
            found = [_ends(one.get(name)) for one in programs]
            logs = [math.log(value) for value, _, _ in found if math.isfinite(value)]
            mean = math.exp(math.fsum(logs) / len(logs)) if logs else math.nan
            known = np.array([*found, (mean, math.nan, math.nan)][: len(groups)])
        values, lows, highs = known.T
        axes.bar(
            at, values, bar, yerr=np.fmax([values - lows, highs - values], 0) if number else None,
            capsize=2, error_kw={"elinewidth": 0.8}, color=_VARIANTS[number % len(_VARIANTS)],
            label=name,
        )  # fmt: skip
        shown = np.append(shown, known[np.isfinite(known)])
        failed = at[np.isnan(values)]
        if failed.size:
            axes.plot(
                failed, np.full(failed.size, 0.03), "x", color="#d40000", markersize=5,
                transform=axes.get_xaxis_transform(), label="failed or not measured", clip_on=False,
            )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.8)
    if max(shown) > _LOG_FROM or min(shown) < 1 / _LOG_FROM:
        axes.set(yscale="log", ylim=(0.7 * min(shown), 1.3 * max(shown)))
        plain_numbers(axes.yaxis, (1.0, 2.0, 5.0))


def _ends(ratio: Ratio | None) -> tuple[float, float, float]:
    """Return a ratio and the ends of its interval, NaN for what is not known."""
    if ratio is None or ratio.value <= 0:
        return (math.nan,) * 3
    return ratio.value, ratio.low or math.nan, ratio.high or math.nan
