"""What ``eatss results`` prints, and how soon strategies come near the best of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table as RichTable
from rich.text import Text

from eatss.base.codec import json_text
from eatss.base.shown import energy_text, time_text
from eatss.base.targets import Order
from eatss.base.text import counted, equations
from eatss.report.render import (
    NONE,
    Columns,
    Getter,
    Parts,
    apart,
    facts,
    figure,
    headed,
    listed,
    listing_of,
    render,
    seconds,
)
from eatss.tune.points import Values
from eatss.tune.replay import NEAR, SHARES, Replay
from eatss.tune.rows import CardSeen, Identity, Row, Summaries, Summary, Sweep, cost, ranked

_KEY = 8
"""Characters of a variant's key that tables show; those that it begins with are enough."""

_BEST = 10
"""Rows that a notebook shows of a sweep."""


def summaries_parts(found: Summaries) -> Parts:
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


def sweep_parts(sweep: Sweep) -> Parts:
    """Return what is told of a sweep in short: what it is of, and its best variants."""
    rows = ranked(sweep.latest, "energy")
    more = [f"  and {len(rows) - _BEST} more"] if len(rows) > _BEST else []
    return [_head(sweep.identity), _table(rows[:_BEST]), *more]


def _table(rows: Sequence[Row]) -> RichTable:
    """Return a line a row; cards are named where there are several."""
    cards = len({row.card for row in rows if row.card}) > 1
    columns: Columns = {
        "!variant": lambda row: row.variant[:_KEY],
        **({"!card": "card"} if cards else {}),
        "!ms": "time_s",
        "!J": "energy_j",
        "!GFLOP/s": "gflops",
        "!GFLOP/J": "gflops_per_joule",
        "": _marks,
        "values": lambda row: Text(_values(row.values)),
    }
    return listing_of(rows, columns)


def _summary(summary: Summary) -> Parts:
    identity, several = summary.identity, len(summary.cards) > 1
    source = identity.source_hash and f"source {identity.source_hash[:12]}"
    program = (identity.program, identity.dtype, source)
    driver = identity.driver and f"driver {identity.driver}"
    again = f" of {summary.variants} variants" if summary.variants != summary.rows else ""
    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses)
    drawn = f", {energy_text(summary.card_j)}" if summary.card_j else ""
    last = "" if summary.last == summary.first else f" to {_moment(summary.last)}"
    told = (
        ("program", listed(*program)),
        ("sizes", equations(identity.sizes, " ")),
        ("defines", " ".join(identity.defines)),
        ("code", f"{identity.target}: {listed(identity.generator, identity.compiler)}"),
        ("card", listed(identity.card, driver)),
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
    return [headed(summary.path), facts(told)]


def _head(identity: Identity) -> Text:
    about = f"  {identity.target}, {identity.dtype or 'no type'}, {identity.card}"
    return headed(identity.program, about)


def _card(card: CardSeen) -> str:
    figures = (("limit", card.power_limit_w), ("idle", card.idle_power_w))
    known = (f"{what} {figure(watts)} W" for what, watts in figures if watts is not None)
    return listed(f"{card.uuid} of {card.host}", *known)


def _best(best: Row | None, *, several: bool) -> str:
    if best is None:
        return NONE
    what = _values(best.values) or best.decided
    where = f" as measured on {best.card}" if several and best.card else ""
    amounts = f"{time_text(best.time_s)}, {energy_text(best.energy_j)}"
    return f"{best.variant[:_KEY]}: {amounts}{where}; {what}"


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
    return equations((pair for pair in values if pair[0] != "role"), " ")


def _moment(created: str) -> str:
    return created[:16].replace("T", " ")


def replay_parts(replay: Replay) -> Parts:
    """Return what is told of a replay, part by part."""
    failed = f", {replay.failed} of them failed" if replay.failed else ""
    at = f" at {equations(replay.sizes)}" if replay.sizes else ""
    head: Parts = [
        headed(f"{replay.program} ({replay.target}) on {replay.card}"),
        f"{replay.variants} variants{at}{failed}; least {replay.objective}"
        f" {figure(replay.best)} {replay.unit}",
        f"Best found, in % above the least, after a share of {replay.budget}:",
        f"the middle of {counted(len({run.seed for run in replay.runs}), 'seed')}."
        f" near: variants until within {100 * NEAR:g} %.",
    ]

    def regret(place: int) -> Getter:
        return lambda one: _regret(one.regrets[place])

    strategies: Columns = {
        "strategy": "strategy",
        **{f">{100 * share:g} %": regret(place) for place, share in enumerate(SHARES)},
        "near": "evaluations_within",
        "runs near": lambda one: f"{one.reached} of {one.runs}",
    }
    return apart(head, [listing_of(replay.summaries, strategies)])


def _regret(regret: float | None) -> str:
    """Return a regret in per cent, ``-`` where nothing was found."""
    return NONE if regret is None else f"{100 * regret:.{int(abs(regret) < 0.995)}f}"
