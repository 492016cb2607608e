"""What ``eatss results`` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.point import Values
from eatss.report.measurement import measurement_parts
from eatss.report.render import NONE, figure, indented_table, render, scaled, seconds
from eatss.store.conditions import Order, cost, ranked
from eatss.store.nouns import CardSeen, Identity, Row, Sweep
from eatss.store.summary import Best, Summaries, Summary

_KEY = 8
"""Characters of a variant's key that tables show; those that it begins with are enough."""

_BEST = 10
"""Rows that a notebook shows of a sweep."""

_BESIDE = 30
"""Characters of values that stand beside the figures in a line of 80."""


def render_summaries(summaries: Sequence[Summary], output: str) -> str:
    """Return what is in stores as ``table`` or ``json``."""
    if output == "json":
        return json_text(Summaries(stores=tuple(summaries)))
    parts: list[RenderableType] = []
    for summary in summaries:
        parts += [*([""] if parts else []), *_summary(summary)]
    return render(*parts)


def render_rows(sweep: Sweep, output: str, *, by: Order, top: int | None) -> str:
    """Return the rows of a sweep, the best first, as ``table`` or ``json``; at most ``top``.

    In the table each card has a list of its own: they are compared with a correction only.
    """
    if output == "json":
        return json_text(replace(sweep, rows=ranked(sweep.rows, by)[:top]))
    if not sweep.rows:
        return "there is no such row\n"
    head = render(_head(sweep.identity))
    cards = sorted({row.card or "" for row in sweep.rows})
    if len([card for card in cards if card]) < 2:
        return head + _list(sweep.rows, by, top)
    for card in cards:
        own = [row for row in sweep.rows if (row.card or "") == card]
        head += render("", Text(f"on {card}" if card else "on no card", style="bold"))
        head += _list(own, by, top)
    return head + render("", "eatss report sets the cards on one scale")


def _list(all_rows: Sequence[Row], by: Order, top: int | None) -> str:
    rows = ranked(all_rows, by)[:top]
    below = max(len(_values(row.values)) for row in rows) > _BESIDE
    table = _below(rows) if below else render(_table(rows, with_values=True))
    notes = ["none was measured"] if all(math.isinf(cost(row, by)) for row in rows) else []
    if len(rows) < len(all_rows):
        notes.append(f"and {len(all_rows) - len(rows)} more: --top {len(all_rows)}")
    return table + (render(*notes) if notes else "")


def sweep_parts(sweep: Sweep) -> list[RenderableType]:
    """Return what is told of a sweep in short: what it is of, and its best variants."""
    rows = ranked(sweep.latest, "energy")
    more = len(rows) - _BEST
    several = len({row.card for row in rows if row.card}) > 1
    return [
        _head(sweep.identity),
        _table(rows[:_BEST], with_values=True),
        *([f"  and {more} more"] if more > 0 else []),
        *(["  eatss report sets the cards on one scale"] if several else []),
    ]


def render_variant(sweep: Sweep, rows: Sequence[Row], output: str) -> str:
    """Return everything of the rows of one variant, as ``table`` or ``json``."""
    if output == "json":
        return json_text(replace(sweep, rows=tuple(rows)))
    parts: list[RenderableType] = []
    for row in rows:
        parts += [*([""] if parts else []), _everything(row)]
        if row.measurement is not None:
            parts += ["", *measurement_parts(row.measurement)]
    return render(*parts)


def _table(rows: Sequence[Row], *, with_values: bool) -> Table:
    """Return a line a row, whatever the width."""
    figures = ("ms", "J", "GFLOP/s", "GFLOP/J")
    table = indented_table("variant", *figures, "", numbers=figures)
    for column in table.columns:
        column.no_wrap = True
    if with_values:
        table.add_column("values", header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(
            row.variant[:_KEY],
            scaled(row.time_s, 1e3),
            figure(row.energy_j),
            figure(row.gflops),
            figure(row.gflops_per_joule, 3),
            _marks(row),
            *([Text(_values(row.values))] if with_values else []),
        )
    return table


def _below(rows: Sequence[Row]) -> str:
    """Return a line of figures a row, and under it the values, of which there are many."""
    head, *lines = render(_table(rows, with_values=False)).splitlines(keepends=True)
    texts = [_values(row.values) for row in rows]
    values = [render(Padding(Text(text), (0, 0, 0, 6))) if text else "" for text in texts]
    return head + "".join(line + below for line, below in zip(lines, values, strict=True))


def _summary(summary: Summary) -> list[RenderableType]:
    grid = _grid()
    for name, text in _of_what(summary.identity):
        grid.add_row(name, text)
    for card in summary.cards:
        grid.add_row("on", _card(card))
    grid.add_row("rows", _counts(summary))
    several = len(summary.cards) > 1
    grid.add_row("fastest", _best(summary.best_time, several=several))
    grid.add_row("least energy", _best(summary.best_energy, several=several))
    grid.add_row("spent", _spent(summary))
    if summary.first:
        last = "" if summary.last == summary.first else f" to {_moment(summary.last)}"
        grid.add_row("measured", f"{_moment(summary.first)}{last} UTC")
    return [Text(summary.path, style="bold"), grid]


def _head(identity: Identity) -> Text:
    head = Text(identity.program, style="bold")
    head.append(f"  {identity.target}, {identity.dtype or 'no type'}", style="not bold")
    return head.append(f", {identity.card}", style="not bold")


def _of_what(identity: Identity) -> list[tuple[str, str]]:
    program = identity.program + (f", {identity.dtype}" if identity.dtype else "")
    source = f", source {identity.source_hash[:12]}" if identity.source_hash else ""
    sizes = " ".join(f"{name}={value}" for name, value in identity.sizes)
    card = identity.card + (f", driver {identity.driver}" if identity.driver else "")
    made_by = ", ".join(filter(None, (identity.generator, identity.compiler)))
    found = [
        ("program", program + source),
        ("sizes", sizes),
        ("defines", " ".join(identity.defines)),
        ("code", f"{identity.target}: {made_by}"),
        ("card", card),
    ]
    return [(name, text) for name, text in found if text]


def _card(card: CardSeen) -> str:
    limit = "" if card.power_limit_w is None else f", limit {figure(card.power_limit_w, 3)} W"
    idle = "" if card.idle_power_w is None else f", idle {figure(card.idle_power_w, 3)} W"
    return f"{card.uuid} of {card.host}{limit}{idle}"


def _counts(summary: Summary) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses)
    again = f" of {summary.variants} variants" if summary.variants != summary.rows else ""
    return f"{summary.rows}{again}" + (f": {counts}" if counts else "")


def _best(best: Best | None, *, several: bool) -> str:
    if best is None:
        return NONE
    figures = f"{scaled(best.time_s, 1e3)} ms, {figure(best.energy_j)} J"
    what = _values(best.values) or best.decided
    where = f" as measured on {best.card}" if several and best.card else ""
    return f"{best.variant[:_KEY]}: {figures}{where}; {what}"


def _spent(summary: Summary) -> str:
    drawn = f", {figure(summary.card_j / 1e3)} kJ" if summary.card_j else ""
    return f"{seconds(summary.card_s)} of cards{drawn}, {seconds(summary.made_s)} of processors"


def _everything(row: Row) -> Table:
    grid = _grid()
    time_error, energy_error = map(_percent, (row.time_error, row.energy_error))
    said = [
        ("variant", row.variant),
        ("values", _values(row.values)),
        ("status", row.status + (f": {row.reason}" if row.reason else "")),
        ("decided", row.decided),
        ("role", row.role),
        ("stage", row.stage),
        ("card", row.card or ""),
        ("sizes", " ".join(f"{name}={value}" for name, value in row.sizes)),
        ("time", f"{scaled(row.time_s, 1e3)} ms{time_error}" if row.time_s is not None else ""),
        ("energy", f"{figure(row.energy_j)} J{energy_error}" if row.energy_j is not None else ""),
        ("power", f"{figure(row.power_w, 3)} W" if row.power_w is not None else ""),
        ("rates", f"{figure(row.gflops)} GFLOP/s, {figure(row.gflops_per_joule, 3)} GFLOP/J"),
        ("metrics", ", ".join(f"{name} {value:.6g}" for name, value in row.metrics)),
        ("spent", f"{seconds(row.card_s)} of the card, {seconds(row.made_s)} of a processor"),
        ("proposed by", row.strategy),
        ("measured", f"{_moment(row.created)} UTC" if row.created else ""),
    ]
    for name, text in said:
        if text and not (name == "rates" and row.gflops is None):
            grid.add_row(name, Text(text))
    return grid


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _marks(row: Row) -> Text:
    """Return what is to be known of a row at a glance: its failure, role and stage."""
    words = Text()
    if row.status != "ok":
        words.append(row.status, style="yellow" if row.measured else "red")
    for word in (row.role, row.stage if row.stage != "first" else ""):
        if word:
            words.append(", " if words else "").append(word, style="bold")
    return words


def _values(values: Values) -> str:
    """Return a point; nothing of a choice that is known by its role alone."""
    return " ".join(f"{name}={value}" for name, value in values if name != "role")


def _percent(error: float | None) -> str:
    return "" if error is None else f" ±{100 * error:.2g}%"


def _moment(created: str) -> str:
    return created[:16].replace("T", " ")
