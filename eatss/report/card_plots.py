"""Plots of what was measured of a card: rooflines in time, energy and power.

They are those of Choi and Vuduc, Figs. 2 and 4 to 7. Every function draws into ``axes``, or into a
figure of its own, and returns the axes. matplotlib is imported when a plot is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import Result
from eatss.measurement.characterize.roofline import (
    EnergyRoofline,
    Lines,
    PowerLimitedRoofline,
    RooflinePoint,
)
from eatss.report.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    finished,
    new_axes,
    new_figure,
    panels,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_FLOP_BYTE = (0.125, 256.0)
"""Intensities that are always in view."""

SAMPLES = 256

_Floats: TypeAlias = NDArray[np.float64]
_Value: TypeAlias = Callable[[Result], float | None]


@frozen
class Roofs:
    """A machine with what was measured on it: points of the intensity group, and programs.

    ``lowered`` adds lines of a card that keeps to its power limit by lower clocks.
    """

    title: str
    machine: EnergyRoofline
    lowered: PowerLimitedRoofline | None = None
    results: tuple[Result, ...] = ()
    programs: tuple[RooflinePoint, ...] = ()


def roofline_figure(rows: Sequence[Roofs], title: str) -> Figure:
    """Return rooflines, arch lines and power lines side by side, a machine a row.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    figure = new_figure(15.0, 0.6 + 4.9 * len(rows))
    places = panels(figure, len(rows), len(PANELS))
    for axes, (row, what) in zip(places, product(rows, PANELS), strict=True):
        roofline_panel(row, what, axes=axes)
    figure.suptitle(title)
    return figure


@frozen
class _Panel:
    """One quantity over intensities ``x``: the line of a machine, and what is drawn beside it.

    ``point`` is where a result lies, ``program`` the ceiling of a program and what it reached.
    """

    label: str
    colour: str
    line: str
    values: Callable[[Lines, _Floats], _Floats]
    point: _Value
    program: Callable[[RooflinePoint], tuple[float, float | None]] | None = None


PANELS = {
    "time": _Panel(
        label="speed in GFLOP/s",
        colour=BLUE,
        line="roofline (time)",
        values=lambda machine, x: machine.speed_flops_s(x) / 1e9,
        point=lambda one: one.flops / one.time_s / 1e9,
        program=lambda one: (one.speed_ceiling_flops_s, one.speed_flops_s),
    ),
    "energy": _Panel(
        label="efficiency in GFLOP/J",
        colour=VERMILION,
        line="arch line (energy)",
        values=lambda machine, x: machine.efficiency_flops_j(x) / 1e9,
        point=lambda one: one.flops / one.energy_j / 1e9 if one.energy_j else None,
        program=lambda one: (one.efficiency_ceiling_flops_j, one.efficiency_flops_j),
    ),
    "power": _Panel(
        label="power in W",
        colour=GREEN,
        line="power line",
        values=Lines.power_w,
        point=lambda one: one.power_w,
    ),
}
"""The roofline, the arch line and the power line, without and with the power limit.

[Choi and Vuduc: Fig. 2a and the upper half of Figs. 4 and 5; Fig. 2b and the lower half of Figs. 4
and 5; Figs. 2b, 6 and 7]
"""


def roofline_panel(row: Roofs, what: str, *, axes: Axes | None = None) -> Axes:
    """Draw one of :data:`PANELS` of a machine over flop/byte, with points and programs.

    A card lowers its clocks to keep to its power limit, and with them its voltage.
    """
    axes, machine, x, panel = axes or new_axes(), row.machine, _intensities(row), PANELS[what]
    axes.plot(x, panel.values(machine, x), color=panel.colour, label=panel.line)
    limit_w, held = machine.power_limit_w, row.lowered
    if held is not None and limit_w is not None and limit_w < machine.most_power_w:
        label = f"held to {limit_w:.0f} W by lower clocks"
        axes.plot(x, panel.values(held, x), "--", color=BLACK, linewidth=1, label=label)
    placed = [(_intensity(one), panel.point(one)) for one in row.results]
    found = [(at, y) for at, y in placed if at > 0 and y is not None]  # others have no place
    if found:
        x_found, y_found = zip(*found, strict=True)
        axes.plot(
            x_found, y_found, "o", color=BLACK, markersize=4, fillstyle="none", label="measured"
        )
    for one in row.programs if panel.program else ():
        roof, reached = panel.program(one)  # type: ignore[misc] # mypy forgets
        draw = partial(axes.plot, [one.intensity], color=PURPLE, marker="s", linestyle="none")
        draw([roof / 1e9], fillstyle="none", label=f"{one.name}: ceiling")
        if reached is not None:
            draw([reached / 1e9], label=f"{one.name}: measured")
    for name, balance, colour in (
        ("time balance", machine.time_balance, BLUE),
        ("energy balance", machine.energy_balance, ORANGE),
        ("half efficiency", machine.half_efficiency_intensity, PURPLE),
    ):
        label = f"{name}, {balance:.3g} flop/byte"
        axes.axvline(balance, color=colour, linestyle=":", linewidth=1.2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xlim(x[0], x[-1])
    plain_numbers(axes.xaxis)
    if what == "power":
        axes.axhline(machine.constant_w, color=GREY, linewidth=1, label="constant power")
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, (1.0, 2.0, 5.0))
    title = f"{row.title}: {what}"
    return finished(axes, title, "intensity in flop/byte", panel.label, legend=2)


def _intensities(row: Roofs) -> _Floats:
    """Return intensities in flop/byte; the corner of the roofline is one of them."""
    within = [*SHOWN_FLOP_BYTE, row.machine.time_balance]
    within += [one.intensity for one in row.programs]
    within += [x for one in row.results if (x := _intensity(one))]
    ends = np.geomspace(min(within) / 1.4, max(within) * 1.4, SAMPLES)
    return np.union1d(ends, [row.machine.time_balance])


def _intensity(one: Result) -> float:
    return one.flops / one.useful_bytes if one.useful_bytes else 0.0
