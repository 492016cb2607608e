"""The card whose rows count: of several, as in merged stores, the one with the most.

Two cards of one kind differ by some percent, so that their rows are not set beside each other. A
card measures a reference now and then, which says how it drifts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from scipy import stats

from eatss.base.frozen import frozen
from eatss.tune.rows import BESIDE, Row, Rows, Sizes, Sweep

UNKNOWN = "unknown"
"""The card of measured rows that name none, as of an imported sweep: one, as far as is known."""

_SHORTEST_S = 1.0
"""References within less time show no drift."""


@frozen
class Drift:
    """How the times of a card's reference changed from first to last.

    ``change`` is relative, +0.01 for one percent more; ``error`` half of its 95 % interval.
    """

    change: float
    error: float


@frozen
class CardRows:
    """One card: its measured variants and references, and whether its rows count."""

    uuid: str
    rows: int
    references: int
    used: bool
    time_drift: Drift | None


def cards_of(sweep: Sweep) -> tuple[CardRows, ...]:
    """Return the cards of a sweep, the one with the most measured variants first: it is used."""
    counts = Counter(row.card or UNKNOWN for row in sweep.latest if row.measured)
    return tuple(
        CardRows(
            uuid=card,
            rows=count,
            references=len(found := _references(sweep, card)),
            used=place == 0,
            time_drift=_drift(found),
        )
        for place, (card, count) in enumerate(counts.most_common())
    )


def rows_of_one_card(sweep: Sweep) -> Rows:
    """Return one row a variant and size, in the order of the sweep, of the card that is used.

    The careful row of a variant stands, and a measured one before a failed one. Rows that came to
    no card are kept: they failed. A role that any row of a variant has is the variant's.
    """
    used = next((card.uuid for card in cards_of(sweep)), None)
    roles = {row.variant: row.role for row in sweep.rows if row.role and row.stage not in BESIDE}
    found: dict[tuple[str, Sizes], Row] = {}
    for row in sweep.latest:
        place = (row.variant, row.sizes)
        known = found.get(place)
        left_out = row.card and used and row.card != used
        if left_out or (known and known.measured):
            continue
        found[place] = replace(row, role=row.role or roles.get(row.variant, ""))
    return tuple(found.values())


def _references(sweep: Sweep, card: str) -> list[Row]:
    """Return the measured references of a card that are of the variant with the most."""
    rows = [
        row
        for row in sweep.rows
        if row.stage == "reference" and (row.card or UNKNOWN) == card and row.measured
    ]
    most = Counter(row.variant for row in rows).most_common(1)
    return [row for row in rows if row.variant == most[0][0]]


def _drift(rows: list[Row]) -> Drift | None:
    at_s = [row.at_s for row in rows]
    if len(rows) < 3 or (span_s := max(at_s) - min(at_s)) < _SHORTEST_S:
        return None
    line = stats.linregress(at_s, np.log([row.time_s or np.nan for row in rows]))
    wide = float(stats.t.ppf(0.975, len(rows) - 2))
    return Drift(
        change=float(np.expm1(line.slope * span_s)), error=wide * float(line.stderr) * span_s
    )
