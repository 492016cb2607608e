"""Single windows in which a card drew more than its limit: no run keeps that up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eatss.evaluation.population import Population
from eatss.store.nouns import Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """How many variants drew more than their card's power limit in their one short window.

    ``limit_w`` is the limit, the lowest of several. Variants that were measured with care do not
    count: their windows are long enough for the card to keep its limit.
    """

    variants: int
    limit_w: float


def over_limit(found: Population, sweep: Sweep) -> OverLimit | None:
    """Return how many variants drew more than the limit; ``None`` where none did, as far as known.

    A card keeps its limit by lower clocks, after a while. Until then a run is faster, and takes
    another energy, than in a longer window.
    """
    limits = {card.uuid: card.power_limit_w for card in sweep.cards}
    passed = [
        limit
        for row, power_w in zip(found.rows, found.power_w, strict=True)
        for limit in (limits.get(row.card or ""),)
        if row.stage == "first" and limit is not None and np.isfinite(power_w) and power_w > limit
    ]
    return OverLimit(variants=len(passed), limit_w=min(passed)) if passed else None
