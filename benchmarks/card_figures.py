"""Figures of what an access to memory costs, and of access patterns over sizes of blocks.

Curves of memory are those of MIPP, Figs. 6 to 8; curves over sizes of blocks those of Allen and Ge,
Figs. 4 to 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from eatss.measurement.characterize.benchmark import Group, Record, Result
from eatss.measurement.characterize.memory import PATTERNS
from eatss.report.plots import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    finished,
    new_axes,
    new_figure,
    panels,
    plain_numbers,
)
from eatss.report.render import figure as shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Value: TypeAlias = Callable[[Result], float | None]

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
        plain_numbers(axes.xaxis)
    axes.set_yscale("log")
    drawn = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata())]
    axes.set_ylim(0.8 * min(drawn), 1.25 * max(drawn))
    plain_numbers(axes.yaxis, (1.0, 2.0, 5.0))
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
    found = [
        (at, one) for one in results if (at := dict(one.parameters).get(parameter)) is not None
    ]
    return sorted(found, key=lambda pair: pair[0])


def _gb_s(one: Result) -> float:
    return one.useful_bytes / one.time_s / 1e9


def memory_figure(record: Record, title: str) -> Figure:
    """Return the curves of memory: coalescing, size of an access, bank conflicts, stride.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    figure = new_figure(13.0, 9.6)
    for axes, group in zip(panels(figure, 2, 2), MEMORY_CURVES, strict=True):
        memory_curve(record.of(group), group, axes=axes)
    figure.suptitle(title)
    return figure


def block_size(results: Sequence[Result], pattern: str, *, axes: Axes | None = None) -> Axes:
    """Draw bandwidth and power over the threads of a block, with the occupancy beside them.

    [Allen and Ge, Figs. 4 to 9]. Bandwidth and power are shares of the largest of each.

    Args:
        results: of the group ``block size``; those of other patterns are left out.
        pattern: a name of :data:`eatss.measurement.characterize.memory.PATTERNS`.
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
    places = panels(figure, 2, 3)
    columns = (*places[::3], *places[1::3], *places[2::3])
    for axes, pattern in zip(columns, PATTERNS, strict=True):
        block_size(results, pattern, axes=axes)
    figure.suptitle(title)
    return figure


def fitted_figure(pairs: Sequence[tuple[float, float]], label: str, title: str) -> Figure:
    """Return fitted over measured energies in J, both logarithmic, with the diagonal."""
    figure = new_figure(6.0, 6.4)
    axes = figure.subplots()
    fitted, measured = zip(*pairs, strict=True)
    missed = float(np.median([abs(math.log(p / m)) for p, m in pairs]))
    name = f"{label}, median factor {math.exp(missed):.3f}"
    axes.scatter(measured, fitted, s=14, color=BLUE, alpha=0.8, linewidths=0, label=name)
    ends = min(*fitted, *measured), max(*fitted, *measured)
    axes.plot(ends, ends, color=BLACK, linewidth=0.8, label="as measured")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_aspect("equal")
    finished(axes, "", "measured energy in J", "fitted energy in J", legend=1)
    figure.suptitle(title)
    return figure
