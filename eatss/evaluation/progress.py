"""How good the best was, as the sweep went on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eatss.store.nouns import BESIDE, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSoFar:
    """The best time and energy after so many measured variants and seconds of the sweep."""

    variants: int
    at_s: float
    time_s: float
    energy_j: float | None
    strategy: str


def best_over_time(rows: Iterable[Row]) -> tuple[BestSoFar, ...]:
    """Return an entry a measured row, in the order of time; references are no part of the search.

    Careful rows measure variants again, so only first ones count where there are any.
    """
    measured = [row for row in rows if row.measured and row.stage not in BESIDE]
    first = [row for row in measured if row.stage == "first"] or measured
    found: list[BestSoFar] = []
    time_s, energy_j = np.inf, np.inf
    for count, row in enumerate(sorted(first, key=lambda row: row.at_s), 1):
        time_s = min(time_s, row.time_s or np.inf)
        energy_j = min(energy_j, row.energy_j or np.inf)
        found.append(
            BestSoFar(
                variants=count,
                at_s=row.at_s,
                time_s=float(time_s),
                energy_j=float(energy_j) if np.isfinite(energy_j) else None,
                strategy=row.strategy,
            )
        )
    return tuple(found)
