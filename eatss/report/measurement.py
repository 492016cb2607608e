"""Measurements as CSV, and what pages of them need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eatss.base.text import csv_text
from eatss.measurement.energy_meter import CardEnergy
from eatss.measurement.foreign import ProgramEnergy
from eatss.measurement.measurement import (
    Cell,
    Comparison,
    Measurement,
    Measurements,
    comparison_rows,
    measurement_rows,
)
from eatss.report.pages import printed
from eatss.report.render import grouped_by

CONTRADICTION = 10
"""Sensors that are off by the 5 % of their specification differ by less, in per cent."""


def render_measurements(measurements: Sequence[Measurement], output: str) -> str:
    """Return measurements as ``table``, ``json`` or ``csv``."""
    if output == "csv":
        return _table([row for one in measurements for row in measurement_rows(one)])
    return printed(Measurements(measurements=tuple(measurements)), output)


def render_comparison(comparison: Comparison, output: str) -> str:
    """Return a comparison as ``table``, ``json`` or ``csv``."""
    if output == "csv":
        return _table(comparison_rows(comparison))
    return printed(comparison, output)


def _table(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Return rows of the same columns as CSV, nothing where there are none."""
    return csv_text(rows[0], rows) if rows else ""


def other_meters(measurement: Measurement) -> Iterator[str]:
    """Yield how far other meters' power is from that of the first one, over the same windows."""
    pairs = grouped_by(
        (reading.meter, (reading.power_w, window.readings[0].power_w))
        for window in measurement.windows
        for reading in window.readings[1:]
    )
    for meter, values in pairs.items():
        other, first = map(sum, zip(*values, strict=True))
        if first > 0:
            percent = 100 * (other / first - 1)
            wrong = ": they contradict each other" if abs(percent) > CONTRADICTION else ""
            yield f"{meter}: {abs(percent):.1f} % {'more' if percent >= 0 else 'less'}{wrong}"


def sources_of(found: ProgramEnergy) -> dict[str, CardEnergy]:
    """Return cards by name; of several with the start of UUIDs."""
    several = len(found.cards) > 1
    sources = {}
    for card in found.cards:
        uuid = card.device.uuid if card.device and several else None
        name = card.device.name if card.device else card.name
        sources[f"{name} {(uuid or '')[:12]}".strip()] = card
    return sources


def power_csv(found: ProgramEnergy) -> str:
    """Return power over time as CSV: card, seconds since the program began, watts."""
    rows = [
        {"device": name, "time_s": f"{one.time_s:.4f}", "power_w": f"{one.power_w:.3f}"}
        for source in found.cards
        for name in [(source.device and source.device.uuid) or source.name]
        for one in source.trace
    ]
    return _table(rows) or "device,time_s,power_w\n"
