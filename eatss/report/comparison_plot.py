"""Comparisons of many programs in one figure: performance, energy and PPW against the baseline.

The columns are those of Fig. 7 of EATSS: the default (here: the baseline) beside what is selected,
each normalised to the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.frozen import frozen
from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio
from eatss.report.plot_file import GREY, LINES, YELLOW, check_plot_file, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (*LINES, YELLOW)
_LOG_FROM = 4.0
"""Ratios beyond this factor, or below its inverse, get a logarithmic axis."""

_GROUP_WIDTH = 0.8
_MEAN = "geo. mean"
_FAILED = "failed or not measured"


@frozen
class _Panel:
    title: str
    ratio: Callable[[ComparisonRow], Ratio | None]


_PANELS = (
    _Panel(title="performance\n(higher is better)", ratio=lambda row: row.speedup),
    _Panel(title="energy\n(lower is better)", ratio=lambda row: row.energy_ratio),
    _Panel(title="PPW, GFLOP/J\n(higher is better)", ratio=lambda row: row.ppw_ratio),
)


def plot_comparisons(comparisons: Sequence[Comparison], path: str | PathLike[str]) -> None:
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
    variants = _variants(comparisons)
    groups = [comparison.program for comparison in comparisons]
    if len(groups) > 1:
        groups.append(_MEAN)
    width = max(6.4, 1.6 + len(groups) * (0.22 * (len(variants) + 1) + 0.25))
    figure = new_figure(width, 7.2)
    axes = figure.subplots(len(_PANELS), 1, sharex=True)
    for panel, axis in zip(_PANELS, axes, strict=True):
        _draw(axis, panel, comparisons, variants)
    last = axes[-1]
    turned = len(groups) > 6
    last.set_xticks(range(len(groups)), groups, rotation=45 if turned else 0)
    for label in last.get_xticklabels():
        label.set_horizontalalignment("right" if turned else "center")
        label.set_rotation_mode("anchor")
    last.set_xlim(-0.6, len(groups) - 0.4)
    _legend(figure, axes, [_baselines(comparisons), *variants])
    figure.supylabel(f"ratio to {_baselines(comparisons)}")
    save_figure(figure, file)


def _legend(figure: Figure, axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the bars, whether or not any is there, and the mark of what failed, if it is."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - optional

    entries: dict[str, Artist] = {
        name: Patch(color=_colour(number)) for number, name in enumerate(names)
    }
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= {
            label: handle for handle, label in zip(handles, labels, strict=True) if label == _FAILED
        }
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside upper center",
        ncols=4,
        frameon=False,
    )


def _colour(number: int) -> str:
    """Return the colour of a variant; number 0 is the baseline."""
    return _COLOURS[(number - 1) % len(_COLOURS)] if number else GREY


def _variants(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the variants that are a baseline nowhere, in order."""
    found = [
        row.measurement.variant
        for comparison in comparisons
        for row in comparison.rows
        if row.measurement.variant != comparison.baseline
    ]
    return list(dict.fromkeys(found))


def _baselines(comparisons: Sequence[Comparison]) -> str:
    found = dict.fromkeys(comparison.baseline for comparison in comparisons)
    return next(iter(found)) if len(found) == 1 else "the baseline"


def _draw(
    axis: Axes, panel: _Panel, comparisons: Sequence[Comparison], variants: Sequence[str]
) -> None:
    bar = _GROUP_WIDTH / (len(variants) + 1)
    left = -_GROUP_WIDTH / 2 + bar / 2
    count = len(comparisons) + (len(comparisons) > 1)
    axis.bar(
        [k + left for k in range(count)],
        [1.0] * count,
        bar,
        color=_colour(0),
        label=_baselines(comparisons),
    )
    shown: list[float] = [1.0]
    failed: list[float] = []
    for number, variant in enumerate(variants, start=1):
        shift = left + number * bar
        places, ratios = [], []
        for k, comparison in enumerate(comparisons):
            ratio = _ratio(comparison, variant, panel)
            if ratio is None:
                failed.append(k + shift)
            else:
                places.append(k + shift)
                ratios.append(ratio)
        shown += [end for ratio in ratios for end in (ratio.value, ratio.low, ratio.high) if end]
        if len(comparisons) > 1 and ratios:
            places.append(len(comparisons) + shift)
            ratios.append(_geometric_mean(ratios))
        axis.bar(
            places,
            [ratio.value for ratio in ratios],
            bar,
            yerr=[[_below(r) for r in ratios], [_above(r) for r in ratios]] if ratios else None,
            capsize=2,
            error_kw={"elinewidth": 0.8},
            color=_colour(number),
            label=variant,
        )
    _finish(axis, panel.title, shown, failed)


def _finish(axis: Axes, title: str, shown: Sequence[float], failed: Sequence[float]) -> None:
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_ylabel(title)
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)
    axis.set_axisbelow(True)
    if max(shown) > _LOG_FROM or min(shown) < 1 / _LOG_FROM:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

        axis.set_yscale("log")
        axis.set_ylim(0.7 * min(shown), 1.3 * max(shown))
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    if failed:
        axis.plot(
            failed,
            [0.03] * len(failed),
            "x",
            color="#d40000",
            markersize=5,
            transform=axis.get_xaxis_transform(),
            label=_FAILED,
            clip_on=False,
        )


def _ratio(comparison: Comparison, variant: str, panel: _Panel) -> Ratio | None:
    for row in comparison.rows:
        if row.measurement.variant == variant and variant != comparison.baseline:
            ratio = panel.ratio(row)
            return ratio if ratio is not None and ratio.value > 0 else None
    return None


def _geometric_mean(ratios: Sequence[Ratio]) -> Ratio:
    mean = math.exp(math.fsum(math.log(ratio.value) for ratio in ratios) / len(ratios))
    return Ratio(value=mean, low=None, high=None)


def _below(ratio: Ratio) -> float:
    return math.nan if ratio.low is None else max(0.0, ratio.value - ratio.low)


def _above(ratio: Ratio) -> float:
    return math.nan if ratio.high is None else max(0.0, ratio.high - ratio.value)
