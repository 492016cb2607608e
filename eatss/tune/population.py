"""The rows that are set beside each other, and what choosing for speed or energy alone gives away.

Convex hull and Pareto front are of performance against efficiency, both to be high [BEAST, Secs.
3.2 to 3.4]. Points are ``(x, y)``; fronts are places in the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from eatss.base.frozen import Names, Numbers, frozen
from eatss.measurement.counters import DURATION
from eatss.measurement.measurement import Status
from eatss.tune.points import Values
from eatss.tune.rows import Role, Row, Rows, Sweep

Floats: TypeAlias = NDArray[np.float64]

OUTCOMES = frozenset({"temperature_c", "sm_clock_mhz", DURATION})
"""Metrics that explain nothing of what a run took: the load brings them about, or, as the time
under a profiler, they are what it took."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Measured rows, one a variant, of one size and one card.

    Arrays have one entry a row; NaN stands for what was not measured. Performance is in GFLOP/s and
    efficiency in GFLOP/J, or, where a row has no count of operations, in runs/s and runs/J: the
    units say which.
    """

    rows: Rows
    time_s: Floats
    energy_j: Floats
    power_w: Floats
    performance: Floats
    efficiency: Floats
    performance_unit: str
    efficiency_unit: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def has_energy(self) -> bool:
        """Whether energy is known of any row."""
        return bool(np.isfinite(self.energy_j).any())

    def with_energy(self) -> Population:
        """Return the rows whose energy is known."""
        return population(row for row in self.rows if (row.energy_j or 0) > 0)

    def column(self, name: str) -> Floats:
        """Return a metric or a numeric value of the space by name; NaN where a row has none."""
        found = np.array([_numbers(row).get(name, np.nan) for row in self.rows], dtype=float)
        return np.where(np.isfinite(found), found, np.nan)


def population(rows: Iterable[Row]) -> Population:
    """Return the measured ones of some rows with their figures; what is not over 0 was not read."""
    kept = tuple(row for row in rows if row.measured and (row.time_s or 0) > 0)
    time_s = _array(row.time_s for row in kept)
    energy_j = _array(row.energy_j if (row.energy_j or 0) > 0 else None for row in kept)
    power_w = _array(row.power_w if row.power_w is not None else _mean_power(row) for row in kept)
    counted = bool(kept) and all(row.flops for row in kept)
    work = _array((row.flops or 0) / 1e9 for row in kept) if counted else np.ones(len(kept))
    return Population(
        rows=kept,
        time_s=time_s,
        energy_j=energy_j,
        power_w=power_w,
        performance=work / time_s,
        efficiency=work / energy_j,
        performance_unit="GFLOP/s" if counted else "runs/s",
        efficiency_unit="GFLOP/J" if counted else "runs/J",
    )


def of_role(rows: Sequence[Row], role: Role) -> Row | None:
    """Return the row of a role; of several the one of least energy, then of least time."""
    found = [row for row in rows if row.role == role]
    measured = [row for row in found if row.measured]
    if not measured:
        return found[0] if found else None
    return min(measured, key=lambda row: (row.energy_j or np.inf, row.time_s))


def is_choice(values: Values) -> bool:
    """Tell whether values name a role, maybe at sizes: such a row is no point of the space."""
    return "role" in dict(values)


def explaining_names(rows: Population) -> Names:
    """Return the metrics and numeric values that vary; no predictions, no outcomes."""
    names = dict.fromkeys(name for row in rows.rows for name in _numbers(row))
    return tuple(
        name
        for name in names
        if not name.startswith("predicted_") and name not in OUTCOMES and varies(rows.column(name))
    )


def varies(column: Floats) -> bool:
    """Tell whether a column has two values that differ by more than rounding."""
    known = column[np.isfinite(column)]
    return known.size > 1 and float(np.ptp(known)) > 1e-12 * float(np.abs(known).max())


def _numbers(row: Row) -> dict[str, float]:
    values = {name: float(value) for name, value in row.values if isinstance(value, int | float)}
    return {**values, **dict(row.metrics)}


def _mean_power(row: Row) -> float | None:
    return row.energy_j / row.time_s if row.energy_j and row.time_s else None


def _array(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


@frozen
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
    limits = {card.uuid: card.power_limit_w or np.inf for card in sweep.cards}
    pairs = zip(found.rows, found.power_w, strict=True)
    known = ((limits.get(row.card or "", np.inf), power_w, row.stage) for row, power_w in pairs)
    passed = [limit for limit, power_w, stage in known if stage == "first" and power_w > limit]
    return OverLimit(variants=len(passed), limit_w=min(passed)) if passed else None


@frozen
class FailureCount:
    """How many variants failed for one reason; ``example`` is the reason of the first.

    Reasons that differ in their numbers alone are one, with ``#`` for each number.
    """

    status: Status
    reason: str
    variants: int
    example: str


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def count_failures(rows: Iterable[Row]) -> tuple[FailureCount, ...]:
    """Return why rows have no time that counts, the most frequent reason first."""
    found: dict[tuple[Status, str], list[str]] = {}
    for row in rows:
        if not row.measured:
            found.setdefault((row.status, _NUMBER.sub("#", row.reason)), []).append(row.reason)
    listed = [
        FailureCount(status=status, reason=reason, variants=len(own), example=own[0])
        for (status, reason), own in found.items()
    ]
    return tuple(sorted(listed, key=lambda one: -one.variants))


def convex_hull(x: Floats, y: Floats) -> Numbers:
    """Return the corners of the convex hull counterclockwise, from the lowest ``x`` on.

    Points on an edge are no corners; of equal points the first is taken. All points on one line
    give its two ends, equal points one. Points with a NaN are left out.
    """
    known = np.array(_in_order(x, y), dtype=int)
    if not known.size:
        return ()
    points, first = np.unique(np.stack((x, y), axis=1)[known], axis=0, return_index=True)
    corners = np.unique([0, len(points) - 1])
    with suppress(QhullError):  # fewer than three points, or all on one line
        corners = ConvexHull(points).vertices
    corners = np.roll(corners, -int(np.argmin(corners)))
    return tuple(known[first[corners]].tolist())


def _in_order(x: Floats, y: Floats) -> list[int]:
    """Return the points without a NaN by rising ``x``, and ``y`` where that is the same."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    found: list[int] = known[np.lexsort((y[known], x[known]))].tolist()
    return found


def pareto_front(x: Floats, y: Floats) -> Numbers:
    """Return the points that no other beats in one without losing in the other, by rising ``x``.

    Of equal points all are on the front. Points with a NaN are left out.
    """
    found: list[int] = []
    for k in _in_order(-x, -y):
        last = found[-1] if found else None
        if last is None or y[k] > y[last] or (x[k] == x[last] and y[k] == y[last]):
            found.append(k)
    return tuple(found[::-1])


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
    """The fastest against the thriftiest variant.

    Attributes:
        energy_wasted: Energy of the fastest over the least, minus 1.
        time_lost: Time of the thriftiest over the least, minus 1.
        right_of_vertical: Variants with more performance than the thriftiest.
        above_horizontal: Variants with more efficiency than the fastest.
        upper_right: Variants with both.
        equal_speed: The widest spread of energy among measured variants, ``None`` where no two are
            equally fast.
        pareto: Variants that no other beats in both, by rising performance.
    """

    energy_wasted: float
    time_lost: float
    right_of_vertical: int
    above_horizontal: int
    upper_right: int
    equal_speed: EqualSpeed | None
    pareto: Names


def figures_of(found: Population, place: int) -> Figures:
    """Return one variant of a population."""
    row = found.rows[place]
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
    right, above = speed > speed[low], thrift > thrift[high]
    return TradeOff(
        energy_wasted=float(found.energy_j[high] / found.energy_j[low] - 1),
        time_lost=float(found.time_s[low] / found.time_s[high] - 1),
        right_of_vertical=int(right.sum()),
        above_horizontal=int(above.sum()),
        upper_right=int((right & above).sum()),
        equal_speed=equal_speed_spread(speed, found.energy_j),
        pareto=tuple(found.rows[k].variant for k in pareto_front(speed, thrift)),
    )


def equal_speed_spread(performance: Floats, energy_j: Floats) -> EqualSpeed | None:
    """Return the widest ratio of energies within any one percent of performance."""
    order = np.argsort(performance, kind="stable")
    speed, energy = performance[order], energy_j[order]
    ends = np.searchsorted(speed, speed * (1 + EQUAL), side="right")
    alike = [(at, energy[at:end]) for at, end in enumerate(ends) if end - at > 1]
    ratios = [float(own.max() / own.min()) for _, own in alike]
    if not ratios:
        return None
    at, own = alike[int(np.argmax(ratios))]
    return EqualSpeed(ratio=max(ratios), performance=float(speed[at]), count=len(own))
