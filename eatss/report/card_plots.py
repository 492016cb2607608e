"""Plots of what was measured of a card: rooflines in time and energy, prices, curves of memory.

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
from eatss.cards.profile import Calibration, Coefficient
from eatss.measurement.characterize.access_patterns import PATTERNS
from eatss.measurement.characterize.arithmetic import TENSOR_OPERATIONS
from eatss.measurement.characterize.benchmark import LINE_BYTES, WARP, Group
from eatss.measurement.characterize.energy_roofline import EnergyRoofline
from eatss.measurement.characterize.power_limited_roofline import PowerLimitedRoofline
from eatss.measurement.characterize.result import Record, Result
from eatss.measurement.characterize.roofline_points import RooflinePoint
from eatss.report import plot_file
from eatss.report.plot_file import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    own_axes,
    plain_numbers,
)
from eatss.report.render import figure as shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_FLOP_BYTE = (0.125, 256.0)
"""Intensities that are always in view."""

finished = partial(plot_file.finished, below=4.6)

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
    axes, machine, x, panel = axes or own_axes(), row.machine, _intensities(row), PANELS[what]
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


def _value_at(axes: Axes, value: float, x: float, y: float) -> None:
    """Write a value to the right of a point."""
    axes.annotate(
        f"{value:.3g}", (x, y), xytext=(4, 0), textcoords="offset points", va="center",
        fontsize="small",
    )  # fmt: skip


_INSTRUCTIONS: tuple[tuple[str, str], ...] = (
    ("int32_add_pj", "int32 add"),
    ("int32_mul_pj", "int32 mul"),
    ("int32_shift_pj", "int32 shift"),
    ("int32_bits_pj", "int32 bitwise"),
    ("int32_compare_pj", "int32 compare"),
    ("int32_count_pj", "int32 popc, find, reverse"),
    ("int64_add_pj", "int64 add"),
    ("fp16x2_pj", "fp16x2 fma"),
    ("fp32_add_pj", "fp32 add"),
    ("fp32_mul_pj", "fp32 mul"),
    ("fp32_pj", "fp32 fma"),
    ("special_pj", "fp32 special function"),
    ("fp32_div_approx_ftz_pj", "fp32 div, approx., ftz"),
    ("fp32_div_pj", "fp32 div"),
    ("fp64_add_pj", "fp64 add"),
    ("fp64_mul_pj", "fp64 mul"),
    ("fp64_pj", "fp64 fma"),
    ("fp64_div_pj", "fp64 div"),
)


def instruction_energies(calibration: Calibration, *, axes: Axes | None = None) -> Axes:
    """Draw pJ of an instruction of a thread, constant power left out, with 95 % intervals."""
    rows = _known(calibration, [(name, key, 1 / WARP) for key, name in _INSTRUCTIONS])
    label = "energy of an instruction of a thread in pJ"
    return _price_bars(axes, rows, BLUE, "instructions", label)


def flop_energies(calibration: Calibration, capability: int, *, axes: Axes | None = None) -> Axes:
    """Draw pJ of a floating-point operation, constant power left out, with 95 % intervals.

    ``capability``, as 90 for 9.0, says which shape the mma of tensor cores have.
    """
    scalar = [
        ("fp64 fma", "fp64_pj", 2 * WARP),
        ("fp32 fma", "fp32_pj", 2 * WARP),
        ("fp16x2 fma", "fp16x2_pj", 4 * WARP),
    ]
    tensor = [
        (one.name, f"tensor_{one.name.removesuffix(' mma')}_pj", one.flops)
        for one in TENSOR_OPERATIONS
        if one.least_capability <= capability <= one.most_capability
    ]
    rows = _known(calibration, [(name, key, 1 / flops) for name, key, flops in scalar + tensor])
    label = "energy of a floating-point operation in pJ"
    return _price_bars(axes, rows, GREEN, "floating-point operations", label)


_Price: TypeAlias = tuple[str, Coefficient]


def _known(calibration: Calibration, wanted: Sequence[tuple[str, str, float]]) -> list[_Price]:
    """Return the prices that a calibration has, each times a factor."""
    found = dict(calibration.coefficients)
    return [
        (
            name,
            Coefficient(
                value=found[key].value * by, low=found[key].low * by, high=found[key].high * by
            ),
        )
        for name, key, by in wanted
        if key in found
    ]


def _price_bars(
    axes: Axes | None, rows: Sequence[_Price], colour: str, title: str, label: str
) -> Axes:
    """Draw bars to the right on a logarithmic axis, each with its value."""
    axes = axes or own_axes()
    values = [one.value for _, one in rows]
    axes.barh(
        range(len(rows)),
        values,
        xerr=[[v.value - v.low for _, v in rows], [v.high - v.value for _, v in rows]],
        color=colour,
        error_kw={"elinewidth": 1, "capsize": 2},
    )
    axes.set_xscale("log")
    axes.set_xlim(0.5 * min(values), 2.5 * max(values))
    for place, (_, one) in enumerate(rows):
        _value_at(axes, one.value, one.high, place)
    _rows(axes, [name for name, _ in rows])
    plain_numbers(axes, "x")
    return finished(axes, title, label, lines="x")


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def byte_energies(calibration: Calibration, *, axes: Axes | None = None) -> Axes:
    """Draw pJ of a byte from each level, on its whole way to the registers.

    Parts are the prices of the levels that it passes; a whisker is the 95 % interval of the part
    that is the level's own. The instruction itself is left out.
    """
    found = dict(calibration.coefficients)
    axes = axes or own_axes()
    line = 1 / LINE_BYTES
    l1 = ("L1", "l1_wavefront_pj", line, SKY)
    l2 = ("L2 to L1", "l2_byte_pj", 1.0, BLUE)
    levels: tuple[tuple[str, tuple[tuple[str, str, float, str], ...]], ...] = (
        ("shared memory", (
            ("shared memory, cycle", "shared_wavefront_pj", line, GREEN),
            ("shared memory, byte", "shared_byte_pj", 1.0, PURPLE),
        )),
        ("L1", (l1,)),
        ("L2", (l1, l2)),
        ("memory, read", (l1, l2, ("memory, read", "dram_read_byte_pj", 1.0, ORANGE))),
        ("memory, write", (l1, l2, ("memory, write", "dram_write_byte_pj", 1.0, VERMILION))),
    )  # fmt: skip
    known = [(name, parts) for name, parts in levels if all(key in found for _, key, _, _ in parts)]
    named: set[str] = set()
    most = 0.0
    for place, (_, parts) in enumerate(known):
        begin = 0.0
        for name, key, by, colour in parts:
            value = found[key].value * by
            label = "" if name in named else name
            axes.barh(place, value, left=begin, color=colour, label=label)
            named.add(name)
            begin += value
        _, key, by, _ = parts[-1]
        own = found[key]
        axes.errorbar(
            begin, place, xerr=[[(own.value - own.low) * by], [(own.high - own.value) * by]],
            color=BLACK, elinewidth=1, capsize=2,
        )  # fmt: skip
        _value_at(axes, begin, begin + (own.high - own.value) * by, place)
        most = max(most, begin)
    axes.set_xlim(0, 1.2 * most)
    _rows(axes, [name for name, _ in known])
    title = "bytes, on their way to registers"
    return finished(axes, title, "energy of a byte in pJ", lines="x", legend=2)


def energy_figure(calibration: Calibration, capability: int, title: str) -> Figure:
    """Return the prices of instructions, of flops and of bytes of each level.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    figure = new_figure(13.0, 6.2)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1))
    instruction_energies(calibration, axes=figure.add_subplot(grid[:, 0]))
    flop_energies(calibration, capability, axes=figure.add_subplot(grid[0, 1]))
    byte_energies(calibration, axes=figure.add_subplot(grid[1, 1]))
    figure.suptitle(title)
    return figure


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
    axes = axes or own_axes()
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
        pattern: a name of :data:`eatss.measurement.characterize.access_patterns.PATTERNS`.
        axes: to draw into.
    """
    axes = axes or own_axes()
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
    axes = axes or own_axes()
    again = bool(axes.lines)
    predicted, measured = zip(*pairs, strict=True)
    missed = float(np.median([abs(math.log(p / m)) for p, m in pairs]))
    name = f"{label or 'predicted'}, median factor {math.exp(missed):.3f}"
    colour = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)[len(axes.collections) % 6]
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
