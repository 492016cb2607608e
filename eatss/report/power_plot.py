"""Power over time as a plot: of a block of code, with its named windows, or of a program."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from eatss.foreign.meter import ProgramEnergy
from eatss.measurement.energy.measurement import EnergyMeasurement
from eatss.measurement.meters.meter import PowerTrace
from eatss.report.plot_file import (
    GREY,
    LINES,
    check_matplotlib,
    check_plot_file,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRIP, _ROOM = 0.04, 0.03
"""Height of the strip of a window's name, and room above the strips: shares of the axes."""

_MOST = 0.4
"""Share of the axes that all strips have at most; of many names each is thinner."""

Strip = tuple[str, tuple[tuple[float, float], ...]]
"""A name, and when its windows began and ended."""


def draw_power(found: EnergyMeasurement, ax: Axes | None = None) -> Axes:
    """Draw the power of every source over time, and below it a strip for each name of windows.

    Args:
        found: of a block.
        ax: Axes to draw in; of a new figure if not given.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed.
    """
    check_matplotlib()
    if ax is None:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - optional

        _, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    strips = [
        (one.name, tuple((run.begin_s, run.begin_s + run.time_s) for run in one.runs))
        for one in found.windows
    ]
    return _draw(ax, found.power_traces(), strips, found.time_s)


def plot_program(found: ProgramEnergy, path: str | PathLike[str]) -> None:
    """Write a plot of the power of cards and CPUs while a program ran.

    Args:
        found: with its traces.
        path: a PNG, SVG or PDF to write.

    Raises:
        InputError: ``EATSS-E052`` matplotlib is not installed, ``EATSS-E053`` the file cannot be
            written.
    """
    file = Path(fspath(path))
    check_plot_file(file)
    figure = new_figure(8, 4)
    _draw(figure.add_subplot(), program_traces(found), [], found.time_s)
    save_figure(figure, file)


def program_traces(found: ProgramEnergy) -> list[PowerTrace]:
    """Return the power over time of every card and CPU package that has one."""
    several = len(found.cards) > 1
    named = [
        (f"{card.device.name} {(card.device.uuid or '')[:12]}" if several else card.device.name,
         card.trace)
        for card in found.cards
    ]  # fmt: skip
    named += [(cpu.name, cpu.trace) for cpu in found.cpus]
    return [PowerTrace.of(name.strip(), trace) for name, trace in named if trace]


def _draw(ax: Axes, traces: Sequence[PowerTrace], strips: Sequence[Strip], end_s: float) -> Axes:
    for number, trace in enumerate(traces):
        colour = LINES[number % len(LINES)]
        ax.step(trace.time_s, trace.power_w, where="pre", color=colour, label=trace.source)
    highest_w = max((float(trace.power_w.max()) for trace in traces), default=0.0)
    if highest_w <= 0:
        highest_w = 1.0
    height = min(_STRIP, _MOST / max(1, len(strips)))
    below = len(strips) * height + (_ROOM if strips else 0.0)
    ax.set_ylim(bottom=-1.1 * highest_w * below / (1 - below), top=1.1 * highest_w)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.1 * highest_w])
    for number, (name, spans) in enumerate(strips):
        low = (len(strips) - 1 - number) * height
        colour = LINES[(len(traces) + number) % len(LINES)]
        for first, (begin_s, until_s) in enumerate(spans):
            ax.axvspan(
                begin_s, until_s, ymin=low, ymax=low + 0.8 * height, color=colour, linewidth=0,
                label=None if first else name,
            )  # fmt: skip
    for moment_s in (0.0, end_s):
        ax.axvline(moment_s, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xlabel("seconds since the begin")
    ax.set_ylabel("power (W)")
    if traces or strips:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax
