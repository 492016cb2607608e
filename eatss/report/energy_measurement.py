"""What ``energy_meter`` and ``eatss meter`` found, as tables: sources, windows, what is missing.

Power over time is drawn, too: of a block of code, with its named windows, or of a program.
"""

from __future__ import annotations

import csv
import math
import shlex
from collections.abc import Iterator, Sequence
from io import StringIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from eatss.codec import json_text
from eatss.foreign import CardEnergy, Drawn, ProgramEnergy
from eatss.measurement.energy.measurement import EnergyMeasurement, WindowEnergy
from eatss.measurement.meters.meter import PowerTrace
from eatss.report.plot_file import (
    GREY,
    LINES,
    check_matplotlib,
    check_plot_file,
    new_figure,
    save_figure,
)
from eatss.report.render import MODULE_NOTE, NONE, figure, indented_table, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = ("times", "s", "J", "± J", "W")


def energy_parts(found: EnergyMeasurement) -> list[RenderableType]:
    """Return what is told of a block, part by part."""
    table = indented_table("", *_NUMBERS, "meter", numbers=_NUMBERS)
    for one in found.sources:
        table.add_row(
            _named_source(one.name, "" if one.device is None else one.device.name),
            "1",
            figure(found.time_s),
            figure(one.energy_j),
            figure(one.uncertainty_j, 2),
            figure(one.power_w),
            one.meter or NONE,
        )
    for window in found.windows:
        for name, energy_j, uncertainty_j in _drawn(window):
            table.add_row(
                name,
                str(window.count),
                figure(window.time_s),
                figure(energy_j),
                figure(uncertainty_j, 2),
                figure(None if energy_j is None else energy_j / window.time_s),
                "",
            )
    reasons = list(found.contradictions)
    modules = [one.device.power_scope == "module" for one in found.cards if one.device is not None]
    reasons += [MODULE_NOTE] if any(modules) else []
    reasons += [one.reason for one in found.missing]
    reasons += [f"window {w.name}: {one.reason}" for w in found.windows for one in w.missing]
    notes = [Text(f"  {reason}") for reason in dict.fromkeys(reasons)]
    if found.error:
        notes.append(Text(f"  ended by {found.error}", style="red"))
    return [Text(str(found), style="bold"), table, *notes]


def _drawn(window: WindowEnergy) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield a line for each kind of source in a window: all cards, all CPUs, each other meter."""
    name = f"window {window.name}"
    kinds = {share.kind for share in window.sources}
    if "card" in kinds or not kinds:
        yield name, window.energy_j, window.uncertainty_j
    if "cpu" in kinds:
        yield f"{name}, CPU", window.cpu_energy_j, window.cpu_uncertainty_j
    for share in window.sources:
        if share.kind == "own":
            yield f"{name}, {share.source}", share.energy_j, share.uncertainty_j


def _named_source(source: str, card: str) -> str:
    return f"{source}, {card}" if card else source


_ENOUGH_S = 2.0
"""Of recorded time: twenty updates of a counter that moves every 100 ms."""

_VAGUE = 0.05


def render_program_energy(found: ProgramEnergy, output: str) -> str:
    """Return it as ``table`` or ``json``."""
    if output == "json":
        return json_text(found)
    runs = f"{found.runs} runs, {found.time_s / found.runs:.4g} s each" if found.runs > 1 else ""
    head = Text(shlex.join(found.command), style="bold")
    head.append(f"  {found.time_s:.4g} s", style="not bold")
    head.append(f" ({runs})" if runs else "")
    head.append(f"  exit code {found.exit_code}" if found.exit_code else "", style="red")
    table = indented_table("", "energy", "mean", "peak", "idle before", "updates")
    named = _named(found)
    for name, one in named:
        table.add_row(
            name,
            _energy(one, found.runs),
            _watts(one.power_w),
            _watts(one.peak_power_w),
            _watts(one.idle_power_w),
            str(one.updates),
        )
    if len(named) > 1:
        table.add_row("sum", *_sum([one for _, one in named], found), "", "", "")
    notes = dict.fromkeys(
        f"{name}: {note}" if len(named) > 1 else note for name, one in named for note in _notes(one)
    )
    longer = _longer(found) if any(_vague(one) for _, one in named) else []
    return render(head, table, *(Text(f"  {note}") for note in (*notes, *longer)))


def _named(found: ProgramEnergy) -> list[tuple[str, Drawn]]:
    """Return cards and CPU packages with their names."""
    several = len(found.cards) > 1
    return [
        *((_name(card, several=several), card) for card in found.cards),
        *((cpu.name, cpu) for cpu in found.cpus),
    ]


def _sum(parts: Sequence[Drawn], found: ProgramEnergy) -> tuple[str, str]:
    """Return the energy and the mean power of all together; unknown where one of them is."""
    energies = [one.energy_j for one in parts if one.energy_j is not None]
    if len(energies) < len(parts):
        return "unknown", "unknown"
    energy_j, off_j = sum(energies), sum(one.uncertainty_j or 0.0 for one in parts)
    return _joules(energy_j, off_j, found.runs), _watts(energy_j / found.time_s)


def power_csv(found: ProgramEnergy) -> str:
    """Return power over time as CSV: card or CPU, seconds since the program began, watts."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["device", "time_s", "power_w"])
    named = [(card.device.uuid or card.device.name, card.trace) for card in found.cards]
    for name, trace in (*named, *((cpu.name, cpu.trace) for cpu in found.cpus)):
        writer.writerows([name, f"{s.time_s:.4f}", f"{s.power_w:.3f}"] for s in trace)
    return text.getvalue()


def _name(card: CardEnergy, *, several: bool) -> str:
    """Return the name of a card; of several, with the start of its UUID."""
    uuid = card.device.uuid or ""
    return f"{card.device.name} {uuid[:12]}".strip() if several else card.device.name


def _energy(card: Drawn, runs: int) -> str:
    if card.energy_j is None or card.uncertainty_j is None:
        return "unknown"
    return _joules(card.energy_j, card.uncertainty_j, runs)


def _joules(energy_j: float, off_j: float, runs: int) -> str:
    total = f"{energy_j:.4g} ± {off_j:.2g} J"
    return f"{total}, {energy_j / runs:.4g} J a run" if runs > 1 else total


def _watts(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g} W"


def _vague(card: Drawn) -> bool:
    """Return whether a longer run would tell more: a sensor answers, and tells little."""
    if card.energy_j is None or card.uncertainty_j is None:
        return card.peak_power_w is not None
    return card.uncertainty_j > _VAGUE * card.energy_j


def _notes(card: Drawn) -> list[str]:
    notes = [card.contradiction] if card.contradiction else []
    if isinstance(card, CardEnergy) and card.device.power_scope == "module":
        notes.append(MODULE_NOTE)
    return notes + _of_energy(card)


def _of_energy(card: Drawn) -> list[str]:
    if card.energy_j is None or card.uncertainty_j is None:
        reasons = [one.reason for one in card.missing if one.what.startswith("energy")]
        return list(dict.fromkeys(f"no energy: {reason}" for reason in reasons))
    if not _vague(card):
        return []
    share = card.uncertainty_j / card.energy_j
    return [f"energy is known to ± {share:.0%} only: {card.meter} moved {card.updates} times"]


def _longer(found: ProgramEnergy) -> list[str]:
    """Return what helps against too short a run, unless the program failed."""
    if found.exit_code:
        return []
    each_s = max(found.time_s / found.runs, 1e-3)
    repeat = max(2 * found.runs, math.ceil(_ENOUGH_S / each_s))
    return [f"run it for longer, as with --repeat {repeat}"]


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
