"""A sweep that is kept: what it is of, on which cards, a row a measurement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

from eatss.base.codec import BY_NAME
from eatss.base.frozen import frozen
from eatss.base.shown import Tabular, figure
from eatss.base.targets import MEASURES, ObjectiveName, SweepTarget
from eatss.base.text import Texts, equations
from eatss.measurement.measurement import Measurement, Status
from eatss.program.expression import SizePairs
from eatss.tune.points import Values

Role: TypeAlias = Literal["", "default", "paper", "ours"]
"""What a variant is besides a point: what the target does untold (sizes of 32), what the paper's
model chooses, what eatss chooses."""

Stage: TypeAlias = Literal["first", "careful", "reference", "counters"]
"""``first``: the quick pass over all variants. ``careful``: the second one, over the contenders.
``reference``: in stores of earlier versions, one variant measured again and again. ``counters``: a
variant run once more under a profiler; its metrics are added to those of the variant."""

BESIDE: frozenset[Stage] = frozenset({"reference", "counters"})
"""Stages of rows that are no result of their own."""

Sizes = Annotated[SizePairs, BY_NAME]
Metrics = Annotated[tuple[tuple[str, float], ...], BY_NAME]


@frozen
class Identity:
    """What all rows of a store have in common; rows of anything else are refused.

    Attributes:
        program: Name of the program.
        source_hash: SHA-256 of the source and what it includes.
        target: Who generates the code.
        generator: Version of what generates it: of eatss, or of PPCG.
        dtype: Element type.
        defines: ``-D`` of the source, and where headers are.
        sizes: Values of the program's parameters.
        card: Name of the card, without the number of one.
        driver: Version of the driver.
        compiler: Name and version of what compiles.
        options: SHA-256 of everything else that decides what is measured, and how.
    """

    program: str
    source_hash: str
    target: SweepTarget
    generator: str
    dtype: str
    defines: Texts
    sizes: Sizes
    card: str
    driver: str
    compiler: str
    options: str


@frozen
class CardSeen:
    """One card that rows were measured on, told from others of its kind by ``uuid``."""

    uuid: str
    name: str
    host: str
    compute_capability: int | None = None
    driver: str | None = None
    power_limit_w: float | None = None
    idle_power_w: float | None = None


@frozen
class Row:
    """One variant, measured once or refused.

    Attributes:
        variant: :func:`eatss.tune.points.variant_key` of its values.
        values: Its point, by the names of the space.
        role: What it is besides.
        stage: Which pass measured it.
        card: ``uuid`` of the card; ``None`` if it never came to one.
        status: As of a measurement; ``rejected by the model`` is refused by the generator too.
        reason: Why it is not ``ok``, a sentence.
        sizes: Values of the program's parameters.
        time_s: Of one run.
        energy_j: Of one run, gross.
        power_w: Mean power under the load.
        time_error: Relative half-width of the interval of ``time_s``, ``None`` for one window.
        energy_error: The same of ``energy_j``.
        flops: Floating-point operations of one run.
        metrics: Numbers by name that may explain the others: ``registers`` of a thread,
            ``shared_bytes`` of a block, ``occupancy``, ``predicted_time_s``,
            ``predicted_energy_j``, hardware counters. Of several kernels their sum or mean.
        decided: Tile sizes and threads of each kernel, in words.
        made_s: Seconds of a processor to generate and compile it.
        card_s: Seconds that the card was taken for it.
        card_j: Joules that the card drew in its windows, ``None`` if not known.
        at_s: Seconds of the sweep, all its sessions together, when it was done.
        strategy: Who proposed it.
        created: When it was done, UTC, ISO 8601.
        measurement: Everything that was found.
    """

    variant: str
    values: Values
    status: Status
    role: Role = ""
    stage: Stage = "first"
    card: str | None = None
    reason: str = ""
    sizes: Sizes = ()
    time_s: float | None = None
    energy_j: float | None = None
    power_w: float | None = None
    time_error: float | None = None
    energy_error: float | None = None
    flops: int | None = None
    metrics: Metrics = ()
    decided: str = ""
    made_s: float = 0.0
    card_s: float = 0.0
    card_j: float | None = None
    at_s: float = 0.0
    strategy: str = ""
    created: str = ""
    measurement: Measurement | None = None

    def __repr__(self) -> str:
        values = equations(self.values, " ")
        told = f"{figure(self.time_s, 'ms', 1e3)}, {figure(self.energy_j, 'J')}"
        return f"<Row {self.variant[:8]}: {self.status}, {told}; {values}>"

    @property
    def measured(self) -> bool:
        """Whether it has a time that counts."""
        return self.status in ("ok", "unstable") and self.time_s is not None

    @property
    def gflops(self) -> float | None:
        """Performance: GFLOP/s."""
        return self.flops / self.time_s / 1e9 if self.flops and self.time_s else None

    @property
    def gflops_per_joule(self) -> float | None:
        """Efficiency, PPW: GFLOP/J, which is GFLOP/s per watt [BEAST, eq. 1]."""
        return self.flops / self.energy_j / 1e9 if self.flops and self.energy_j else None


Rows: TypeAlias = tuple[Row, ...]


_COUNTS = ("ok", "unstable", "wrong result")
"""Statuses of rows that may replace an earlier one that was measured."""


def latest_of(rows: Iterable[Row]) -> Rows:
    """Return one row a variant and card: the careful one where there is one; no references.

    Hardware counters that were read apart are among its metrics.
    """
    found: dict[tuple[str, str | None], Row] = {}
    rows = tuple(rows)
    for row in rows:
        place = (row.variant, row.card)
        known = found.get(place)
        if row.stage in BESIDE or (known and known.measured and row.status not in _COUNTS):
            continue  # what failed later does not take away what was measured
        if known is None or row.stage == "careful" or known.stage != "careful":
            found[place] = row
    return with_counters((*found.values(), *(row for row in rows if row.stage == "counters")))


def with_counters(rows: Sequence[Row]) -> Rows:
    """Return rows with the hardware counters that were read apart, and without rows of these."""
    found = {(row.variant, row.card): row.metrics for row in rows if row.stage == "counters"}
    return tuple(
        replace(row, metrics=tuple((dict(row.metrics) | dict(found[place])).items()))
        if (place := (row.variant, row.card)) in found
        else row
        for row in rows
        if row.stage != "counters"
    )


@frozen
class Sweep(Tabular):
    """All of a store.

    Attributes:
        identity: What all rows have in common: program, target, card, versions.
        space: The search space, as TOML.
        cards: Those that rows were measured on.
        rows: One for each measurement or refusal, in their order.
        schema_version: Of the JSON form.
    """

    shown_by = "sweep"
    rows_by = "eatss.tune.exchange:sweep_rows"

    identity: Identity
    space: str
    cards: tuple[CardSeen, ...]
    rows: Rows
    schema_version: int = 1

    def __repr__(self) -> str:
        known, measured = self.identity, sum(row.measured for row in self.latest)
        about = f"{known.program}: target {known.target}, {known.dtype}, on {known.card}"
        return f"<Sweep {about}; {len(self.rows)} rows, {measured} variants measured>"

    @property
    def latest(self) -> Rows:
        """One row a variant and card: the careful one where there is one; no references."""
        return latest_of(self.rows)


def cost(row: Row, by: ObjectiveName) -> float:
    """Return what is to be small: s, J or J·s; infinite if it is not known.

    Failures cost infinitely much, however quickly they came. What is not over 0 was not read.
    """
    return measured_cost(row.time_s, row.energy_j, by) if row.measured else math.inf


def measured_cost(time_s: float | None, energy_j: float | None, by: str) -> float:
    """Return s, J or J·s of what was read; infinite where it was not."""
    time_s, energy_j = (one if one is not None and one > 0 else None for one in (time_s, energy_j))
    return MEASURES[by].of(time_s, energy_j)


def predicted_cost(metrics: Metrics, by: str) -> float:
    """Return what metrics say that the model predicted; infinite where it did not."""
    found = dict(metrics)
    return measured_cost(found.get("predicted_time_s"), found.get("predicted_energy_j"), by)


def ranked(rows: Iterable[Row], by: ObjectiveName) -> Rows:
    """Return rows, the best first; those whose cost is not known last, in their order."""
    return tuple(sorted(rows, key=lambda row: cost(row, by)))
