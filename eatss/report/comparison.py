"""What ``eatss compare`` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.measurement.measurement import Comparison, Measurement, comparison_rows
from eatss.measurement.requirement import JudgedComparison, Verdict
from eatss.report.measurement import (
    FIGURES,
    counters_table,
    csv_text,
    figures,
    shared_notes,
    status_text,
    subject,
)
from eatss.report.render import RIGHT, apart, headed, listing, printed, ratio_text

_BEST: dict[str, tuple[Callable[[Measurement], float | None], bool]] = {
    "!>ms": (lambda found: found.time_s, False),
    "!>J": (lambda found: found.energy_j, False),
    "!>W": (lambda found: found.power_w, False),
    "!>GFLOP/s": (lambda found: found.gflops, True),
    "!>GFLOP/J": (lambda found: found.gflops_per_joule, True),
}
"""Figures of which the best is highlighted, and whether that is the highest."""

_SHORT = {"ok": "ok", "unstable": "unstable", "rejected by the model": "rejected"}


def render_comparison(comparison: Comparison, output: str, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a comparison as ``table``, ``json`` or ``csv``."""
    if output == "csv":
        return csv_text(comparison_rows(comparison))
    if verdicts:
        entries = {field.name: getattr(comparison, field.name) for field in fields(comparison)}
        comparison = JudgedComparison(**entries, requirements=tuple(verdicts))
    return printed(comparison, output)


def comparison_parts(comparison: Comparison) -> list[RenderableType]:
    """Return what is told of a comparison: figures, then ratios, then notes.

    Requirements that are not met are errors and go to stderr.
    """
    measurements = [row.measurement for row in comparison.rows]
    fullest = max(measurements, key=lambda found: (found.device is not None, bool(found.sizes)))
    verdicts = comparison.requirements if isinstance(comparison, JudgedComparison) else ()
    return apart(
        [headed(comparison.program, f"\n{subject(fullest)}")],
        [_figures(measurements)],
        [_ratios(comparison)],
        [_notes(measurements)],
        [Text(f"not alike: {note}", style="yellow") for note in comparison.notes],
        [counters_table(measurements)]
        if any(found.counters is not None for found in measurements)
        else [],
        [
            Text.assemble(("met  ", "green"), f"{one.requirement}: {one.message}")
            for one in verdicts
            if one.met
        ],
    )


def _figures(measurements: Sequence[Measurement]) -> Table:
    """Return time, energy, power and rates, a row a variant; the best of each is highlighted."""
    best = set()
    for title, (value_of, high) in _BEST.items():
        values = {id(one): v for one in measurements if one.ok and (v := value_of(one)) is not None}
        if len(values) > 1:
            best.add((title, (max if high else min)(values, key=values.__getitem__)))
    rows = []
    for found in measurements:
        cells = [Text(_SHORT.get(found.status, "failed"), style=status_text(found).style)]
        for title, text in figures(found):
            if (title, id(found)) in best:
                text.style = "bold green"
            cells.append(text)
        rows.append((found.variant, *cells))
    table = listing(("variant", "!", *FIGURES), rows, (0, 1, 0, 0))
    table.columns[0].min_width = 9
    return table


def _notes(measurements: Sequence[Measurement]) -> Table:
    """Return the notes; one that is the same for several variants stands there once."""
    measured = {found.variant for found in measurements if found.windows}

    def lead(variants: tuple[str, ...]) -> str:
        everyone = len(measured) > 1 and measured <= set(variants)
        return "all measured" if everyone else "; ".join(variants)

    lines = [(lead(variants), word, text) for variants, word, text in shared_notes(measurements)]
    lines.sort(key=lambda line: (line[1] != "why", line[0] != "all measured"))
    grid = Table.grid(padding=RIGHT)
    grid.add_column(style="dim", overflow="fold", max_width=24)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for who, word, text in lines:
        grid.add_row("" if who == last else Text(who), word, Text(text))
        last = who
    return grid


def _ratios(comparison: Comparison) -> Table:
    titles = (f"against {comparison.baseline}", "!speed-up", "!energy ratio", "!PPW ratio")
    table = listing(titles, (), RIGHT)
    for row in comparison.rows:
        found = row.measurement
        if found.variant == comparison.baseline:
            continue
        ratios = (row.speedup, row.energy_ratio, row.ppw_ratio)
        cells = []
        for ratio, good in zip(ratios, ("green", "red", "green"), strict=True):
            style = ""
            if ratio is not None and ratio.low is not None and ratio.high is not None:
                bad = "red" if good == "green" else "green"
                style = good if ratio.low > 1 else bad if ratio.high < 1 else ""
            cells.append(Text(ratio_text(ratio), style=style))
        table.add_row(found.variant, *(cells if any(ratios) else [status_text(found)]))
    return table
