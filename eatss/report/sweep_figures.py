"""Figures of a sweep, each with what it shows in words.

``P`` is the default (as PPCG's in the paper), ``E`` the paper's choice, ``U`` ours [EATSS, Fig. 7].
Every function draws a figure and returns its axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eatss.report import plots
from eatss.report.plots import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    finished,
    new_figure,
    plain_numbers,
)
from eatss.report.render import counter_words
from eatss.tune.evaluation import (
    TARGETS,
    Correlation,
    Evaluated,
    Target,
    correlation,
    most_telling,
    of_target,
)
from eatss.tune.population import (
    Floats,
    Population,
    convex_hull,
    fastest,
    of_role,
    pareto_front,
    thriftiest,
)
from eatss.tune.rows import Role
from eatss.tune.standing import SplitBar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TELLING = 3
"""Over so many metrics performance, efficiency and power are drawn."""

MOST_BARS = 40
"""Of more metrics, those with the strongest coefficients are drawn."""

_NARROW = 8
"""So many bars can be read in half the width of a page."""

_MANY = 400
"""Clouds of more points are drawn as pixels also in SVG and PDF."""

new_axes = partial(plots.new_axes, width_in=6.0, height_in=4.2)
"""Return the axes of a panel, small enough that letters can still be read on a telephone."""

LETTERS: Mapping[Role, tuple[str, str, tuple[int, int]]] = {
    "default": ("P", VERMILION, (-18, 16)),
    "paper": ("E", "#8c3a6e", (0, 24)),
    "ours": ("U", "#00664a", (18, 16)),
}
"""Of each role its letter, the colour, on which white is to be read, and where it stands beside
its point: no letter covers another, and each has its own side."""


class SweepFigure(NamedTuple):
    """One figure: ``name`` for files, what it shows, and the axes it is drawn on."""

    name: str
    caption: str
    axes: Callable[[], Axes]
    wide: bool = False

    def draw(self) -> Figure:
        """Return the figure, drawn."""
        figure = self.axes().get_figure(root=True)
        assert figure is not None
        return figure


def sweep_figures(found: Evaluated) -> tuple[SweepFigure, ...]:
    """Return the figures of which a sweep has data."""
    return tuple(_figures(found)) if len(found.found) > 1 else ()


def _figures(one: Evaluated) -> Iterator[SweepFigure]:
    found, evaluation = one.found, one.evaluation
    thrifty, related = found.with_energy(), evaluation.correlations
    yield SweepFigure(
        "sorted-by-performance",
        "All variants sorted by performance. Where energy does not fall as performance rises, "
        "speed alone is a poor guide.",
        partial(sorted_distribution, found),
    )
    if len(thrifty) > 1:
        yield SweepFigure(
            "energy-over-performance",
            "Energy over performance: the best variants are low and to the right.",
            partial(performance_energy_scatter, thrifty),
        )
    yield SweepFigure(
        "spectrum",
        "Where the default, the paper's choice and ours stand among all variants.",
        partial(spectrum, found),
    )
    if evaluation.trade_off is not None and len(thrifty) > 2:
        yield SweepFigure(
            "hull",
            "Variants right of the vertical line are faster than the one of least energy, those "
            "above the horizontal line are thriftier than the fastest.",
            partial(hull_figure, thrifty),
        )
    for target in TARGETS[:3]:
        if of_target(related, target):
            yield SweepFigure(
                f"correlation-with-{target}",
                "Pearson's coefficients with 95 % intervals; dots are Spearman's.",
                partial(correlation_bars, related, target=target),
            )
    for name in most_telling(related, TELLING):
        yield SweepFigure(
            f"over-{_file_name(name)}",
            f"Performance, efficiency and power over {counter_words(name)}.",
            partial(over_metric, found, name),
            wide=True,
        )
    if bars := evaluation.split_study:
        yield SweepFigure(
            "splits",
            "The fastest variant at each split of shared memory and warp fraction, over the "
            "default.",
            partial(split_bars, bars),
            wide=len(bars) > _NARROW,
        )


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def sorted_distribution(found: Population) -> Axes:
    """Draw performance, and energy on a second axis, of all variants sorted by performance.

    Lines lie at what the default reaches [EATSS, Fig. 2].
    """
    axes = new_axes()
    default = of_role(found.rows, "default")
    order = np.argsort(found.performance, kind="stable")
    sides = [(axes, "performance", found.performance, BLUE)]
    if found.has_energy:
        sides.append((axes.twinx(), "energy", found.energy_j, VERMILION))
    for side, what, values, colour in sides:
        cloud(side, np.arange(1.0, len(found) + 1), values[order], label=what, colour=colour)
        if default is not None and np.isfinite(level := values[found.rows.index(default)]):
            side.axhline(level, color=colour, linestyle="--", label=f"default's {what}")
        side.set_ylim(bottom=0)
    if found.has_energy:
        sides[1][0].set_ylabel("energy of a run in J (right)")
        # the slowest few would squeeze all others
        sides[1][0].set_ylim(top=float(np.nanquantile(found.energy_j, 0.995)) * 1.15)
    title, x_label = "All variants, sorted by performance", "variants, sorted by performance"
    return finished(axes, title, x_label, _speed(found), legend=2)


def _speed(found: Population) -> str:
    return f"performance in {found.performance_unit}"


def performance_energy_scatter(found: Population) -> Axes:
    """Draw energy over performance with the choices [EATSS, Figs. 3 and 11]: low right is good."""
    axes, x, y = new_axes(), found.performance, found.energy_j
    cloud(axes, x, y)
    title = _with_choices(axes, found, x, y, "Energy over performance: low right is good")
    axes.set_xlim(left=0)
    if np.nanmax(y) > 5 * np.nanmin(y):
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, (1.0, 3.0))
    return finished(axes, title, _speed(found), "energy of a run in J")


def spectrum(found: Population) -> Axes:
    """Draw all variants on lines from worst to best, as shares of the best [EATSS, Fig. 7].

    With equal work, PPW and energy order alike: one line shows both.
    """
    axes = new_axes(height_in=2.6)
    lines = {"PPW\n(1/energy)": found.efficiency} if found.has_energy else {}
    lines["performance"] = found.performance
    title = ""
    for height, values in enumerate(lines.values()):
        share = values / np.nanmax(values)
        y = np.full(len(found), float(height))
        cloud(axes, share, y, mark="|")
        axes.plot([float(np.nanmedian(share))], [height - 0.3], "^", color=BLACK, label="median")
        title = _with_choices(axes, found, share, y, "Where the choices stand; ▲ is the median")
    axes.set_yticks(range(len(lines)), list(lines))
    axes.set_ylim(-0.55, len(lines) - 0.45)
    axes.set_xlim(0, 1.1)
    return finished(axes, title, "share of the best variant's", lines="x")


def hull_figure(found: Population) -> Axes:
    """Draw efficiency over performance with hull, front, and the lines of the two best.

    [BEAST, Fig. 5]
    """
    axes, x, y = new_axes(), found.performance, found.efficiency
    cloud(axes, x, y)
    hull, front = list(convex_hull(x, y)), list(pareto_front(x, y))
    closed = [*hull, hull[0]]
    axes.plot(x[closed], y[closed], color=GREY, label="hull")
    axes.plot(x[front], y[front], "o-", color=BLACK, label=f"Pareto front ({len(front)})")
    if (low := thriftiest(found)) is not None:
        top = found.with_energy()
        axes.axvline(x[low], color=ORANGE, linestyle="--", label="speed of the thriftiest")
        level, label = top.efficiency[fastest(top)], "efficiency of the fastest"
        axes.axhline(level, color=VERMILION, linestyle=":", label=label)
    title = _with_choices(axes, found, x, y, "Efficiency over performance")
    return finished(axes, title, _speed(found), f"efficiency in {found.efficiency_unit}", legend=3)


def correlation_bars(found: Sequence[Correlation], *, target: Target = "performance") -> Axes:
    """Draw Pearson's coefficients with a target and their 95 % intervals, from -1 to +1.

    A dot is Spearman's [BEAST, Figs. 6 to 8].
    """
    every = of_target(tuple(found), target)
    strongest = sorted(every, key=lambda one: -abs(one.pearson))[:MOST_BARS]
    shown = [one for one in every if one in strongest]
    axes = new_axes(height_in=1.5 + 0.22 * len(shown))
    y, pearson = np.arange(len(shown)), np.array([one.pearson for one in shown])
    ends = np.abs([[one.low for one in shown], [one.high for one in shown]] - pearson)
    colours = [VERMILION if one < 0 else BLUE for one in pearson]
    axes.barh(y, pearson, 0.7, color=colours, xerr=ends, capsize=1.5)
    axes.plot([one.spearman for one in shown], y, "o", color=BLACK, markersize=3)
    axes.set_yticks(y, [counter_words(one.metric) for one in shown], fontsize=8)
    axes.set_xlim(-1.02, 1.02)
    name = "performance × efficiency" if target == "product" else target
    most = max((one.samples for one in shown), default=0)
    x_label = f"correlation coefficient, up to {most} variants"
    return finished(axes, f"Correlation with {name}", x_label, lines="x")


def over_metric(found: Population, metric: str) -> Axes:
    """Draw performance, efficiency and power over a metric [BEAST, Fig. 9] [EATSS, Fig. 9].

    Each panel that has data has the line of least squares and Pearson's coefficient.
    """
    drawn = {
        _speed(found): found.performance,
        f"efficiency in {found.efficiency_unit}": found.efficiency,
        "mean power in W": found.power_w,
    }
    x, words = found.column(metric), counter_words(metric)
    panels = new_figure(9.6, 3.5).subplots(1, len(drawn))
    for axes, (label, y) in zip(panels, drawn.items(), strict=True):
        cloud(axes, x, y)
        axes.locator_params(axis="x", nbins=5)
        title = ""
        if (one := correlation(metric, x, "power", y)) is not None:
            both = np.isfinite(x) & np.isfinite(y)
            ends = np.array([x[both].min(), x[both].max()])
            line = np.polynomial.Polynomial.fit(x[both], y[both], 1)
            axes.plot(ends, line(ends), color=BLACK, linewidth=1)
            title = f"r = {one.pearson:.2f} [{one.low:.2f}, {one.high:.2f}]"
        finished(axes, title, words, label)
    return panels[0]  # type: ignore[no-any-return]


def split_bars(bars: Sequence[SplitBar]) -> Axes:
    """Draw speed-up and energy at each split and warp fraction, over the default's.

    [EATSS, Fig. 8]: speed-up above 1 and energy below 1 are better.
    """
    axes = new_axes(width_in=max(6.0, 1.2 + 0.48 * len(bars)))
    x = np.arange(len(bars), dtype=float)
    axes.bar(x - 0.2, [one.speedup for one in bars], 0.38, color=BLUE, label="speed-up (high)")
    energies = np.array([one.energy for one in bars], dtype=float)
    if not np.isnan(energies).all():
        axes.bar(x + 0.2, energies, 0.38, color=VERMILION, hatch="//", label="energy (low)")
    axes.axhline(1.0, color=BLACK, linewidth=0.8)
    axes.set_xticks(x, [f"{one.split}\n{one.warp_fraction}" for one in bars], fontsize=8)
    title = "Split and warp fraction: the fastest variant of each"
    labels = "split of shared memory, warp fraction", "ratio to the default"
    return finished(axes, title, *labels, lines="y", legend=2)


def cloud(
    axes: Axes,
    x: Floats,
    y: Floats,
    *,
    label: str = "variants",
    colour: str = BLUE,
    mark: str = "o",
) -> None:
    """Draw variants as points, many of them smaller and as pixels."""
    size = 16 if x.size <= 150 else 6
    axes.scatter(
        x, y, s=110 if mark == "|" else size, color=colour, marker=mark, alpha=0.5,
        label=label, rasterized=x.size > _MANY,
    )  # fmt: skip


def _with_choices(axes: Axes, found: Population, x: Floats, y: Floats, title: str) -> str:
    """Mark the choices with letters; return a title, and below it what they mean."""
    meant = []
    axes.margins(0.1, 0.15)
    for role, (letter, colour, beside) in LETTERS.items():
        row = of_role(found.rows, role)
        if row is None:
            continue
        place = x[found.rows.index(row)], y[found.rows.index(row)]
        if np.isfinite(place).all():
            meant.append(f"{letter} {role}")
            axes.annotate(
                letter, place, xytext=beside, textcoords="offset points", color="white",
                weight="bold", fontsize=9, ha="center", va="center", zorder=6,
                bbox={"boxstyle": "circle,pad=0.22", "facecolor": colour, "edgecolor": "white"},
                arrowprops={"arrowstyle": "-"}, annotation_clip=False,
            )  # fmt: skip
    return "\n".join(filter(None, (title, ", ".join(meant))))
