"""What ``eatss results`` prints, and how soon strategies come near the best of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table as RichTable
from rich.text import Text

from eatss.base.codec import json_text
from eatss.base.targets import Order
from eatss.base.text import counted, equations
from eatss.report.render import (
    NONE,
    Columns,
    Getter,
    Parts,
    apart,
    figure,
    headed,
    listing_of,
    render,
)
from eatss.tune.points import Values
from eatss.tune.replay import NEAR, SHARES, Replay
from eatss.tune.rows import Identity, Row, Sweep, cost, ranked

_KEY = 8
"""Characters of a variant's key that tables show; those that it begins with are enough."""

_BEST = 10
"""Rows that a notebook shows of a sweep."""


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


def _head(identity: Identity) -> Text:
    about = f"  {identity.target}, {identity.dtype or 'no type'}, {identity.card}"
    return headed(identity.program, about)


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
