"""Plots of what was measured of a card: rooflines in time and energy, curves of memory.

Rooflines, arch lines and power lines are those of Choi and Vuduc, Figs. 2 and 4 to 7; curves of
memory those of MIPP, Figs. 6 to 8; curves over sizes of blocks those of Allen and Ge, Figs. 4 to 9.
Every function draws into ``axes``, or into a figure of its own, and returns the axes. matplotlib is
imported when a plot is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import Group, Record, Result
from eatss.measurement.characterize.energy_roofline import EnergyRoofline
from eatss.measurement.characterize.latency import PATTERNS
from eatss.measurement.characterize.roofline_points import PowerLimitedRoofline, RooflinePoint
from eatss.report import plots
from eatss.report.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    new_axes,
    new_figure,
    plain_numbers,
)
from eatss.report.render import figure as shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_FLOP_BYTE = (0.125, 256.0)
"""Intensities that are always in view."""

finished = partial(plots.finished, below=4.6)

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
    grid = figure.subplots(len(rows), 3, squeeze=False)
    for several, row in zip(grid, rows, strict=True):
        for axes, what in zip(several, PANELS, strict=True):
            roofline_panel(row, what, axes=axes)
    figure.suptitle(title)
    return figure


@frozen
class _Panel:
    """One quantity over intensities ``x``: the line of a machine, and what is drawn beside it.

    ``capped`` is the line at full clock where the power limit is reached, ``lowered`` that of a
    card that lowers its clocks, ``point`` where a result lies, ``program`` the ceiling of a program
    and what it reached.
    """

    label: str
    colour: str
    line: str
    whole: Callable[[EnergyRoofline, _Floats], _Floats]
    capped: Callable[[EnergyRoofline, _Floats], _Floats]
    point: _Value
    lowered: Callable[[PowerLimitedRoofline, _Floats], _Floats] | None = None
    program: Callable[[RooflinePoint], tuple[float, float | None]] | None = None


PANELS = {
    "time": _Panel(
        label="speed in GFLOP/s",
        colour=BLUE,
        line="roofline (time)",
        whole=lambda machine, x: machine.speed_flops_s(x) / 1e9,
        capped=lambda machine, x: 1.0 / machine.capped_time_s(1.0, x) / 1e9,
        point=lambda one: one.flops / one.time_s / 1e9,
        lowered=lambda held, x: 1.0 / held.time_s(1.0, x) / 1e9,
        program=lambda one: (one.speed_ceiling_flops_s, one.speed_flops_s),
    ),
    "energy": _Panel(
        label="efficiency in GFLOP/J",
        colour=VERMILION,
        line="arch line (energy)",
        whole=lambda machine, x: machine.efficiency_flops_j(x) / 1e9,
        capped=lambda machine, x: 1.0 / machine.capped_energy_j(1.0, x) / 1e9,
        point=lambda one: one.flops / one.energy_j / 1e9 if one.energy_j else None,
        lowered=lambda held, x: 1.0 / held.energy_j(1.0, x) / 1e9,
        program=lambda one: (one.efficiency_ceiling_flops_j, one.efficiency_flops_j),
    ),
    "power": _Panel(
        label="power in W",
        colour=GREEN,
        line="power line",
        whole=lambda machine, x: machine.power_w(x),
        capped=lambda machine, x: machine.capped_power_w(x),
        point=lambda one: one.power_w,
    ),
}
"""The roofline, the arch line and the power line, without and with the power limit.

[Choi and Vuduc: Fig. 2a and the upper half of Figs. 4 and 5; Fig. 2b and the lower half of Figs. 4
and 5; Figs. 2b, 6 and 7]
"""


def roofline_panel(row: Roofs, what: str, *, axes: Axes | None = None) -> Axes:
    """Draw one of :data:`PANELS` of a machine over flop/byte, with points and programs.

    At full clock a limit costs more than in truth: a card lowers its clocks to keep to it, and with
    them its voltage, so points lie above the dashed line and near that of ``row.lowered``.
    """
    axes, machine, x, panel = axes or new_axes(), row.machine, _intensities(row), PANELS[what]
    plot = partial(axes.plot, x)
    plot(panel.whole(machine, x), color=panel.colour, label=panel.line)
    if machine.power_limit_w is not None and machine.power_limit_w < machine.power_bounds_w[1]:
        held = f"held to {machine.power_limit_w:.0f} W"
        capped = panel.capped(machine, x)
        plot(capped, color=panel.colour, linestyle="--", label=f"{held} at full clock")
        if row.lowered is not None and panel.lowered is not None:
            plot(
                panel.lowered(row.lowered, x), color=BLACK, linestyle=(0, (3, 1.5)), linewidth=1,
                label=f"{held} by lower clocks",
            )  # fmt: skip
    placed = [(_intensity(one), panel.point(one)) for one in row.results]
    found = [(at, y) for at, y in placed if at > 0 and y is not None]  # others have no place
    if found:
        axes.plot(
            *zip(*found, strict=True), "o", color=BLACK, markersize=4, fillstyle="none",
            label="measured",
        )  # fmt: skip
    places = [] if panel.program is None else [*map(panel.program, row.programs)]
    for number, (one, (roof, reached)) in enumerate(zip(row.programs, places, strict=False)):
        draw = partial(axes.plot, color=PURPLE)
        mark = partial(draw, marker="sD^vP*"[number % 6], linestyle="none", markersize=8)
        at, top = one.intensity, roof / 1e9
        mark([at], [top], fillstyle="none", label=f"{one.name}: ceiling")
        if reached is not None:
            draw([at, at], [reached / 1e9, top], linewidth=0.8)
            mark([at], [reached / 1e9], label=f"{one.name}: measured")
    if what == "power" and machine.constant_w > 0:
        constant = f"constant power, {machine.constant_w:.0f} W"
        axes.axhline(machine.constant_w, color=GREY, linewidth=1, label=constant)
    for name, balance, colour, style in (
        ("time balance", machine.time_balance, BLUE, ":"),
        ("energy balance", machine.energy_balance, ORANGE, ":"),
        ("half efficiency", machine.half_efficiency_intensity, PURPLE, "-."),
    ):
        label = f"{name}, {balance:.3g} flop/byte"
        axes.axvline(balance, color=colour, linestyle=style, linewidth=1.2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xlim(x[0], x[-1])
    plain_numbers(axes, "x")
    if what == "power":
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        plain_numbers(axes, "y", _SUBS)
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


_SUBS = (1.0, 2.0, 5.0)


MEMORY_CURVES: Mapping[Group, tuple[str, str, str]] = {
    "coalescing": (
        "side",
        "coalescing of reads of 4 bytes",
        "neighbouring words that a warp reads side by side",
    ),
    "access size": ("bytes", "size of an access, copying", "access of a thread in bytes"),
    "bank conflicts": (
        "conflicts",
        "bank conflicts, stores to shared memory",
        "bank conflicts of an access of a warp",
    ),
    "stride": ("stride_bytes", "stride of reads of 1 byte", "bytes between neighbouring threads"),
}
"""Curves of memory by the group of their results [MIPP, section III, Figs. 6 to 8]: the parameter
that they are over, a title, and the label of the horizontal axis."""


def memory_curve(results: Sequence[Result], group: Group, *, axes: Axes | None = None) -> Axes:
    """Draw throughput, power and energy of a useful byte over the point of highest throughput.

    Args:
        results: of the group.
        group: one of :data:`MEMORY_CURVES`.
        axes: to draw into.
    """
    axes = axes or new_axes()
    parameter, title, x_label = MEMORY_CURVES[group]
    found = _along(results, parameter)
    lines: tuple[_Line, ...] = (
        ("throughput", "GB/s", BLUE, "o", _gb_s),
        ("power", "W", GREEN, "s", lambda one: one.power_w),
        (
            "energy of a useful byte", "pJ", VERMILION, "^",
            lambda one: one.energy_j and one.energy_j / one.useful_bytes * 1e12,
        ),
    )  # fmt: skip
    _ratios(axes, found, lines, best=max((one for _, one in found), key=_gb_s))
    if group != "bank conflicts":
        axes.set_xscale("log", base=2)
        axes.set_xticks([x for x, _ in found])
        axes.minorticks_off()
        plain_numbers(axes, "x")
    axes.set_yscale("log")
    drawn = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata())]
    axes.set_ylim(0.8 * min(drawn), 1.25 * max(drawn))
    plain_numbers(axes, "y", _SUBS)
    axes.axhline(1.0, color=BLACK, linewidth=0.6)
    finished(axes, title, x_label, "ratio to the fastest", legend=2)
    if group == "stride":
        from matplotlib.ticker import FixedLocator, FuncFormatter  # noqa: PLC0415 - optional

        axes.xaxis.set_major_locator(FixedLocator([4.0**k for k in range(10)]))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}" if value < 1024 else f"{value / 1024:g} Ki")
        )
    return axes


_Line: TypeAlias = tuple[str, str, str, str, _Value]
"""A quantity: its name, unit, colour and mark, and its value of a result."""


def _ratios(
    axes: Axes,
    found: Sequence[tuple[float, Result]],
    lines: Sequence[_Line],
    *,
    best: Result | None = None,
    size: float = 4,
) -> None:
    """Draw quantities along a curve over those of the best result, or over the most of each."""
    for name, unit, colour, mark, value in lines:
        points = [(x, y) for x, one in found if (y := value(one)) is not None]
        whole = max((y for _, y in points), default=None) if best is None else value(best)
        if points and whole:
            xs, ys = zip(*((x, y / whole) for x, y in points), strict=True)
            label = f"{name}, 1 = {shown(whole)} {unit}"
            axes.plot(xs, ys, color=colour, marker=mark, markersize=size, label=label)


def _along(results: Sequence[Result], parameter: str) -> list[tuple[float, Result]]:
    """Return the results that stand on a curve, in its order."""
    found = [(at, one) for one in results if (at := one.parameter(parameter)) is not None]
    return sorted(found, key=lambda pair: pair[0])


def _gb_s(one: Result) -> float:
    return one.useful_bytes / one.time_s / 1e9


def memory_figure(record: Record, title: str) -> Figure:
    """Return the curves of memory: coalescing, size of an access, bank conflicts, stride.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    figure = new_figure(13.0, 9.6)
    for axes, group in zip(figure.subplots(2, 2).flat, MEMORY_CURVES, strict=True):
        memory_curve(record.of(group), group, axes=axes)
    figure.suptitle(title)
    return figure


def block_size(results: Sequence[Result], pattern: str, *, axes: Axes | None = None) -> Axes:
    """Draw bandwidth and power over the threads of a block, with the occupancy beside them.

    [Allen and Ge, Figs. 4 to 9]. Bandwidth and power are shares of the largest of each.

    Args:
        results: of the group ``block size``; those of other patterns are left out.
        pattern: a name of :data:`eatss.measurement.characterize.latency.PATTERNS`.
        axes: to draw into.
    """
    axes = axes or new_axes()
    found = _along([one for one in results if one.name.startswith(f"{pattern}, ")], "threads")
    known = [(x, one.occupancy) for x, one in found if one.occupancy is not None]
    achieved = [(x, one.achieved) for x, one in known if one.achieved is not None]
    if known:
        limits = zip(*((x, one.theoretical) for x, one in known), strict=True)
        axes.step(*limits, where="mid", color=GREY, linewidth=1, label="theoretical occupancy")
    if achieved:
        label = "achieved occupancy"
        axes.plot(*zip(*achieved, strict=True), ":", color=BLACK, linewidth=1.2, label=label)
    lines: tuple[_Line, ...] = (
        ("bandwidth", "GB/s", BLUE, "o", _gb_s),
        ("power", "W", VERMILION, "^", lambda one: one.power_w),
    )
    _ratios(axes, found, lines, size=3.5)
    axes.set_xticks(range(0, 1025, 128))
    axes.set_xlim(0, 1056)
    axes.set_ylim(0, 1.05)
    return finished(axes, pattern, "threads of a block", "share of the most", legend=2)


def block_figure(record: Record, title: str) -> Figure:
    """Return the six access patterns over sizes of blocks.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    figure = new_figure(15.0, 9.0)
    results = record.of("block size")
    for axes, pattern in zip(figure.subplots(2, 3).T.flat, PATTERNS, strict=True):
        block_size(results, pattern.name, axes=axes)
    figure.suptitle(title)
    return figure


def predicted_against_measured(
    pairs: Sequence[tuple[float, float]],
    unit: str,
    *,
    quantity: str = "energy",
    label: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw predicted over measured amounts, both logarithmic, with the diagonal.

    Args:
        pairs: predicted and measured, all above zero, in ``unit``.
        unit: of both, as ``J``.
        quantity: what they are of.
        label: names the points in the legend; the median error stands beside it.
        axes: to draw into; calls with the same axes add points.

    Raises:
        ValueError: There is no pair, or an amount is not above zero.
    """
    if not pairs or any(amount <= 0 for pair in pairs for amount in pair):
        raise ValueError("Pairs have to be above zero, and there has to be one.")
    axes = axes or new_axes()
    again = bool(axes.lines)
    predicted, measured = zip(*pairs, strict=True)
    missed = float(np.median([abs(math.log(p / m)) for p, m in pairs]))
    name = f"{label or 'predicted'}, median factor {math.exp(missed):.3f}"
    colour = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)[len(axes.collections) % 5]
    axes.scatter(measured, predicted, s=14, color=colour, alpha=0.8, linewidths=0, label=name)
    ends = [*predicted, *measured]
    if again:
        ends += [float(v) for v in np.asarray(axes.lines[0].get_xdata())]
        axes.lines[0].remove()
    low, high = min(ends), max(ends)
    axes.plot([low, high], [low, high], color=BLACK, linewidth=0.8, label="as measured")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_aspect("equal")
    labels = f"measured {quantity} in {unit}", f"predicted {quantity} in {unit}"
    return finished(axes, "", *labels, legend=1)
