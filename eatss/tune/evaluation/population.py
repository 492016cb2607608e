"""The rows that are set beside each other, and their figures as arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eatss.base.frozen import frozen
from eatss.measurement.counters import DURATION
from eatss.measurement.measurement import Status
from eatss.tune.point import Value, Values
from eatss.tune.store.nouns import Role, Row, Sizes, Sweep

Floats: TypeAlias = NDArray[np.float64]

Sign: TypeAlias = tuple[tuple[str, int], ...]
"""Sizes, as what rows are grouped by."""

OUTCOMES = frozenset({"temperature_c", "sm_clock_mhz", DURATION})
"""Metrics that explain nothing of what a run took: the load brings them about, or, as the time
under a profiler, they are what it took."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Measured rows, one a variant, of one size and on one scale.

    Arrays have one entry a row; NaN stands for what was not measured. Performance is in GFLOP/s and
    efficiency in GFLOP/J, or, where a row has no count of operations, in runs/s and runs/J: the
    units say which.
    """

    rows: tuple[Row, ...]
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
        """Return a metric or a value of the space by name; NaN where a row has none.

        ``warps=none`` is 1 where the value of ``warps`` is this text, and 0 where it is another.
        """
        found = np.array([_number(row, name) for row in self.rows], dtype=float)
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


def by_sizes(rows: Iterable[Row]) -> dict[Sign, tuple[Row, ...]]:
    """Return rows by their problem size, the size with the most measured rows first."""
    found: dict[Sign, list[Row]] = {}
    for row in rows:
        found.setdefault(row.sizes, []).append(row)
    order = sorted(found, key=lambda sizes: -sum(row.measured for row in found[sizes]))
    return {sizes: tuple(found[sizes]) for sizes in order}


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


def is_text(column: str) -> bool:
    """Tell whether a column is of a text, ``warps=none``: 1 where it is there, and 0."""
    return "=" in column


def explaining_names(rows: Population) -> tuple[str, ...]:
    """Return the metrics and values that vary, as columns; no predictions, no outcomes.

    A value that is a text has a column for each text, or one alone where there are two: that of the
    one that is not ``none``, else of the later one.
    """
    names = dict.fromkeys(name for row in rows.rows for name in _numbers(row))
    names |= dict.fromkeys(_text_names(rows.rows))
    return tuple(
        name
        for name in names
        if not name.startswith("predicted_") and name not in OUTCOMES and varies(rows.column(name))
    )


def varies(column: Floats) -> bool:
    """Tell whether a column has two values that differ by more than rounding."""
    known = column[np.isfinite(column)]
    return known.size > 1 and float(np.ptp(known)) > 1e-12 * float(np.abs(known).max())


def size_words(sizes: Sizes) -> str:
    """Return sizes as people write them, ``M=64, N=32``."""
    return ", ".join(f"{name}={value}" for name, value in sizes)


def _numbers(row: Row) -> dict[str, float]:
    values = {name: float(value) for name, value in row.values if isinstance(value, int | float)}
    return {**values, **dict(row.metrics)}


def _number(row: Row, name: str) -> float:
    known = _numbers(row).get(name)
    if known is not None:
        return known
    own, _, text = name.partition("=")
    value = dict(row.values).get(own)
    return float(value == text) if isinstance(value, str) else np.nan


def _text_names(rows: Sequence[Row]) -> list[str]:
    """Return ``name=text`` of the values that are texts; not where nearly each row has its own."""
    seen: dict[str, dict[Value, None]] = {}
    for row in rows:
        for name, value in row.values:
            if isinstance(value, str) and name != "role":
                seen.setdefault(name, {})[value] = None
    listed = []
    for name, found in seen.items():
        texts = list(found)
        if len(texts) == 2:
            texts = [text for text in texts if text != "none"][-1:]
        if 2 * len(found) <= len(rows):
            listed += [f"{name}={text}" for text in texts]
    return listed


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
    limits = {card.uuid: card.power_limit_w for card in sweep.cards}
    passed = [
        limit
        for row, power_w in zip(found.rows, found.power_w, strict=True)
        for limit in (limits.get(row.card or ""),)
        if row.stage == "first" and limit is not None and np.isfinite(power_w) and power_w > limit
    ]
    return OverLimit(variants=len(passed), limit_w=min(passed)) if passed else None


@frozen
class StatusCount:
    """How many variants ended so."""

    status: Status
    variants: int


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


def count_statuses(rows: Iterable[Row]) -> tuple[StatusCount, ...]:
    """Return how many rows have each status, the most frequent first."""
    found: dict[Status, int] = {}
    for row in rows:
        found[row.status] = found.get(row.status, 0) + 1
    return tuple(
        StatusCount(status=status, variants=count)
        for status, count in sorted(found.items(), key=lambda one: -one[1])
    )


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
