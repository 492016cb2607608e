"""What is in a store, in short."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Annotated

from eatss.base.codec import BY_NAME
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.measurement.measurement import Status
from eatss.tune.point import Values
from eatss.tune.store.conditions import best
from eatss.tune.store.nouns import CardSeen, Identity, Row, Sweep


@frozen
class Best:
    """The best variant in one respect."""

    variant: str
    values: Values
    decided: str
    card: str | None
    time_s: float | None
    energy_j: float | None
    gflops: float | None
    gflops_per_joule: float | None


@frozen
class Summary:
    """What is in a store.

    Attributes:
        path: As it was named.
        identity: What all rows have in common.
        cards: Those that rows were measured on.
        variants: How many points have a row.
        rows: How many rows there are: a variant may be measured again, or on several cards.
        statuses: How many rows have each status.
        best_time: The fastest variant, ``null`` if none was measured.
        best_energy: The one that takes least energy.
        made_s: Seconds of processors that generating and compiling took.
        card_s: Seconds that cards were taken.
        card_j: Joules that cards drew, as far as that is known.
        first: When the first row was done, UTC, ISO 8601; ``""`` if not known.
        last: When the last one was.
    """

    path: str
    identity: Identity
    cards: tuple[CardSeen, ...]
    variants: int
    rows: int
    statuses: Annotated[tuple[tuple[Status, int], ...], BY_NAME]
    best_time: Best | None
    best_energy: Best | None
    made_s: float
    card_s: float
    card_j: float
    first: str
    last: str


@frozen
class Summaries(Shown):
    """What ``eatss results ls --format json`` prints: a summary for each store."""

    shown_by = "eatss.report.results:summaries_parts"

    stores: tuple[Summary, ...]


def summary_of(path: str, sweep: Sweep) -> Summary:
    """Return what is in a sweep; where a variant was measured again, the careful time counts.

    The best are of the problem size with the most measured rows, as measured on their card.
    """
    sizes = Counter(row.sizes for row in sweep.latest if row.measured).most_common(1)
    latest = [row for row in sweep.latest if sizes and row.sizes == sizes[0][0]]
    created = sorted(row.created for row in sweep.rows if row.created)
    return Summary(
        path=path,
        identity=sweep.identity,
        cards=sweep.cards,
        variants=len({row.variant for row in sweep.rows}),
        rows=len(sweep.rows),
        statuses=tuple(Counter(row.status for row in sweep.rows).most_common()),
        best_time=_best(best(latest, "time")),
        best_energy=_best(best(latest, "energy")),
        made_s=sum(row.made_s for row in sweep.rows),
        card_s=sum(row.card_s for row in sweep.rows),
        card_j=sum(row.card_j or 0.0 for row in sweep.rows),
        first=created[0] if created else "",
        last=created[-1] if created else "",
    )


def _best(row: Row | None) -> Best | None:
    return None if row is None else Best(**{f.name: getattr(row, f.name) for f in fields(Best)})
