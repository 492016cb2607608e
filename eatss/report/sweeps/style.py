"""What figures of sweeps share: sizes, colours, the cloud of variants, the letters of choices.

``P`` is the default (as PPCG's in the paper), ``E`` the paper's choice, ``U`` ours [EATSS, Fig. 7].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eatss.report import plot_file
from eatss.report.plot_file import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    plain_numbers,
)
from eatss.tune.evaluation.population import Floats, Population, of_role
from eatss.tune.evaluation.standing import ChoiceName
from eatss.tune.store.nouns import Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN = 6.0, 4.2
"""Of one panel: small enough that letters can still be read on a telephone."""

own_axes = partial(plot_file.own_axes, width_in=WIDTH_IN, height_in=HEIGHT_IN)
"""Return the axes of a new figure of a panel."""

LETTERS: Mapping[Role, tuple[str, str]] = {
    "default": ("P", VERMILION),
    "paper": ("E", "#8c3a6e"),
    "ours": ("U", "#00664a"),
}
"""Letter and colour of each role: white letters are to be read on it."""

CHOICE_COLOURS: Mapping[ChoiceName, str] = {
    "default": VERMILION,
    "paper": PURPLE,
    "ours": GREEN,
    "fastest": BLUE,
    "least energy": ORANGE,
    "median": GREY,
}
CHOICE_MARKS: Mapping[ChoiceName, str] = {
    "default": "s",
    "paper": "D",
    "ours": "o",
    "fastest": "^",
    "least energy": "v",
    "median": "x",
}

MANY = 400
"""Clouds of more points are drawn as pixels also in SVG and PDF."""

_APART_PX = 20.0

Place = tuple[Role, float, float]


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
    size = 16 if x.size <= 150 else 9 if x.size <= 1000 else 5
    axes.scatter(
        x,
        y,
        s=size,
        color=colour,
        marker=mark,
        alpha=0.75 if x.size <= 150 else 0.5,
        linewidths=0,
        label=label,
        rasterized=x.size > MANY,
    )


def places_of(found: Population, x: Floats, y: Floats) -> list[Place]:
    """Return where the choices are drawn, those that were measured in both."""
    places = {row.variant: k for k, row in enumerate(found.rows)}
    rows = ((role, of_role(found.rows, role)) for role in LETTERS)
    listed = [(role, places[row.variant]) for role, row in rows if row is not None]
    return [
        (role, float(x[k]), float(y[k]))
        for role, k in listed
        if np.isfinite(x[k]) and np.isfinite(y[k])
    ]


def letters(axes: Axes, places: Iterable[Place]) -> Axes:
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
            letter,
            (x, y),
            xytext=(0, shift * 72 / axes.figure.dpi),
            textcoords="offset points",
            color="white",
            weight="bold",
            fontsize=9,
            ha="center",
            va="center",
            zorder=6,
            bbox={"boxstyle": "circle,pad=0.22", "facecolor": colour, "edgecolor": "white"},
            arrowprops={"arrowstyle": "-", "color": BLACK, "linewidth": 0.8} if shift else None,
            annotation_clip=False,
        )
    return axes


def titled(title: str, places: Iterable[Place]) -> str:
    """Return a title and below it what the letters mean, ``P default, U ours``."""
    legend = ", ".join(f"{LETTERS[role][0]} {role}" for role, _, _ in places)
    return f"{title}\n{legend}" if legend else title


def plain_logarithm(axes: Axes, which: str) -> None:
    """Make an axis logarithmic, with numbers as people write them."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = (axes.xaxis if which == "x" else axes.yaxis).get_view_interval()
    plain_numbers(axes, which, (1.0, 2.0, 3.0, 5.0) if high < 20 * low else (1.0, 3.0))


def joules(found: Population) -> tuple[float, str]:
    """Return a factor and the unit that suits energies of a run."""
    return _suited(found.energy_j, (("J", 1.0), ("mJ", 1e3), ("µJ", 1e6)))


def speeds(found: Population) -> tuple[float, str]:
    """Return a factor and the unit that suits performances."""
    if found.performance_unit != "GFLOP/s":
        return 1.0, found.performance_unit
    return _suited(found.performance, (("TFLOP/s", 1e-3), ("GFLOP/s", 1.0)))


def _suited(values: Floats, units: tuple[tuple[str, float], ...]) -> tuple[float, str]:
    known = values[np.isfinite(values)]
    middle = float(np.median(known)) if known.size else 1.0
    for unit, factor in units:
        if middle * factor >= 1.0:
            return factor, unit
    return units[-1][1], units[-1][0]
