"""Figures of all variants: sorted, scattered, as a spectrum, within their hull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from eatss.report.plot_file import BLACK, BLUE, GREY, ORANGE, VERMILION, finished
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
from eatss.tune.evaluation.frontier import convex_hull, pareto_front, weighted_winners
from eatss.tune.evaluation.population import Floats, Population, of_role
from eatss.tune.evaluation.tradeoff import fastest, thriftiest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sorted_distribution(
    found: Population,
    axes: Axes | None = None,
    *,
    by: Literal["performance", "energy"] = "performance",
) -> Axes:
    """Draw performance, and energy on a second axis, of all variants sorted by one of them.

    Lines lie at what the default reaches [EATSS, Fig. 2].
    """
    axes = axes or own_axes()
    speed, speed_unit = speeds(found)
    energy, energy_unit = joules(found)
    order = np.argsort(found.performance if by == "performance" else found.energy_j, kind="stable")
    x = np.arange(1, len(found) + 1, dtype=float)
    cloud(axes, x, found.performance[order] * speed, label="performance (left)")
    default = of_role(found.rows, "default")
    place = None if default is None else found.rows.index(default)
    if place is not None:
        axes.axhline(
            found.performance[place] * speed, color=BLUE, linewidth=1, linestyle="--",
            label="default's performance",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    right = None
    if found.has_energy:
        right = axes.twinx()
        cloud(
            right, x, found.energy_j[order] * energy, label="energy (right)", colour=VERMILION,
            mark="^",
        )  # fmt: skip
        if place is not None and np.isfinite(found.energy_j[place]):
            right.axhline(
                found.energy_j[place] * energy, color=VERMILION, linewidth=1, linestyle=":",
                label="default's energy",
            )  # fmt: skip
        right.set_ylim(0, float(np.nanquantile(found.energy_j, 0.995)) * energy * 1.15)
        right.set_ylabel(f"energy of a run in {energy_unit}")
    columns = 3 if right is None else 2
    labels = f"variants, sorted by {by}", f"performance in {speed_unit}"
    return finished(axes, f"All variants, sorted by {by}", *labels, legend=columns, right=right)


def performance_energy_scatter(found: Population, axes: Axes | None = None) -> Axes:
    """Draw energy over performance with the choices [EATSS, Figs. 3 and 11]: low right is good."""
    axes = axes or own_axes()
    speed, speed_unit = speeds(found)
    energy, energy_unit = joules(found)
    x, y = found.performance * speed, found.energy_j * energy
    cloud(axes, x, y)
    places = places_of(found, x, y)
    axes.set_xlim(left=0)
    if np.nanmax(y) > 5 * np.nanmin(y):
        plain_logarithm(axes, "y")
    labels = (
        f"performance in {speed_unit} (right is better)",
        f"energy of a run in {energy_unit} (low is better)",
    )
    return letters(finished(axes, titled("Energy over performance", places), *labels), places)


def spectrum(found: Population, axes: Axes | None = None) -> Axes:
    """Draw all variants on lines from worst to best, as shares of the best [EATSS, Fig. 7].

    With equal work, PPW and energy order alike: one line shows both.
    """
    axes = axes or own_axes(height_in=2.6)
    lines: list[tuple[str, Floats]] = [("performance", found.performance)]
    if found.has_energy:
        lines.append(("PPW\n(1/energy)", found.efficiency))
    places = []
    heights = range(len(lines) - 1, -1, -1)
    for (_, values), height in zip(lines, heights, strict=True):
        share = values / np.nanmax(values)
        y = np.full(len(found), float(height))
        axes.axhline(height, color=GREY, linewidth=0.8, zorder=1)
        axes.scatter(
            share, y, s=110, marker="|", color=BLUE, alpha=0.45, linewidths=0.9,
            rasterized=len(found) > 400,
        )  # fmt: skip
        middle = float(np.nanmedian(share))
        axes.plot([middle], [height - 0.3], "^", color=BLACK, markersize=5)
        axes.annotate(
            "median", (middle, height - 0.3), xytext=(6, 0), textcoords="offset points",
            fontsize=8, va="center",
        )  # fmt: skip
        places.append(places_of(found, share, y))
    axes.set_yticks(list(heights), [name for name, _ in lines])
    axes.set_ylim(-0.55, len(lines) - 0.45)
    axes.set_xlim(0, 1.03)
    title = titled("Where the choices stand", places[0])
    finished(axes, title, "share of the best variant's", lines="x")
    for line in places:
        letters(axes, line)
    return axes


def hull_figure(found: Population, axes: Axes | None = None) -> Axes:
    """Draw efficiency over performance with hull, front, and the lines of the two best.

    [BEAST, Fig. 5]
    """
    axes = axes or own_axes()
    speed, speed_unit = speeds(found)
    x, y = found.performance * speed, found.efficiency
    cloud(axes, x, y)
    hull = list(convex_hull(x, y))
    if len(hull) > 1:
        axes.plot(x[[*hull, hull[0]]], y[[*hull, hull[0]]], color=GREY, linewidth=1, label="hull")
    front = list(pareto_front(x, y))
    axes.plot(
        x[front], y[front], color=BLACK, linewidth=1.3, marker="o", markersize=3.5,
        label=f"Pareto front ({len(front)})",
    )  # fmt: skip
    low = thriftiest(found)
    if low is not None:
        top = found.with_energy()
        high = fastest(top)
        axes.axvline(
            x[low], color=ORANGE, linestyle="--", linewidth=1.2, label="speed of the thriftiest"
        )
        axes.axhline(
            top.efficiency[high], color=VERMILION, linestyle=":", linewidth=1.4,
            label="efficiency of the fastest",
        )  # fmt: skip
    places = places_of(found, x, y)
    labels = f"performance in {speed_unit}", f"efficiency in {found.efficiency_unit}"
    title = titled("Efficiency over performance", places)
    return letters(finished(axes, title, *labels, legend=3), places)


def weighted_choice(found: Population, axes: Axes | None = None) -> Axes:
    """Draw what is lost in time and in energy by the best variant for each weight of time.

    The weighted objective is ``α·t/t* + (1 − α)·e/e*`` [BEAST, eq. 2].
    """
    axes = axes or own_axes()
    least_t = float(found.with_energy().time_s.min())
    least_e = float(np.nanmin(found.energy_j))
    ranges = weighted_winners(found.time_s, found.energy_j)
    borders = [one.low for one in ranges] + [1.0]
    for name, values, least, colour, style in (
        ("time", found.time_s, least_t, BLUE, "-"),
        ("energy", found.energy_j, least_e, VERMILION, "--"),
    ):
        lost = [100 * (float(values[one.point]) / least - 1) for one in ranges]
        axes.step(
            borders, [*lost, lost[-1]], where="post", color=colour, linestyle=style, linewidth=1.8,
            label=f"{name} lost",
        )  # fmt: skip
    axes.set_xlim(0, 1)
    if len(ranges) == 1:
        axes.set_ylim(top=1.0)  # nothing is lost
    axes.set_ylim(bottom=-0.02 * axes.get_ylim()[1])
    return finished(
        axes,
        f"The best variant for each weight: {len(ranges)} in turn",
        "weight α of time (0: energy alone, 1: time alone)",
        "over the least, in %",
        legend=3,
    )
