"""Cards of one kind on one scale, or not compared at all.

Two cards of one kind differ by some percent. Every card measures the same reference variants now
and then; what it takes for them, over what another card takes, is its factor. Rows of a card
without a reference that others share are not set beside theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import stdtrit

from eatss.base.frozen import frozen
from eatss.tune.population import Sign
from eatss.tune.rows import BESIDE, Row, Sweep

UNKNOWN = "unknown"
"""The card of measured rows that name none, as of an imported sweep: one, as far as is known."""

FEWEST_REFERENCES = 2
"""Both cards need so many references of shared variants; of one nothing tells how sure it is."""

_SHORTEST_S = 1.0
"""References within less time show no drift."""

Key: TypeAlias = tuple[str, Sign]
Taken: TypeAlias = Literal["time_s", "energy_j"]

_TAKEN: tuple[Taken, ...] = ("time_s", "energy_j")


@frozen
class Drift:
    """How a card's references changed from its first to its last.

    ``change`` is relative, +0.01 for one percent more; ``error`` half of its 95 % interval;
    ``spread`` the relative standard deviation around the line.
    """

    change: float
    error: float
    spread: float


@frozen
class CardScale:
    """One card: how many rows and references it has, and what it takes over the base card's.

    ``time_factor`` and ``energy_factor`` are 1 for the base, ``None`` where either card has fewer
    than two references of shared variants. ``time_range`` and ``energy_range`` are their 95 %
    intervals, ``None`` for the base. ``used`` says whether its rows count.
    """

    uuid: str
    rows: int
    references: int
    used: bool
    time_factor: float | None
    energy_factor: float | None
    time_range: tuple[float, float] | None
    energy_range: tuple[float, float] | None
    time_drift: Drift | None
    energy_drift: Drift | None


@frozen
class CardComparison:
    """All cards of a sweep; ``base`` is the one whose scale is used, ``note`` a sentence on it."""

    base: str | None
    cards: tuple[CardScale, ...]
    note: str


def compare_cards(sweep: Sweep) -> CardComparison:
    """Return what each card takes over the base card, which is the one with the most rows."""
    counts = Counter(row.card or UNKNOWN for row in sweep.latest if row.measured)
    if not counts:
        return CardComparison(base=None, cards=(), note="nothing was measured")
    base = counts.most_common(1)[0][0]
    scales = tuple(_scale(sweep.rows, card, base, n) for card, n in counts.most_common())
    return CardComparison(base=base, cards=scales, note=_note(scales))


def on_one_scale(sweep: Sweep, cards: CardComparison) -> tuple[Row, ...]:
    """Return one row a variant, in the order of the sweep, as if measured on the base card.

    Of a variant on several cards the careful row stands, then that of the base card; a measured
    one before a failed one. Rows that came to no card are kept: they failed. A role that any row of
    a variant has is the variant's.
    """
    roles = {row.variant: row.role for row in sweep.rows if row.role and row.stage not in BESIDE}
    found: dict[Key, Row] = {}

    def rank(row: Row) -> tuple[bool, bool, bool]:
        return row.measured, row.stage == "careful", (row.card or UNKNOWN) == cards.base

    for row in _scaled(sweep.latest, cards):
        known = found.get(_key(row))
        if known is None or rank(row) > rank(known):
            role = row.role or roles.get(row.variant, "")
            found[_key(row)] = row if role == row.role else replace(row, role=role)
    return tuple(found.values())


def references(rows: Sequence[Row], card: str) -> tuple[Row, ...]:
    """Return the measured references of a card, in the order of time."""
    found = (
        r for r in rows if r.stage == "reference" and (r.card or UNKNOWN) == card and r.measured
    )
    return tuple(sorted(found, key=lambda row: row.at_s))


def _key(row: Row) -> Key:
    return row.variant, row.sizes


def _scaled(rows: Iterable[Row], cards: CardComparison) -> Iterator[Row]:
    """Yield rows as if measured on the base card, but for those of cards that are not compared."""
    scales = {card.uuid: card for card in cards.cards if card.used}
    for row in rows:
        scale = scales.get(row.card or UNKNOWN) if row.measured else None
        if row.measured and scale is None:
            continue
        if scale is None or {scale.time_factor, scale.energy_factor} <= {None, 1.0}:
            yield row
            continue
        time_s, energy_j = row.time_s, row.energy_j
        time_s = None if time_s is None else time_s / (scale.time_factor or 1.0)
        factor = scale.energy_factor
        energy_j = None if energy_j is None or factor is None else energy_j / factor
        power_w = energy_j / time_s if energy_j and time_s else None
        yield replace(row, time_s=time_s, energy_j=energy_j, power_w=power_w)


def _scale(rows: Sequence[Row], card: str, base: str, count: int) -> CardScale:
    own, others = references(rows, card), references(rows, base)
    factors = {
        taken: (1.0, None) if card == base else _factor(own, others, taken) for taken in _TAKEN
    }
    time_factor, time_range = factors["time_s"]
    energy_factor, energy_range = factors["energy_j"]
    return CardScale(
        uuid=card,
        rows=count,
        references=len(own),
        used=time_factor is not None,
        time_factor=time_factor,
        energy_factor=energy_factor,
        time_range=time_range,
        energy_range=energy_range,
        time_drift=_drift(own, "time_s"),
        energy_drift=_drift(own, "energy_j"),
    )


def _factor(
    own: Sequence[Row], others: Sequence[Row], taken: Taken
) -> tuple[float | None, tuple[float, float] | None]:
    """Return what a card takes over another one, and its 95 % interval.

    Least squares on logarithms, with a mean of its own for each variant that both measured: the
    geometric mean of the variants' ratios, weighted by how often each was measured.
    """
    mine, theirs = (_by_variant(_known(rows, taken)) for rows in (own, others))
    shared = sorted(mine.keys() & theirs.keys())
    if min(sum(len(one[key]) for key in shared) for one in (mine, theirs)) < FEWEST_REFERENCES:
        return None, None
    pairs = [
        tuple(np.log([number for _, number in one[key]]) for one in (mine, theirs))
        for key in shared
    ]
    weights = np.array([a.size * b.size / (a.size + b.size) for a, b in pairs])
    ratios = np.array([a.mean() - b.mean() for a, b in pairs])
    ratio = float((weights * ratios).sum() / weights.sum())
    rest = sum(float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) for a, b in pairs)
    rest += float((weights * (ratios - ratio) ** 2).sum())
    free = sum(a.size + b.size for a, b in pairs) - len(pairs) - 1
    error = float(stdtrit(free, 0.975)) * float(np.sqrt(rest / free / weights.sum()))
    return float(np.exp(ratio)), (float(np.exp(ratio - error)), float(np.exp(ratio + error)))


def _known(rows: Sequence[Row], taken: Taken) -> list[tuple[Row, float]]:
    return [(row, number) for row in rows if (number := getattr(row, taken)) and number > 0]


def _by_variant(known: Sequence[tuple[Row, float]]) -> dict[Key, list[tuple[float, float]]]:
    """Return hours and values of each variant."""
    found: dict[Key, list[tuple[float, float]]] = {}
    for row, number in known:
        found.setdefault(_key(row), []).append((row.at_s / 3600, number))
    return found


def _drift(rows: Sequence[Row], taken: Taken) -> Drift | None:
    """Return the slope over time within variants: a change of variant is no drift."""
    known = _known(rows, taken)
    groups = _by_variant(known).values()
    free = len(known) - len(groups) - 1
    if free < 1:
        return None
    points = [np.array([(at, float(np.log(number))) for at, number in own]) for own in groups]
    away, logs = np.concatenate([own - np.mean(own, axis=0) for own in points]).T
    if max(float(np.ptp(own[:, 0])) for own in points) * 3600 < _SHORTEST_S:
        return None
    span = float(np.ptp([row.at_s for row, _ in known])) / 3600
    slope = float((away * logs).sum() / (away**2).sum())
    spread = float(np.sqrt(((logs - slope * away) ** 2).sum() / free))
    error = float(stdtrit(free, 0.975)) * spread / float(np.sqrt((away**2).sum()))
    return Drift(change=float(np.expm1(slope * span)), error=error * span, spread=spread)


def _note(scales: Sequence[CardScale]) -> str:
    if len(scales) == 1:
        return "all rows are of one card; nothing is corrected"
    left = [card.rows for card in scales if not card.used]
    rows = f"{sum(left)} {'row' if sum(left) == 1 else 'rows'} of"
    if len(left) == len(scales) - 1:
        others = f"{len(left)} other {'card' if len(left) == 1 else 'cards'}"
        return (
            "cards are not compared: no two of them measured shared references twice each; the "
            f"{rows} {others} are left out"
        )
    text = (
        f"{len(scales) - len(left)} cards on one scale: each is divided by its factor over "
        "the base card, from references that both measured"
    )
    few = f"; {rows} cards with fewer than two shared references are left out"
    return text + few if left else text
