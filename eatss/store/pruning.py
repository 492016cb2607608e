"""Which rows of a store are no longer wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from eatss.diagnostics import input_error
from eatss.frozen import frozen
from eatss.store.conditions import Order, ranked
from eatss.store.nouns import Row, Sizes, latest_of

_UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_Group: TypeAlias = tuple[str, str | None, Sizes]
_AGE = re.compile(r"(\d{1,9})([mhdw])")


@frozen
class Unwanted:
    """What is not wanted any more.

    Attributes:
        failed: Rows without a time that counts.
        keep_best: Measured variants but so many of each card and size, the best ones by ``by``.
        by: What is best.
        older_than: Rows that were done before; those whose time is not known stay.
    """

    failed: bool = False
    keep_best: int | None = None
    by: Order = "energy"
    older_than: datetime | None = None


@frozen
class Pruned:
    """Places of rows to remove, each once: under the first of the reasons that it has."""

    failed: tuple[int, ...]
    worse: tuple[int, ...]
    old: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(sorted((*self.failed, *self.worse, *self.old)))


def pruned(rows: Sequence[Row], unwanted: Unwanted) -> Pruned:
    """Return which rows are not wanted.

    Variants with a role (the default, the paper's choice, ours) and references are never among the
    worse ones: everything is compared with them. The best are those of each card and problem size.
    Hardware counters that were read apart live and die with their variant on that card.
    """
    kept = _kept_variants(rows, unwanted)
    failed: list[int] = []
    worse: list[int] = []
    old: list[int] = []
    reasons: dict[tuple[str, str | None], list[list[int] | None]] = {}
    counters = []
    for place, row in enumerate(rows):
        reason: list[int] | None = None
        if row.stage == "counters":
            counters.append(place)
            continue
        if unwanted.failed and not row.measured:
            reason = failed
        elif kept is not None and row.measured and _group(row) not in kept:
            reason = worse
        elif unwanted.older_than is not None and _before(row.created, unwanted.older_than):
            reason = old
        if reason is not None:
            reason.append(place)
        reasons.setdefault((row.variant, row.card), []).append(reason)
    for place in counters:  # they go with the last row of their variant
        of_variant = reasons.get((rows[place].variant, rows[place].card), [None])
        if all(reason is not None for reason in of_variant) and of_variant[-1] is not None:
            of_variant[-1].append(place)
    return Pruned(failed=tuple(failed), worse=tuple(worse), old=tuple(old))


def moment_before(age: str, now: datetime) -> datetime:
    """Return the moment that is ``30m``, ``12h``, ``30d`` or ``4w`` ago, or a date: ``2026-11-01``.

    Raises:
        InputError: ``EATSS-D014``.
    """
    found = _AGE.fullmatch(age.strip())
    try:
        if found is None:
            return _aware(datetime.fromisoformat(age.strip()))
        return now - timedelta(seconds=int(found[1]) * _UNITS_S[found[2]])
    except (ValueError, OverflowError):
        raise input_error(
            "EATSS-D014",
            f"--older-than '{age}' is no age",
            hint="write 30m, 12h, 30d or 4w, or a date: 2026-11-01",
        ) from None


def _kept_variants(rows: Sequence[Row], unwanted: Unwanted) -> set[_Group] | None:
    if unwanted.keep_best is None:
        return None
    found: dict[tuple[str | None, Sizes], list[_Group]] = {}
    for row in ranked(latest_of(rows), unwanted.by):
        if row.measured:
            found.setdefault((row.card, row.sizes), []).append(_group(row))
    best = {group for groups in found.values() for group in groups[: unwanted.keep_best]}
    special = {row.variant for row in rows if row.role or row.stage == "reference"}
    return best | {_group(row) for row in rows if row.variant in special}


def _group(row: Row) -> _Group:
    return row.variant, row.card, row.sizes


def _before(created: str, moment: datetime) -> bool:
    try:
        return _aware(datetime.fromisoformat(created)) < moment
    except ValueError:
        return False


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
