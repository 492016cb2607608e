"""Figures of a sweep, each with what it shows in words.

``P`` is the default (as PPCG's in the paper), ``E`` the paper's choice, ``U`` ours [EATSS, Fig. 7].
Every function draws a figure and returns its axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eatss.base.frozen import frozen
from eatss.report import plots
from eatss.report.measurement import counter_words
from eatss.report.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    finished,
    new_figure,
    plain_numbers,
)
from eatss.report.render import figure as digits
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
    varies,
)
from eatss.tune.rows import Role
from eatss.tune.standing import ChoiceName, SizePoint, SplitBar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLITS = 3
"""So many metrics are drawn split at their mean."""

MOST_BARS = 40
"""Of more metrics, those with the strongest coefficients are drawn."""

_NARROW = 8
"""So many bars can be read in half the width of a page."""

_MANY = 400
"""Clouds of more points are drawn as pixels also in SVG and PDF."""

_APART_PX = 20.0

new_axes = partial(plots.new_axes, width_in=6.0, height_in=4.2)
"""Return the axes of a panel, small enough that letters can still be read on a telephone."""

LETTERS: Mapping[Role, tuple[str, str]] = {
    "default": ("P", VERMILION),
    "paper": ("E", "#8c3a6e"),
    "ours": ("U", "#00664a"),
}
"""Letter and colour of each role: white letters are to be read on it."""

_STUDIED: Mapping[ChoiceName, tuple[str, str]] = {
    "default": (VERMILION, "s"),
    "paper": (PURPLE, "D"),
    "ours": (GREEN, "o"),
    "fastest": (BLUE, "^"),
}
"""Colour and mark of each choice over problem sizes."""

_Place = tuple[Role, float, float]


@frozen
class SweepFigure:
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
    if len(found.found) < 2:
        return ()
    return (*_distributions(found), *_metrics(found), *_studies(found))


def _distributions(one: Evaluated) -> Iterator[SweepFigure]:
    found, evaluation = one.found, one.evaluation
    thrifty, trade = found.with_energy(), evaluation.trade_off
    yield SweepFigure(
        name="sorted-by-performance",
        caption="All variants sorted by performance. Where energy does not fall as performance "
        "rises, speed alone is a poor guide.",
        axes=partial(sorted_distribution, found),
    )
    if len(thrifty) > 1:
        yield SweepFigure(
            name="energy-over-performance",
            caption="Energy over performance: the best variants are low and to the right.",
            axes=partial(performance_energy_scatter, thrifty),
        )
    yield SweepFigure(
        name="spectrum",
        caption="Where the default, the paper's choice and ours stand among all variants.",
        axes=partial(spectrum, found),
    )
    if trade is not None and len(thrifty) > 2:
        yield SweepFigure(
            name="hull",
            caption="Variants right of the vertical line are faster than the one of least energy, "
            "those above the horizontal line are thriftier than the fastest.",
            axes=partial(hull_figure, thrifty),
        )


def _metrics(one: Evaluated) -> Iterator[SweepFigure]:
    found, evaluation = one.found, one.evaluation
    related = evaluation.correlations
    for target in TARGETS[:3]:
        if of_target(related, target):
            yield SweepFigure(
                name=f"correlation-with-{target}",
                caption="Pearson's coefficients with 95 % intervals; dots are Spearman's. Metrics "
                "that correlate otherwise with efficiency than with performance are bold.",
                axes=partial(correlation_bars, related, target=target, movers=evaluation.movers),
            )
    for name in most_telling(related, SPLITS) if found.has_energy else ():
        side = f"{counter_words(name)} above its mean"
        yield SweepFigure(
            name=f"split-at-mean-of-{_file_name(name)}",
            caption=f"Variants with {side} beside the others.",
            axes=lambda name=name: metric_split(found, name)[0],  # type: ignore[misc]
            wide=True,
        )
    explained = _power_metric(one)
    if explained is not None:
        yield SweepFigure(
            name=f"power-over-{_file_name(explained)}",
            caption=f"Mean power over {counter_words(explained)}, with the line of least squares.",
            axes=partial(power_over_metric, found, explained),
        )


def _studies(one: Evaluated) -> Iterator[SweepFigure]:
    evaluation = one.evaluation
    if evaluation.split_study:
        yield SweepFigure(
            name="splits",
            caption="The fastest variant at each split of shared memory and warp fraction, over "
            "the default.",
            axes=partial(split_bars, evaluation.split_study),
            wide=len(evaluation.split_study) > _NARROW,
        )
    if points := evaluation.size_study:
        yield SweepFigure(
            name="sizes",
            caption=f"Choices over problem sizes; numbers beside points are "
            f"{points[0].efficiency_unit}.",
            axes=partial(size_figure, points),
        )


def _power_metric(one: Evaluated) -> str | None:
    """Return the metric that power is drawn over: sectors read from L2, or what goes most with it.

    Values of the space take few levels, and are not drawn.
    """
    powers = of_target(one.evaluation.correlations, "power")
    metrics = {name for row in one.found.rows for name, _ in row.metrics}
    measured = [c for c in powers if c.metric in metrics and varies(one.found.column(c.metric))]
    sectors = [c for c in measured if "sector" in c.metric and "read" in c.metric]
    best = sectors or measured
    return max(best, key=lambda c: abs(c.pearson)).metric if best else None


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def sorted_distribution(found: Population) -> Axes:
    """Draw performance, and energy on a second axis, of all variants sorted by performance.

    Lines lie at what the default reaches [EATSS, Fig. 2].
    """
    axes = new_axes()
    default = of_role(found.rows, "default")
    place = None if default is None else found.rows.index(default)
    order = np.argsort(found.performance, kind="stable")
    right = axes.twinx() if found.has_energy else None
    for side, name, values, (factor, unit), colour, mark, line in (
        (axes, "performance (left)", found.performance, speeds(found), BLUE, "o", "--"),
        (right, "energy (right)", found.energy_j, joules(found), VERMILION, "^", ":"),
    ):
        if side is None:
            continue
        x = np.arange(1, len(found) + 1, dtype=float)
        cloud(side, x, values[order] * factor, label=name, colour=colour, mark=mark)
        if place is not None and np.isfinite(values[place]):
            side.axhline(
                values[place] * factor, color=colour, linewidth=1, linestyle=line,
                label=f"default's {name.split()[0]}",
            )  # fmt: skip
        side.set_ylim(bottom=0)
        side.set_ylabel(f"{'energy of a run' if side is right else 'performance'} in {unit}")
    if right is not None:  # the slowest few would squeeze all others
        factor, _ = joules(found)
        right.set_ylim(top=float(np.nanquantile(found.energy_j, 0.995)) * factor * 1.15)
    return finished(
        axes, "All variants, sorted by performance", "variants, sorted by performance",
        legend=3 if right is None else 2, right=right,
    )  # fmt: skip


def performance_energy_scatter(found: Population) -> Axes:
    """Draw energy over performance with the choices [EATSS, Figs. 3 and 11]: low right is good."""
    axes = new_axes()
    (speed, speed_unit), (energy, energy_unit) = speeds(found), joules(found)
    x, y = found.performance * speed, found.energy_j * energy
    cloud(axes, x, y)
    axes.set_xlim(left=0)
    if np.nanmax(y) > 5 * np.nanmin(y):
        _logarithmic(axes, "y")
    labels = (
        f"performance in {speed_unit} (right is better)",
        f"energy of a run in {energy_unit} (low is better)",
    )
    return _with_choices(axes, found, x, y, "Energy over performance", *labels)


def spectrum(found: Population) -> Axes:
    """Draw all variants on lines from worst to best, as shares of the best [EATSS, Fig. 7].

    With equal work, PPW and energy order alike: one line shows both.
    """
    axes = new_axes(height_in=2.6)
    lines = {"PPW\n(1/energy)": found.efficiency} if found.has_energy else {}
    lines["performance"] = found.performance
    places = []
    for height, values in enumerate(lines.values()):
        share = values / np.nanmax(values)
        y = np.full(len(found), float(height))
        axes.axhline(height, color=GREY, linewidth=0.8, zorder=1)
        axes.scatter(
            share, y, s=110, marker="|", color=BLUE, alpha=0.45, linewidths=0.9,
            rasterized=len(found) > _MANY,
        )  # fmt: skip
        middle = float(np.nanmedian(share))
        axes.plot([middle], [height - 0.3], "^", color=BLACK, markersize=5)
        axes.annotate(
            "median", (middle, height - 0.3), xytext=(6, 0), textcoords="offset points",
            fontsize=8, va="center",
        )  # fmt: skip
        places.append(_places(found, share, y))
    axes.set_yticks(range(len(lines)), list(lines))
    axes.set_ylim(-0.55, len(lines) - 0.45)
    axes.set_xlim(0, 1.03)
    title = _titled("Where the choices stand", places[-1])
    finished(axes, title, "share of the best variant's", lines="x")
    for line in places:
        _letters(axes, line)
    return axes


def hull_figure(found: Population) -> Axes:
    """Draw efficiency over performance with hull, front, and the lines of the two best.

    [BEAST, Fig. 5]
    """
    axes = new_axes()
    speed, speed_unit = speeds(found)
    x, y = found.performance * speed, found.efficiency
    cloud(axes, x, y)
    hull, front = list(convex_hull(x, y)), list(pareto_front(x, y))
    if len(hull) > 1:
        axes.plot(x[[*hull, hull[0]]], y[[*hull, hull[0]]], color=GREY, linewidth=1, label="hull")
    axes.plot(
        x[front], y[front], color=BLACK, linewidth=1.3, marker="o", markersize=3.5,
        label=f"Pareto front ({len(front)})",
    )  # fmt: skip
    low = thriftiest(found)
    if low is not None:
        top = found.with_energy()
        axes.axvline(
            x[low], color=ORANGE, linestyle="--", linewidth=1.2, label="speed of the thriftiest"
        )
        axes.axhline(
            top.efficiency[fastest(top)], color=VERMILION, linestyle=":", linewidth=1.4,
            label="efficiency of the fastest",
        )  # fmt: skip
    labels = f"performance in {speed_unit}", f"efficiency in {found.efficiency_unit}"
    return _with_choices(axes, found, x, y, "Efficiency over performance", *labels, legend=3)


def correlation_bars(
    found: Sequence[Correlation],
    *,
    target: Target = "performance",
    movers: Sequence[str] = (),
) -> Axes:
    """Draw Pearson's coefficients with a target and their 95 % intervals, from -1 to +1.

    A dot is Spearman's. Names of movers are bold [BEAST, Figs. 6 to 8].
    """
    shown = list(of_target(tuple(found), target))
    strongest = sorted(shown, key=lambda one: -abs(one.pearson))[:MOST_BARS]
    shown = [one for one in shown if one in strongest]
    axes = new_axes(height_in=1.5 + 0.22 * len(shown))
    y = np.arange(len(shown))
    axes.barh(
        y, [one.pearson for one in shown], 0.7,
        color=[VERMILION if one.pearson < 0 else BLUE for one in shown],
        xerr=[
            [max(0.0, one.pearson - one.low) for one in shown],
            [max(0.0, one.high - one.pearson) for one in shown],
        ],
        capsize=1.5, error_kw={"elinewidth": 0.7, "alpha": 0.7}, label="Pearson, 95 % interval",
    )  # fmt: skip
    axes.plot([one.spearman for one in shown], y, "o", color=BLACK, markersize=3, label="Spearman")
    axes.set_yticks(y, [counter_words(one.metric) for one in shown], fontsize=8)
    bold = {counter_words(one) for one in movers}
    for label in axes.get_yticklabels():
        if label.get_text() in bold:
            label.set_fontweight("bold")
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlim(-1.02, 1.02)
    samples = [one.samples for one in shown] or [0]
    fewest = f"{min(samples)} to " if min(samples) < max(samples) else ""
    name = "performance × efficiency" if target == "product" else target
    x_label = f"correlation coefficient, {fewest}{max(samples)} variants"
    return finished(axes, f"Correlation with {name}", x_label, lines="x")


def metric_split(found: Population, metric: str) -> tuple[Axes, ...]:
    """Draw performance and efficiency over a metric, and over each other, split at its mean.

    Three panels: [BEAST, Fig. 9].
    """
    first, second, third = panels = tuple(new_figure(9.6, 3.5).subplots(1, 3))
    x = found.column(metric)
    factor, unit = speeds(found)
    speed, thrift = found.performance * factor, found.efficiency
    mean, words = float(np.nanmean(x)), counter_words(metric)
    names = (f"{words} up to its mean", f"{words} above its mean")
    for name, side, colour, mark in (
        (names[0], x <= mean, GREEN, "o"),
        (names[1], x > mean, VERMILION, "s"),
    ):
        label = f"{name} ({int(side.sum())})"
        for panel, across, up in ((first, x, speed), (second, x, thrift), (third, speed, thrift)):
            cloud(panel, across[side], up[side], label=label, colour=colour, mark=mark)
    speed_label, thrift_label = f"performance in {unit}", f"efficiency in {found.efficiency_unit}"
    finished(first, "", words, speed_label)
    finished(second, "", words, thrift_label)
    finished(third, "", speed_label, thrift_label)
    for panel in panels:
        panel.locator_params(axis="x", nbins=5)
        if panel is not third:
            panel.axvline(mean, color=BLACK, linewidth=0.8, linestyle="--")
    third.figure.legend(
        *third.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False,
        fontsize="small", markerscale=2.0,
    )  # fmt: skip
    return panels


def power_over_metric(found: Population, metric: str) -> Axes:
    """Draw mean power over a metric, with the line of least squares [EATSS, Fig. 9]."""
    axes = new_axes()
    x, y, words = found.column(metric), found.power_w, counter_words(metric)
    cloud(axes, x, y)
    title = f"Power over {words}"
    one = correlation(metric, x, "power", y)
    if one is not None:
        both = np.isfinite(x) & np.isfinite(y)
        slope, offset = np.polyfit(x[both], y[both], 1)
        ends = np.array([x[both].min(), x[both].max()])
        axes.plot(ends, slope * ends + offset, color=BLACK, linewidth=1)
        title += f", r = {one.pearson:.2f} [{one.low:.2f}, {one.high:.2f}]"
    return _with_choices(axes, found, x, y, title, words, "mean power in W")


def split_bars(bars: Sequence[SplitBar]) -> Axes:
    """Draw speed-up and energy at each split and warp fraction, over the default's.

    [EATSS, Fig. 8]: speed-up above 1 and energy below 1 are better.
    """
    axes = new_axes(width_in=max(6.0, 1.2 + 0.48 * len(bars)))
    x = np.arange(len(bars), dtype=float)
    axes.bar(x - 0.2, [one.speedup for one in bars], 0.38, color=BLUE, label="speed-up (high)")
    if any(one.energy is not None for one in bars):
        energies = [np.nan if one.energy is None else one.energy for one in bars]
        axes.bar(x + 0.2, energies, 0.38, color=VERMILION, hatch="//", label="energy (low)")
    axes.axhline(1.0, color=BLACK, linewidth=0.8)
    names = [
        "\n".join("-" if value is None else str(value) for value in (one.split, one.warp_fraction))
        for one in bars
    ]
    axes.set_xticks(x, names, fontsize=8)
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    axes.set_ylim(top=1.18 * axes.get_ylim()[1])
    title = "Split and warp fraction: the fastest variant of each"
    labels = "split of shared memory, warp fraction", "ratio to the default"
    return finished(axes, title, *labels, lines="y")


def size_figure(points: Sequence[SizePoint]) -> Axes:
    """Draw performance, and power on a second axis, over problem sizes; labels are PPW.

    [EATSS, Figs. 12 and 13]
    """
    axes = new_axes(height_in=4.8)
    right = axes.twinx()
    for choice, (colour, mark) in _STUDIED.items():
        at = [one for one in points if one.choice == choice]
        draw = partial(axes.plot, color=colour, marker=mark, markersize=5)
        if at:
            x, y = [one.scale for one in at], [one.figures.performance for one in at]
            draw(x, y, label=f"{choice}: performance")
        if choice not in ("default", "ours"):
            continue
        powers = [(one.scale, one.figures.power_w) for one in at if one.figures.power_w is not None]
        if powers:
            right.plot(
                *zip(*powers, strict=True), color=colour, marker=mark, markersize=4,
                fillstyle="none", linestyle=":", label=f"{choice}: power",
            )  # fmt: skip
        for one in at:
            if one.figures.efficiency is not None:
                axes.annotate(
                    digits(one.figures.efficiency, 3), (one.scale, one.figures.performance),
                    xytext=(0, 8 if choice == "ours" else -13), textcoords="offset points",
                    ha="center", fontsize=8,
                    bbox={"boxstyle": "round,pad=0.1", "facecolor": "#ffffffcc", "linewidth": 0},
                )  # fmt: skip
    axes.set_xscale("log")
    scales = sorted({one.scale for one in points})
    axes.set_xticks(scales, [f"{scale:.4g}" for scale in scales])
    axes.minorticks_off()
    axes.margins(x=0.09, y=0.14)
    axes.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    right.set_ylabel("mean power in W (dotted)")
    right.set_visible(bool(right.lines))
    return finished(
        axes,
        f"Over problem sizes; numbers are {points[0].efficiency_unit}",
        "problem size (geometric mean of those that differ)",
        f"performance in {points[0].performance_unit}",
        legend=2,
        right=right,
    )


def cloud(
    axes: Axes,
    x: Floats,
    y: Floats,
    *,
    label: str = "variants",
    colour: str = BLUE,
    mark: str = "o",
) -> None:
    """Draw variants as points."""
    few = x.size <= 150
    axes.scatter(
        x, y, s=16 if few else 9 if x.size <= 1000 else 5, color=colour, marker=mark,
        alpha=0.75 if few else 0.5, linewidths=0, label=label, rasterized=x.size > _MANY,
    )  # fmt: skip


def joules(found: Population) -> tuple[float, str]:
    """Return a factor and the unit that suits energies of a run."""
    return _suited(found.energy_j, {"J": 1.0, "mJ": 1e3, "µJ": 1e6})


def speeds(found: Population) -> tuple[float, str]:
    """Return a factor and the unit that suits performances."""
    if found.performance_unit != "GFLOP/s":
        return 1.0, found.performance_unit
    return _suited(found.performance, {"TFLOP/s": 1e-3, "GFLOP/s": 1.0})


def _suited(values: Floats, units: Mapping[str, float]) -> tuple[float, str]:
    known = values[np.isfinite(values)]
    middle = float(np.median(known)) if known.size else 1.0
    fitting = [(factor, unit) for unit, factor in units.items() if middle * factor >= 1.0]
    unit, factor = list(units.items())[-1]
    return fitting[0] if fitting else (factor, unit)


def _logarithmic(axes: Axes, which: str) -> None:
    axes.set(**{f"{which}scale": "log"})
    low, high = (axes.xaxis if which == "x" else axes.yaxis).get_view_interval()
    plain_numbers(axes, which, (1.0, 2.0, 3.0, 5.0) if high < 20 * low else (1.0, 3.0))


def _with_choices(
    axes: Axes, found: Population, x: Floats, y: Floats, title: str, *labels: str, legend: int = 0
) -> Axes:
    """Finish axes, and mark the choices with their letters, which the title explains."""
    places = _places(found, x, y)
    return _letters(finished(axes, _titled(title, places), *labels, legend=legend), places)


def _places(found: Population, x: Floats, y: Floats) -> list[_Place]:
    """Return where the choices are drawn, those that were measured in both."""
    places = {row.variant: k for k, row in enumerate(found.rows)}
    rows = ((role, of_role(found.rows, role)) for role in LETTERS)
    listed = [(role, places[row.variant]) for role, row in rows if row is not None]
    return [
        (role, float(x[k]), float(y[k]))
        for role, k in listed
        if np.isfinite(x[k]) and np.isfinite(y[k])
    ]


def _titled(title: str, places: Iterable[_Place]) -> str:
    """Return a title and below it what the letters mean, ``P default, U ours``."""
    legend = ", ".join(f"{LETTERS[role][0]} {role}" for role, _, _ in places)
    return f"{title}\n{legend}" if legend else title


def _letters(axes: Axes, places: Iterable[_Place]) -> Axes:
    """Write the letters of choices where they stand; what would cover another stands beside it.

    To be called when scales and limits are set.
    """
    taken: list[tuple[float, float]] = []
    for role, x, y in places:
        letter, colour = LETTERS[role]
        at_x, at_y = axes.transData.transform((x, y))
        shift = 0
        while any(abs(at_x - a) + abs(at_y + shift - b) < _APART_PX for a, b in taken):
            shift += 22
        taken.append((at_x, at_y + shift))
        axes.annotate(
            letter, (x, y), xytext=(0, shift * 72 / axes.figure.dpi), textcoords="offset points",
            color="white", weight="bold", fontsize=9, ha="center", va="center", zorder=6,
            bbox={"boxstyle": "circle,pad=0.22", "facecolor": colour, "edgecolor": "white"},
            arrowprops={"arrowstyle": "-", "color": BLACK, "linewidth": 0.8} if shift else None,
            annotation_clip=False,
        )  # fmt: skip
    return axes
