"""What ``eatss measure`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.measurement.measurement import Measurement
from eatss.measurement.measurement_json import Measurements
from eatss.report.counters import counters_table
from eatss.report.csv_text import measurements_csv
from eatss.report.figures import NONE, figure, scaled, spread
from eatss.report.measurement_notes import notes, subject
from eatss.report.render import render

_STYLE = {"ok": "green", "unstable": "yellow", "rejected by the model": "yellow"}


def render_measurements(measurements: Sequence[Measurement], output: str) -> str:
    """Return measurements as ``table``, ``json`` or ``csv``."""
    if output == "json":
        return json_text(Measurements(measurements=tuple(measurements)))
    if output == "csv":
        return measurements_csv(measurements)
    parts: list[RenderableType] = []
    for measurement in measurements:
        parts += [*([""] if parts else []), *measurement_parts(measurement)]
    return render(*parts)


def measurement_parts(measurement: Measurement) -> list[RenderableType]:
    """Return a measurement for people: a head, figures, notes and counters."""
    head = Text(measurement.program, style="bold")
    if measurement.variant not in ("", measurement.program):
        head.append(f"  {measurement.variant}", style="not bold")
    head.append("  ")
    head.append_text(status_text(measurement))
    parts: list[RenderableType] = [head, Text(subject(measurement))]
    if measurement.time_s is not None or measurement.energy_j is not None:
        parts.append(_figures(measurement))
    parts.append(_notes(measurement))
    if measurement.counters is not None:
        parts += ["", counters_table([measurement])]
    return parts


def status_text(measurement: Measurement) -> Text:
    """Return the status, coloured."""
    return Text(measurement.status, style=_STYLE.get(measurement.status, "red"))


def _figures(measurement: Measurement) -> Table:
    names = ("ms", "±", "J", "±", "W", "idle W", "GFLOP/s", "GFLOP/J", "windows")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        justify: JustifyMethod = "left" if name == "±" else "right"
        table.add_column(name, justify=justify, header_style="dim", no_wrap=True)
    table.add_row(
        scaled(measurement.time_s, 1e3),
        Text(spread(measurement.time_estimate), style="dim"),
        figure(measurement.energy_j),
        Text(spread(measurement.energy_estimate), style="dim"),
        figure(measurement.power_w, 3),
        figure(measurement.idle_power_w, 3),
        figure(measurement.gflops),
        figure(measurement.gflops_per_joule, 3),
        str(len(measurement.windows)) if measurement.windows else NONE,
    )
    return table


def _notes(measurement: Measurement) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for word, text in notes(measurement):
        failing = word == "why" and not measurement.ok
        grid.add_row(word, Text(text, style="red" if failing else ""))
    return grid
