"""What ``eatss compare`` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.measurement.measurement import Comparison, ComparisonRow, Measurement
from eatss.measurement.requirement import JudgedComparison, Verdict
from eatss.report.measurement import (
    comparison_csv,
    counters_table,
    shared_notes,
    status_text,
    subject,
)
from eatss.report.render import NONE, figure, ratio_text, render, scaled, spread

_LOWER: dict[str, Callable[[Measurement], float | None]] = {
    "ms": lambda found: found.time_s,
    "J": lambda found: found.energy_j,
    "W": lambda found: found.power_w,
}
_HIGHER: dict[str, Callable[[Measurement], float | None]] = {
    "GFLOP/s": lambda found: found.gflops,
    "GFLOP/J": lambda found: found.gflops_per_joule,
}


_SHORT = {"ok": "ok", "unstable": "unstable", "rejected by the model": "rejected"}


def render_comparison(comparison: Comparison, output: str, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a comparison as ``table``, ``json`` or ``csv``."""
    if output == "json":
        entries = {field.name: getattr(comparison, field.name) for field in fields(comparison)}
        judged = JudgedComparison(**entries, requirements=tuple(verdicts))
        return json_text(judged if verdicts else comparison)
    if output == "csv":
        return comparison_csv(comparison)
    return comparison_table(comparison, verdicts)


def comparison_table(comparison: Comparison, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a comparison for people: figures, then ratios, then notes."""
    return render(*comparison_parts(comparison, verdicts))


def comparison_parts(
    comparison: Comparison, verdicts: Sequence[Verdict] = ()
) -> list[RenderableType]:
    """Return what is told of a comparison, part by part."""
    measurements = [row.measurement for row in comparison.rows]
    head = Text(comparison.program, style="bold")
    head.append(f"\n{subject(_fullest(measurements))}", style="not bold")
    parts: list[RenderableType] = [
        head,
        "",
        _figures(measurements),
        "",
        _ratios(comparison),
        "",
        _notes(measurements),
    ]
    if comparison.notes:
        parts += ["", *(Text(f"not alike: {note}", style="yellow") for note in comparison.notes)]
    if any(found.counters is not None for found in measurements):
        parts += ["", counters_table(measurements)]
    met = _met(verdicts)
    parts += ["", *met] if met else []
    return parts


def _fullest(measurements: Sequence[Measurement]) -> Measurement:
    return max(measurements, key=lambda found: (found.device is not None, bool(found.sizes)))


def _figures(measurements: Sequence[Measurement]) -> Table:
    """Return time, energy, power and rates, a row a variant; the best of each is highlighted."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("variant", header_style="dim", overflow="fold", min_width=9)
    table.add_column("", no_wrap=True)
    for name in ("ms", "±", "J", "±", "W", "GFLOP/s", "GFLOP/J", "windows"):
        justify: JustifyMethod = "left" if name == "±" else "right"
        table.add_column(name, justify=justify, header_style="dim", no_wrap=True)
    for found, best in zip(measurements, _best(measurements), strict=True):
        table.add_row(
            found.variant,
            Text(_SHORT.get(found.status, "failed"), style=status_text(found).style),
            _cell("ms", scaled(found.time_s, 1e3), best),
            Text(spread(found.time_estimate), style="dim"),
            _cell("J", figure(found.energy_j), best),
            Text(spread(found.energy_estimate), style="dim"),
            _cell("W", figure(found.power_w, 3), best),
            _cell("GFLOP/s", figure(found.gflops), best),
            _cell("GFLOP/J", figure(found.gflops_per_joule, 3), best),
            str(len(found.windows)) if found.windows else NONE,
        )
    return table


def _cell(name: str, text: str, best: frozenset[str]) -> Text:
    return Text(text, style="bold green" if name in best else "")


def _notes(measurements: Sequence[Measurement]) -> Table:
    """Return the notes; one that is the same for several variants stands there once."""
    measured = {found.variant for found in measurements if found.windows}

    def lead(variants: tuple[str, ...]) -> str:
        everyone = len(measured) > 1 and measured <= set(variants)
        return "all measured" if everyone else "; ".join(variants)

    lines = [(lead(variants), word, text) for variants, word, text in shared_notes(measurements)]
    lines.sort(key=lambda line: (line[1] != "why", line[0] != "all measured"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", overflow="fold", max_width=24)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for who, word, text in lines:
        grid.add_row("" if who == last else Text(who), word, Text(text))
        last = who
    return grid


def _best(measurements: Sequence[Measurement]) -> list[frozenset[str]]:
    """Return the columns in which each variant is the best of those that are right."""
    best: list[set[str]] = [set() for _ in measurements]
    usable = [k for k, found in enumerate(measurements) if found.ok]
    for columns, choose in ((_LOWER, min), (_HIGHER, max)):
        for name, value_of in columns.items():
            values = {k: value for k in usable if (value := value_of(measurements[k])) is not None}
            if len(values) > 1:
                winner = choose(values, key=values.__getitem__)
                best[winner].add(name)
    return [frozenset(names) for names in best]


def _ratios(comparison: Comparison) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(f"against {comparison.baseline}", header_style="dim", overflow="fold")
    for name in ("speed-up", "energy ratio", "PPW ratio"):
        table.add_column(name, header_style="dim", no_wrap=True)
    for row in comparison.rows:
        found = row.measurement
        if found.variant == comparison.baseline:
            continue
        if not any((row.speedup, row.energy_ratio, row.ppw_ratio)):
            table.add_row(found.variant, status_text(found))
            continue
        table.add_row(found.variant, *_ratio_cells(row))
    return table


def _ratio_cells(row: ComparisonRow) -> list[Text]:
    cells = []
    for ratio, higher_is_better in (
        (row.speedup, True),
        (row.energy_ratio, False),
        (row.ppw_ratio, True),
    ):
        style = ""
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            better, worse = ratio.low > 1, ratio.high < 1
            if not higher_is_better:
                better, worse = worse, better
            style = "green" if better else "red" if worse else ""
        cells.append(Text(ratio_text(ratio), style=style))
    return cells


def _met(verdicts: Sequence[Verdict]) -> list[RenderableType]:
    """Return the requirements that are met; those that are not are errors and go to stderr."""
    met = [verdict for verdict in verdicts if verdict.met]
    return [
        Text.assemble(("met  ", "green"), f"{verdict.requirement}: {verdict.message}")
        for verdict in met
    ]
