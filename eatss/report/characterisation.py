"""What ``eatss characterize`` prints: tables of a card, or its calibration as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from eatss.characterize.fit import EnergyFit
from eatss.characterize.result import Record, Result
from eatss.gpu.calibration import Calibration
from eatss.gpu.document import calibration_to_document
from eatss.report.card_tables import (
    arithmetic_table,
    coefficients_table,
    fit_table,
    latency_table,
    memory_table,
)
from eatss.report.figures import figure
from eatss.report.render import indented_table, render


def render_characterisation(
    record: Record, fit: EnergyFit, calibration: Calibration, output: str
) -> str:
    """Return the tables of a record and of the calibration it is part of, or the latter as JSON."""
    if output == "json":
        return json.dumps(calibration_to_document(calibration), indent=2) + "\n"
    parts: list[RenderableType] = [_head(record)]
    clock_mhz = calibration.value("clock_mhz") or fit.top_clock_mhz
    for table in (
        arithmetic_table(record, fit),
        memory_table(record, fit),
        latency_table(record, clock_mhz),
        coefficients_table(calibration),
    ):
        parts += ["", table]
    return render(*parts, "", *fit_table(fit))


def render_results(record: Record, results: Sequence[Result]) -> str:
    """Return a line for each result, for records that are no whole characterisation."""
    numbers = ("µs", "W", "GB/s", "GFLOP/s", "MHz", "cycles")
    table = indented_table("benchmark", *numbers, numbers=numbers)
    for one in results:
        table.add_row(
            one.name,
            figure(one.time_s * 1e6),
            figure(one.power_w),
            figure(one.useful_bytes / one.time_s / 1e9 if one.useful_bytes else None),
            figure(one.flops / one.time_s / 1e9 if one.flops else None),
            figure(one.sm_clock_mhz),
            figure(one.cycles),
        )
    return render(_head(record), "", table)


def _head(record: Record) -> Text:
    subject = record.subject
    head = Text(subject.name, style="bold cyan")
    software = f"driver {subject.driver}, {subject.toolkit}, {subject.created[:10]}"
    head.append(f"  {software}; energy by {subject.meter}", style="default")
    return head
