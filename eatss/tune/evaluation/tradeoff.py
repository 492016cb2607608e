"""What choosing for speed alone, or for energy alone, gives away [BEAST, Secs. 3.2 to 3.4]."""

from __future__ import annotations

import numpy as np

from eatss.base.frozen import frozen
from eatss.tune.evaluation.frontier import AlphaRange, convex_hull, pareto_front, section
from eatss.tune.evaluation.frontier import weighted_winners as winners
from eatss.tune.evaluation.population import Floats, Population
from eatss.tune.point import Values
from eatss.tune.store.nouns import Role, Row

EQUAL = 0.01
"""Variants whose performance differs by less than this share count as equally fast."""


@frozen
class Figures:
    """One variant and its figures; ``None`` is what was not measured."""

    variant: str
    values: Values
    role: Role
    decided: str
    time_s: float
    energy_j: float | None
    power_w: float | None
    performance: float
    efficiency: float | None

    def over(self, other: Figures) -> tuple[float, float | None]:
        """Return how many times as fast it is as another, and what it takes of its energy."""
        energy = None
        if self.energy_j is not None and other.energy_j is not None:
            energy = self.energy_j / other.energy_j
        return other.time_s / self.time_s, energy


@frozen
class Weighted:
    """The variant that is best for weights of time from ``alpha_low`` to ``alpha_high``."""

    variant: str
    alpha_low: float
    alpha_high: float


@frozen
class EqualSpeed:
    """The widest spread of energy among equally fast variants.

    ``ratio`` is the highest over the lowest energy among ``count`` variants whose performance is
    from ``performance`` to one percent more.
    """

    ratio: float
    performance: float
    count: int


@frozen
class TradeOff:
    """The fastest against the thriftiest variant, and the hull that encloses all.

    Attributes:
        energy_wasted: Energy of the fastest over the least, minus 1.
        time_lost: Time of the thriftiest over the least, minus 1.
        right_of_vertical: Variants with more performance than the thriftiest.
        above_horizontal: Variants with more efficiency than the fastest.
        upper_right: Variants with both.
        efficiency_at_thriftiest: Lowest and highest efficiency of the hull on the vertical line.
        performance_at_fastest: Lowest and highest performance on the horizontal line.
        equal_speed: The widest spread of energy among measured variants, ``None`` where no two are
            equally fast.
        hull: Variants at the corners, counterclockwise from the slowest.
        pareto: Variants that no other beats in both, by rising performance.
        weighted: Which variant has the least weighted loss, from energy alone to time alone.
    """

    energy_wasted: float
    time_lost: float
    right_of_vertical: int
    above_horizontal: int
    upper_right: int
    efficiency_at_thriftiest: tuple[float, float]
    performance_at_fastest: tuple[float, float]
    equal_speed: EqualSpeed | None
    hull: tuple[str, ...]
    pareto: tuple[str, ...]
    weighted: tuple[Weighted, ...]


def figures_of(found: Population, place: int) -> Figures:
    """Return one variant of a population."""
    row: Row = found.rows[place]
    return Figures(
        variant=row.variant,
        values=row.values,
        role=row.role,
        decided=row.decided,
        time_s=float(found.time_s[place]),
        energy_j=known(found.energy_j[place]),
        power_w=known(found.power_w[place]),
        performance=float(found.performance[place]),
        efficiency=known(found.efficiency[place]),
    )


def known(value: float) -> float | None:
    """Return a number, ``None`` for NaN."""
    return float(value) if np.isfinite(value) else None


def fastest(found: Population) -> int:
    """Return the place of the variant of least time."""
    return int(np.argmin(found.time_s))


def thriftiest(found: Population) -> int | None:
    """Return the place of the variant of least energy, ``None`` where none is known."""
    return int(np.nanargmin(found.energy_j)) if found.has_energy else None


def trade_off(everything: Population) -> TradeOff | None:
    """Return the trade-off among the variants whose energy is known, ``None`` without any."""
    found = everything.with_energy()
    low = thriftiest(found)
    if low is None:
        return None
    high = fastest(found)
    speed, thrift = found.performance, found.efficiency
    hull = convex_hull(speed, thrift)
    right, above = speed > speed[low], thrift > thrift[high]
    at_thriftiest = section(hull, speed, thrift, float(speed[low]))
    at_fastest = section(hull, thrift, speed, float(thrift[high]))
    assert at_thriftiest is not None
    assert at_fastest is not None
    return TradeOff(
        energy_wasted=float(found.energy_j[high] / found.energy_j[low] - 1),
        time_lost=float(found.time_s[low] / found.time_s[high] - 1),
        right_of_vertical=int(right.sum()),
        above_horizontal=int(above.sum()),
        upper_right=int((right & above).sum()),
        efficiency_at_thriftiest=at_thriftiest,
        performance_at_fastest=at_fastest,
        equal_speed=equal_speed_spread(speed, found.energy_j),
        hull=tuple(found.rows[k].variant for k in hull),
        pareto=tuple(found.rows[k].variant for k in pareto_front(speed, thrift)),
        weighted=tuple(_weighted(found, one) for one in winners(found.time_s, found.energy_j)),
    )


def equal_speed_spread(performance: Floats, energy_j: Floats) -> EqualSpeed | None:
    """Return the widest ratio of energies within any one percent of performance."""
    order = np.argsort(performance, kind="stable")
    speed, energy = performance[order], energy_j[order]
    ends = np.searchsorted(speed, speed * (1 + EQUAL), side="right")
    widest: EqualSpeed | None = None
    for start, end in enumerate(ends):
        if end - start < 2:
            continue
        within = energy[start:end]
        ratio = float(within.max() / within.min())
        if widest is None or ratio > widest.ratio:
            widest = EqualSpeed(
                ratio=ratio, performance=float(speed[start]), count=int(end - start)
            )
    return widest


def _weighted(found: Population, one: AlphaRange) -> Weighted:
    return Weighted(variant=found.rows[one.point].variant, alpha_low=one.low, alpha_high=one.high)
