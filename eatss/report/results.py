"""What ``eatss results`` prints, and how soon strategies come near the best of a sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.codec import json_text
from eatss.base.targets import Order
from eatss.report.measurement import measurement_parts
from eatss.report.render import (
    NONE,
    apart,
    counted,
    equations,
    facts,
    figure,
    headed,
    listing,
    milliseconds,
    off_by,
    render,
    seconds,
)
from eatss.tune.points import Values
from eatss.tune.population import size_words
from eatss.tune.replay import NEAR, SHARES, Mark, Replay
from eatss.tune.rows import CardSeen, Identity, Row, Summaries, Summary, Sweep, cost, ranked

_KEY = 8
"""Characters of a variant's key that tables show; those that it begins with are enough."""

_BEST = 10
"""Rows that a notebook shows of a sweep."""


def summaries_parts(found: Summaries) -> list[RenderableType]:
    """Return what is in stores, one after the other."""
    return apart(*map(_summary, found.stores))


def render_rows(sweep: Sweep, output: str, *, by: Order, top: int | None) -> str:
    """Return the rows of a sweep, the best first, as ``table`` or ``json``; at most ``top``."""
    rows = ranked(sweep.rows, by)[:top]
    if output == "json":
        return json_text(replace(sweep, rows=rows))
    if not rows:
        return "there is no such row\n"
    notes = ["none was measured"] if all(math.isinf(cost(row, by)) for row in rows) else []
    if len(rows) < len(sweep.rows):
        notes.append(f"and {len(sweep.rows) - len(rows)} more: --top {len(sweep.rows)}")
    return render(_head(sweep.identity), _table(rows), *notes)


def sweep_parts(sweep: Sweep) -> list[RenderableType]:
    """Return what is told of a sweep in short: what it is of, and its best variants."""
    rows = ranked(sweep.latest, "energy")
    more = len(rows) - _BEST
    return [
        _head(sweep.identity),
        _table(rows[:_BEST]),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def render_variant(sweep: Sweep, rows: Sequence[Row], output: str) -> str:
    """Return everything of the rows of one variant, as ``table`` or ``json``."""
    if output == "json":
        return json_text(replace(sweep, rows=tuple(rows)))
    parts: list[list[RenderableType]] = []
    for row in rows:
        measured = [] if row.measurement is None else measurement_parts(row.measurement)
        parts += [[_everything(row)], measured]
    return render(*apart(*parts))


_COLUMNS: tuple[tuple[str, Callable[[Row], str | Text]], ...] = (
    ("!variant", lambda row: row.variant[:_KEY]),
    ("!>ms", lambda row: milliseconds(row.time_s)),
    ("!>J", lambda row: figure(row.energy_j)),
    ("!>GFLOP/s", lambda row: figure(row.gflops)),
    ("!>GFLOP/J", lambda row: figure(row.gflops_per_joule, 3)),
)
"""Columns of the table of a sweep: the title, ``>`` for numbers, and what a row has there."""


def _table(rows: Sequence[Row]) -> Table:
    """Return a line a row; cards are named where there are several."""
    columns = [*_COLUMNS, ("", _marks), ("values", lambda row: Text(_values(row.values)))]
    if len({row.card for row in rows if row.card}) > 1:
        columns.insert(1, ("!card", lambda row: row.card or ""))
    titles = [title for title, _ in columns]
    return listing(titles, ([get(row) for _, get in columns] for row in rows))


def _summary(summary: Summary) -> list[RenderableType]:
    identity, several = summary.identity, len(summary.cards) > 1
    dtype = f", {identity.dtype}" if identity.dtype else ""
    source = f", source {identity.source_hash[:12]}" if identity.source_hash else ""
    made_by = ", ".join(filter(None, (identity.generator, identity.compiler)))
    driver = f", driver {identity.driver}" if identity.driver else ""
    again = f" of {summary.variants} variants" if summary.variants != summary.rows else ""
    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses)
    drawn = f", {figure(summary.card_j / 1e3)} kJ" if summary.card_j else ""
    last = "" if summary.last == summary.first else f" to {_moment(summary.last)}"
    told = (
        ("program", f"{identity.program}{dtype}{source}"),
        ("sizes", equations(identity.sizes)),
        ("defines", " ".join(identity.defines)),
        ("code", f"{identity.target}: {made_by}"),
        ("card", f"{identity.card}{driver}"),
        *(("on", _card(card)) for card in summary.cards),
        ("rows", f"{summary.rows}{again}" + (f": {counts}" if counts else "")),
        ("fastest", _best(summary.best_time, several=several)),
        ("least energy", _best(summary.best_energy, several=several)),
        (
            "spent",
            f"{seconds(summary.card_s)} of cards{drawn}, {seconds(summary.made_s)} of processors",
        ),
        ("measured", f"{_moment(summary.first)}{last} UTC" if summary.first else ""),
    )
    return [headed(summary.path), facts(pair for pair in told if pair[1])]


def _head(identity: Identity) -> Text:
    about = f"  {identity.target}, {identity.dtype or 'no type'}, {identity.card}"
    return headed(identity.program, about)


def _card(card: CardSeen) -> str:
    figures = (("limit", card.power_limit_w), ("idle", card.idle_power_w))
    known = "".join(
        f", {what} {figure(watts, 3)} W" for what, watts in figures if watts is not None
    )
    return f"{card.uuid} of {card.host}{known}"


def _best(best: Row | None, *, several: bool) -> str:
    if best is None:
        return NONE
    figures = f"{milliseconds(best.time_s)} ms, {figure(best.energy_j)} J"
    what = _values(best.values) or best.decided
    where = f" as measured on {best.card}" if several and best.card else ""
    return f"{best.variant[:_KEY]}: {figures}{where}; {what}"


def _everything(row: Row) -> Table:
    time_error, energy_error = map(off_by, (row.time_error, row.energy_error))
    rates = f"{figure(row.gflops)} GFLOP/s, {figure(row.gflops_per_joule, 3)} GFLOP/J"
    said = (
        ("variant", row.variant),
        ("values", _values(row.values)),
        ("status", row.status + (f": {row.reason}" if row.reason else "")),
        ("decided", row.decided),
        ("role", row.role),
        ("stage", row.stage),
        ("card", row.card or ""),
        ("sizes", equations(row.sizes)),
        ("time", row.time_s is not None and f"{milliseconds(row.time_s)} ms {time_error}"),
        ("energy", row.energy_j is not None and f"{figure(row.energy_j)} J {energy_error}"),
        ("power", row.power_w is not None and f"{figure(row.power_w, 3)} W"),
        ("rates", row.gflops is not None and rates),
        ("metrics", ", ".join(f"{name} {value:.6g}" for name, value in row.metrics)),
        ("spent", f"{seconds(row.card_s)} of the card, {seconds(row.made_s)} of a processor"),
        ("proposed by", row.strategy),
        ("measured", row.created and f"{_moment(row.created)} UTC"),
    )
    return facts((name, Text(text)) for name, text in said if text)


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
    return equations(pair for pair in values if pair[0] != "role")


def _moment(created: str) -> str:
    return created[:16].replace("T", " ")


_ROLES = {"default": "the default", "paper": "the paper's choice", "ours": "that of eatss"}


def replay_parts(replay: Replay) -> list[RenderableType]:
    """Return what is told of a replay, part by part."""
    failed = f", {replay.failed} of them failed" if replay.failed else ""
    at = f" at {size_words(replay.sizes)}" if replay.sizes else ""
    head: list[RenderableType] = [
        headed(f"{replay.program} ({replay.target}) on {replay.card}"),
        f"{replay.variants} variants{at}{failed}; least {replay.objective}"
        f" {figure(replay.best)} {replay.unit}",
        f"Best found, in % above the least, after a share of {replay.budget}:",
        f"the middle of {counted(len({run.seed for run in replay.runs}), 'seed')}."
        f" near: variants until within {100 * NEAR:g} %.",
    ]
    strategies = listing(
        ("strategy", *(f">{100 * share:g} %" for share in SHARES), ">near", "runs near"),
        (
            (
                one.strategy,
                *map(_regret, one.regrets),
                NONE if one.evaluations_within is None else str(one.evaluations_within),
                f"{one.reached} of {one.runs}",
            )
            for one in replay.summaries
        ),
    )
    working = replay.variants - replay.failed
    marks = (
        (_ROLES.get(mark.role, mark.role), _regret(mark.regret), _rank(mark, working))
        for mark in replay.marks
    )
    listed = [listing(("variant", ">above", ">rank"), marks)] if replay.marks else []
    return apart(head, [strategies], listed)


def _rank(mark: Mark, working: int) -> str:
    if mark.cost is None:
        return "failed"
    return "not in the space" if mark.rank is None else f"{mark.rank} of {working}"


def _regret(regret: float | None) -> str:
    """Return a regret in per cent, ``-`` where nothing was found."""
    return NONE if regret is None else f"{100 * regret:.{int(abs(regret) < 0.995)}f}"
