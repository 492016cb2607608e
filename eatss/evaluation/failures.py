"""What failed, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eatss.measurement.measurement import Status
from eatss.store.nouns import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCount:
    """How many variants ended so."""

    status: Status
    variants: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
