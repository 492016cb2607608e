"""What the second pass is expected to take, which the first one leaves to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eatss.explore.nouns import Care
from eatss.explore.options import CAREFUL, SweepOptions
from eatss.explore.rows import expected_contenders
from eatss.store.nouns import Row

TYPICAL_WINDOWS = 1.5
"""Windows of a careful measurement over the least: some take more than three; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Seconds of a sweep and joules of the card that are kept back."""

    seconds: float = 0.0
    joules: float = 0.0


def reserve(options: SweepOptions, choices: int, cards: int, rows: Sequence[Row]) -> Reserve:
    """Return what the second pass and the last reference are expected to take.

    At most the share ``options.second_share`` of the budget; all of the share where hardware
    counters are read afterwards, since nobody knows how long that takes.

    Args:
        options: how many contenders there are, at least one for each size of the program, and the
            budget.
        choices: how many choices are measured beside them.
        cards: how many cards measure.
        rows: what was measured so far.
    """
    if not options.contenders:
        return Reserve()
    budget, share = options.limited, options.second_share
    most_s, most_j = share * (budget.seconds or 0.0), share * (budget.joules or 0.0)
    if options.counters:
        return Reserve(seconds=most_s, joules=most_j)
    again = choices + expected_contenders(rows, options.contenders)
    seconds, joules = _of_one(rows, options.first)
    return Reserve(
        seconds=min(most_s, seconds * (-(-again // cards) + 1)),
        joules=most_j if joules is None else min(most_j, joules * (again + 1)),
    )


def _of_one(rows: Sequence[Row], first: Care) -> tuple[float, float | None]:
    """Return what one careful measurement takes: as those before, else by its windows.

    Joules are not known while nothing was measured with energy.
    """
    measured = [row for row in rows if row.measured]
    careful = [row for row in measured if row.stage == "careful"]
    quick = [row for row in measured if row.stage == "first"]
    under_load_s = TYPICAL_WINDOWS * _load_s(CAREFUL)
    beside_s = fmean(row.card_s for row in quick) - _load_s(first) if quick else 0.0
    powers = [row.power_w for row in quick if row.power_w is not None]
    joules = [row.card_j for row in careful if row.card_j is not None]
    return (
        fmean(row.card_s for row in careful) if careful else under_load_s + max(0.0, beside_s),
        fmean(joules) if joules else fmean(powers) * under_load_s if powers else None,
    )


def _load_s(care: Care) -> float:
    """Return for how long the card is loaded in the least windows of a measurement."""
    return care.least_windows * (care.settle_s + care.least_window_s * (1 + care.spare))
