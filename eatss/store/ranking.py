"""Rows in the order of what people look for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

from eatss.store.nouns import Row

Order: TypeAlias = Literal["time", "energy", "edp", "ppw"]
"""``edp`` is energy × time, ``ppw`` GFLOP/J."""


def cost(row: Row, by: Order) -> float:
    """Return what is to be small: s, J, J·s, or J/GFLOP; infinite if it is not known.

    Failures cost infinitely much, however quickly they came.
    """
    if not row.measured:
        return math.inf
    time_s, energy_j = _known(row.time_s), _known(row.energy_j)
    if by == "time":
        return time_s
    if by == "energy":
        return energy_j
    if by == "edp":
        return time_s * energy_j
    per_joule = row.gflops_per_joule
    return math.inf if not per_joule else 1 / per_joule


def ranked(rows: Iterable[Row], by: Order) -> tuple[Row, ...]:
    """Return rows, the best first; those whose cost is not known last, in their order."""
    return tuple(sorted(rows, key=lambda row: cost(row, by)))


def best(rows: Iterable[Row], by: Order) -> Row | None:
    """Return the best row, ``None`` where no cost is known."""
    first = next(iter(ranked(rows, by)), None)
    return None if first is None or math.isinf(cost(first, by)) else first


def _known(value: float | None) -> float:
    return math.inf if value is None else value
