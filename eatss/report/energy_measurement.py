"""What ``energy_meter`` and ``eatss meter`` found, as tables: sources, windows, what is missing.

Power over time is drawn, too: of a block of code, with its named windows, or of a program.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from eatss.measurement.energy.measurement import EnergyMeasurement, WindowEnergy
from eatss.measurement.foreign import CardEnergy, Drawn, ProgramEnergy
from eatss.measurement.meters.meter import PowerTrace
from eatss.report.measurement import csv_text
from eatss.report.plot_file import (
    GREY,
    LINES,
    check_matplotlib,
    check_plot_file,
    new_figure,
    save_figure,
)
from eatss.report.render import MODULE_NOTE, NONE, figure, headed, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def energy_parts(found: EnergyMeasurement) -> list[RenderableType]:
    """Return what is told of a block, part by part."""

    def row(
        name: str,
        times: int,
        amounts: tuple[float, float | None, float | None, float | None],
        meter: str = "",
    ) -> tuple[str, ...]:
        time_s, energy_j, uncertainty_j, power_w = amounts
        digits = figure(uncertainty_j, 2)
        return name, str(times), figure(time_s), figure(energy_j), digits, figure(power_w), meter

    rows = []
    for one in found.sources:
        card = "" if one.device is None else f", {one.device.name}"
        amounts = (found.time_s, one.energy_j, one.uncertainty_j, one.power_w)
        rows.append(row(f"{one.name}{card}", 1, amounts, one.meter or NONE))
    for window in found.windows:
        for name, energy_j, uncertainty_j in _drawn(window):
            power_w = None if energy_j is None else energy_j / window.time_s
            amounts = (window.time_s, energy_j, uncertainty_j, power_w)
            rows.append(row(f"window {window.name}{name}", window.count, amounts))
    reasons = list(found.contradictions)
    if any(one.device is not None and one.device.power_scope == "module" for one in found.cards):
        reasons.append(MODULE_NOTE)
    reasons += [one.reason for one in found.missing]
    reasons += [f"window {w.name}: {one.reason}" for w in found.windows for one in w.missing]
    notes = [Text(f"  {reason}") for reason in dict.fromkeys(reasons)]
    if found.error:
        notes.append(Text(f"  ended by {found.error}", style="red"))
    table = listing(("", ">times", ">s", ">J", ">± J", ">W", "meter"), rows)
    return [headed(str(found)), table, *notes]


def _drawn(window: WindowEnergy) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield a line for each kind of source in a window: all cards, all CPUs, each other meter."""
    kinds = {share.kind for share in window.sources}
    if "card" in kinds or not kinds:
        yield "", window.energy_j, window.uncertainty_j
    if "cpu" in kinds:
        yield ", CPU", window.cpu_energy_j, window.cpu_uncertainty_j
    for share in window.sources:
        if share.kind == "own":
            yield f", {share.source}", share.energy_j, share.uncertainty_j


_ENOUGH_S = 2.0
"""Of recorded time: twenty updates of a counter that moves every 100 ms."""

_VAGUE = 0.05


def program_energy_parts(found: ProgramEnergy) -> list[RenderableType]:
    """Return what is told of a program, part by part."""
    runs = f" ({found.runs} runs, {found.time_s / found.runs:.4g} s each)" if found.runs > 1 else ""
    head = headed(shlex.join(found.command), f"  {found.time_s:.4g} s").append(runs)
    head.append(f"  exit code {found.exit_code}" if found.exit_code else "", style="red")
    named = _named(found)
    rows = [
        (
            name,
            _joules(one.energy_j, one.uncertainty_j, found.runs),
            *map(_watts, (one.power_w, one.peak_power_w, one.idle_power_w)),
            str(one.updates),
        )
        for name, one in named
    ]
    if len(named) > 1:
        energies = [one.energy_j for _, one in named if one.energy_j is not None]
        whole_j = sum(energies) if len(energies) == len(named) else None
        off_j = sum(one.uncertainty_j or 0.0 for _, one in named)
        power = _watts(None if whole_j is None else whole_j / found.time_s)
        rows.append(("sum", _joules(whole_j, off_j, found.runs), power, "", "", ""))
    notes = [
        f"{name}: {note}" if len(named) > 1 else note for name, one in named for note in _notes(one)
    ]
    if not found.exit_code and any(_vague(one) for _, one in named):  # else it failed
        each_s = max(found.time_s / found.runs, 1e-3)
        repeat = max(2 * found.runs, math.ceil(_ENOUGH_S / each_s))
        notes.append(f"run it for longer, as with --repeat {repeat}")
    table = listing(("", "energy", "mean", "peak", "idle before", "updates"), rows)
    return [head, table, *(Text(f"  {note}") for note in dict.fromkeys(notes))]


def _named(found: ProgramEnergy) -> list[tuple[str, Drawn]]:
    """Return cards and CPU packages with their names; of several cards with the start of UUIDs."""
    names = [card.device.name for card in found.cards]
    if len(names) > 1:
        names = [f"{one.device.name} {(one.device.uuid or '')[:12]}".strip() for one in found.cards]
    return [*zip(names, found.cards, strict=True), *((cpu.name, cpu) for cpu in found.cpus)]


def power_csv(found: ProgramEnergy) -> str:
    """Return power over time as CSV: card or CPU, seconds since the program began, watts."""
    named = [(card.device.uuid or card.device.name, card.trace) for card in found.cards]
    rows = [
        {"device": name, "time_s": f"{one.time_s:.4f}", "power_w": f"{one.power_w:.3f}"}
        for name, trace in (*named, *((cpu.name, cpu.trace) for cpu in found.cpus))
        for one in trace
    ]
    return csv_text(rows) or "device,time_s,power_w\n"


def _joules(energy_j: float | None, off_j: float | None, runs: int) -> str:
    if energy_j is None or off_j is None:
        return "unknown"
    return f"{energy_j:.4g} ± {off_j:.2g} J" + (
        f", {energy_j / runs:.4g} J a run" if runs > 1 else ""
    )


def _watts(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g} W"


def _vague(card: Drawn) -> bool:
    """Return whether a longer run would tell more: a sensor answers, and tells little."""
    if card.energy_j is None or card.uncertainty_j is None:
        return card.peak_power_w is not None
    return card.uncertainty_j > _VAGUE * card.energy_j


def _notes(card: Drawn) -> Iterator[str]:
    if card.contradiction:
        yield card.contradiction
    if isinstance(card, CardEnergy) and card.device.power_scope == "module":
        yield MODULE_NOTE
    if card.energy_j is None or card.uncertainty_j is None:
        reasons = [one.reason for one in card.missing if one.what.startswith("energy")]
        yield from (f"no energy: {reason}" for reason in reasons)
    elif _vague(card):
        share = card.uncertainty_j / card.energy_j
        yield f"energy is known to ± {share:.0%} only: {card.meter} moved {card.updates} times"


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
    traces = [PowerTrace.of(name, one.trace) for name, one in _named(found) if one.trace]
    _draw(figure.add_subplot(), traces, [], found.time_s)
    save_figure(figure, file)


def _draw(ax: Axes, traces: Sequence[PowerTrace], strips: Sequence[Strip], end_s: float) -> Axes:
    for number, trace in enumerate(traces):
        colour = LINES[number % len(LINES)]
        ax.step(trace.time_s, trace.power_w, where="pre", color=colour, label=trace.source)
    top_w = 1.1 * (max((float(trace.power_w.max()) for trace in traces), default=0.0) or 1.0)
    height = min(_STRIP, _MOST / max(1, len(strips)))
    below = len(strips) * height + (_ROOM if strips else 0.0)
    ax.set_ylim(bottom=-top_w * below / (1 - below), top=top_w)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top_w])
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
    ax.set(xlabel="seconds since the begin", ylabel="power (W)")
    if traces or strips:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax
