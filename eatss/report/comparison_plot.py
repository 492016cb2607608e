"""Comparisons of many programs in one figure: performance, energy and PPW against the baseline.

The columns are those of Fig. 7 of EATSS: the default (here: the baseline) beside what is selected,
each normalised to the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio
from eatss.report.plot_file import (
    GREY,
    LINES,
    YELLOW,
    check_plot_file,
    finished,
    new_figure,
    plain_numbers,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_COLOURS = (*LINES, YELLOW)
_LOG_FROM = 4.0
"""Ratios beyond this factor, or below its inverse, get a logarithmic axis."""

_GROUP_WIDTH = 0.8
_FAILED = "failed or not measured"

_Of: TypeAlias = Callable[[ComparisonRow], Ratio | None]

_PANELS: tuple[tuple[str, _Of], ...] = (
    ("performance\n(higher is better)", lambda row: row.speedup),
    ("energy\n(lower is better)", lambda row: row.energy_ratio),
    ("PPW, GFLOP/J\n(higher is better)", lambda row: row.ppw_ratio),
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
    baselines = dict.fromkeys(comparison.baseline for comparison in comparisons)
    found = (
        row.measurement.variant
        for comparison in comparisons
        for row in comparison.rows
        if row.measurement.variant != comparison.baseline
    )
    variants = list(dict.fromkeys(found))
    baseline = next(iter(baselines)) if len(baselines) == 1 else "the baseline"
    groups = [comparison.program for comparison in comparisons]
    if len(groups) > 1:
        groups.append("geo. mean")
    width = max(6.4, 1.6 + len(groups) * (0.22 * (len(variants) + 1) + 0.25))
    figure = new_figure(width, 7.2)
    axes = figure.subplots(len(_PANELS), 1, sharex=True)
    names = [baseline, *variants]
    for (title, of), axis in zip(_PANELS, axes, strict=True):
        _draw(axis, of, comparisons, names)
        finished(axis, "", "", title, lines="y")
    last = axes[-1]
    turned = len(groups) > 6
    last.set_xticks(range(len(groups)), groups, rotation=45 if turned else 0)
    for label in last.get_xticklabels():
        label.set_horizontalalignment("right" if turned else "center")
        label.set_rotation_mode("anchor")
    last.set_xlim(-0.6, len(groups) - 0.4)
    entries = _entries(axes, names)
    figure.legend(
        list(entries.values()), list(entries), loc="outside upper center", ncols=4, frameon=False
    )
    figure.supylabel(f"ratio to {baseline}")
    save_figure(figure, file)


def _entries(axes: Sequence[Axes], names: Sequence[str]) -> dict[str, Artist]:
    """Name the bars, whether or not any is there, and the mark of what failed, if it is."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - optional

    entries: dict[str, Artist] = {
        name: Patch(color=_colour(number)) for number, name in enumerate(names)
    }
    for axis in axes:
        pairs = zip(*axis.get_legend_handles_labels(), strict=True)
        entries |= {label: handle for handle, label in pairs if label == _FAILED}
    return entries


def _colour(number: int) -> str:
    """Return the colour of a variant; number 0 is the baseline."""
    return _COLOURS[(number - 1) % len(_COLOURS)] if number else GREY


def _draw(axis: Axes, of: _Of, comparisons: Sequence[Comparison], names: Sequence[str]) -> None:
    """Draw the bars of one ratio: of the baseline, then of each variant, with what failed."""
    bar = _GROUP_WIDTH / len(names)
    left = -_GROUP_WIDTH / 2 + bar / 2
    count = len(comparisons)
    places = [k + left for k in range(count + (count > 1))]
    axis.bar(places, [1.0] * len(places), bar, color=_colour(0), label=names[0])
    shown: list[float] = [1.0]
    failed: list[float] = []
    for number, variant in enumerate(names[1:], start=1):
        shift, ratios = left + number * bar, dict[float, Ratio]()
        for k, comparison in enumerate(comparisons):
            ratio = _ratio(comparison, variant, of)
            if ratio is None:
                failed.append(k + shift)
            else:
                ratios[k + shift] = ratio
                shown += [end for end in (ratio.value, ratio.low, ratio.high) if end]
        if count > 1 and ratios:
            logs = math.fsum(math.log(ratio.value) for ratio in ratios.values())
            mean = Ratio(value=math.exp(logs / len(ratios)), low=None, high=None)
            ratios[count + shift] = mean
        errors = [
            [_apart(one.value, one.low) for one in ratios.values()],
            [_apart(one.high, one.value) for one in ratios.values()],
        ]
        axis.bar(
            list(ratios),
            [ratio.value for ratio in ratios.values()],
            bar,
            yerr=errors if ratios else None,
            capsize=2,
            error_kw={"elinewidth": 0.8},
            color=_colour(number),
            label=variant,
        )
    axis.axhline(1.0, color="black", linewidth=0.8)
    if max(shown) > _LOG_FROM or min(shown) < 1 / _LOG_FROM:
        axis.set_yscale("log")
        axis.set_ylim(0.7 * min(shown), 1.3 * max(shown))
        plain_numbers(axis, "y", (1.0, 2.0, 5.0))
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


def _ratio(comparison: Comparison, variant: str, of: _Of) -> Ratio | None:
    for row in comparison.rows:
        if row.measurement.variant == variant != comparison.baseline:
            ratio = of(row)
            return ratio if ratio is not None and ratio.value > 0 else None
    return None


def _apart(high: float | None, low: float | None) -> float:
    return math.nan if high is None or low is None else max(0.0, high - low)
