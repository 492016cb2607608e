"""What all plots share, and plots of comparisons and of power over time.

matplotlib is imported when a plot is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from itertools import cycle
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath, write_whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from eatss.measurement.foreign import ProgramEnergy
    from eatss.measurement.measurement import Comparison, ComparisonRow, Ratio

BLACK = "#000000"
ORANGE = "#e69f00"
SKY = "#56b4e9"
GREEN = "#009e73"
YELLOW = "#f0e442"
BLUE = "#0072b2"
VERMILION = "#d55e00"
PURPLE = "#cc79a7"
"""Okabe and Ito's colours, which people with colour blindness can tell apart."""

GREY = "#8c8c8c"

LINES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Colours of things that are told apart, in order."""

_VARIANTS = (GREY, *LINES, YELLOW)
"""Colours of a baseline and of variants."""

DPI = 150
SUFFIXES = (".png", ".svg", ".pdf")


def check_plot_file(path: Path) -> None:
    """Refuse a plot that could not be written.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file is of no
            known kind, or its folder is not there.
    """
    if path.suffix.lower() not in SUFFIXES or not path.parent.is_dir():
        raise input_error(
            "EATSS-E053",
            f"cannot write a plot to '{path}'",
            hint="name a .png, .svg or .pdf in a folder that exists",
        )
    check_matplotlib()


def check_matplotlib() -> None:
    """Refuse to draw without matplotlib.

    Raises:
        InputError: ``EATSS-E052``.
    """
    if find_spec("matplotlib") is None:
        raise input_error(
            "EATSS-E052",
            "plots need matplotlib, which is not installed",
            hint="install it with: pip install 'eatss[plot]'",
        )


def new_figure(width_in: float = 6.4, height_in: float = 4.8) -> Figure:
    """Return an empty figure that needs no window; sizes in inches.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    check_matplotlib()
    from matplotlib import figure as drawing  # noqa: PLC0415 - optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415

    figure = drawing.Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_axes(width_in: float = 6.4, height_in: float = 4.8) -> Axes:
    """Return the axes of a new figure; sizes in inches.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    return new_figure(width_in, height_in).subplots()


def panels(figure: Figure, rows: int, columns: int) -> list[Axes]:
    """Return axes side by side, row by row, each with room for a legend of its own."""
    parts = figure.subfigures(rows, columns, squeeze=False)
    return [part.subplots() for part in parts.flat]


def finished(
    axes: Axes,
    title: str,
    x: str = "",
    y: str = "",
    *,
    lines: Literal["both", "x", "y"] = "both",
    legend: int = 0,
) -> Axes:
    """Return axes with a title, labels, thin lines below the data, and a legend below the axes.

    Args:
        axes: with all that is drawn.
        title: of them.
        x: label of the horizontal axis.
        y: label of the vertical axis, "" where it has one.
        lines: across which axis lines go.
        legend: how many columns the legend of all axes in this place has; 0 for none.
    """
    axes.set(title=title, xlabel=x, ylabel=y or axes.get_ylabel())
    axes.grid(axis=lines, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    if legend:
        axes.figure.legend(
            loc="outside lower center", ncols=legend, frameon=False, fontsize="small"
        )
    return axes


def plain_numbers(axis: Axis, subs: Sequence[float] = ()) -> None:
    """Write numbers on a logarithmic axis as people do, at so many times each power of ten."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415

    if subs:
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def save_figure(figure: Figure, path: StrPath) -> None:
    """Write a figure; the same figure gives the same file.

    Args:
        figure: with something drawn in it.
        path: a PNG, SVG or PDF to write.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file cannot be
            written.
    """
    file = Path(fspath(path))
    check_plot_file(file)
    import matplotlib as mpl  # noqa: PLC0415 - optional

    kind = file.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    drawn = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "eatss"}):
        figure.savefig(drawn, dpi=DPI, format=kind, metadata=undated)
    try:
        write_whole(file, drawn.getvalue())
    except OSError as error:
        raise input_error(
            "EATSS-E053",
            f"cannot write '{file}': {error.strerror or error}",
            hint="name a file in a folder that can be written",
        ) from None


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


def plot_program(found: ProgramEnergy, path: StrPath) -> None:
    """Write a plot of the power of cards and CPUs while a program ran.

    Args:
        found: with its traces.
        path: a PNG, SVG or PDF to write.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file cannot be
            written.
    """
    from eatss.report.measurement import sources_of  # noqa: PLC0415 - Rich

    check_plot_file(Path(fspath(path)))
    axes, colours, top_w = new_axes(8, 4), cycle(LINES), 0.0
    for name, one in sources_of(found).items():
        times = [sample.time_s for sample in one.trace]
        watts = [sample.power_w for sample in one.trace]
        axes.step(times, watts, where="pre", color=next(colours), label=name)
        top_w = max([top_w, *watts])
    axes.set_ylim(0.0, 1.1 * (top_w or 1.0))
    for moment_s in (0.0, found.time_s):
        axes.axvline(moment_s, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlabel="time in s", ylabel="power in W")
    if found.cards:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    save_figure(axes.get_figure(root=True), path)  # type: ignore[arg-type]
