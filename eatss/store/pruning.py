"""Which rows of a store are no longer wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eatss.diagnostics import input_error
from eatss.store.nouns import Row, latest_of
from eatss.store.ranking import Order, ranked

_UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,9})([mhdw])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """What is not wanted any more.

    Attributes:
        failed: Rows without a time that counts.
        keep_best: Measured variants but so many, the best ones by ``by``.
        by: What is best.
        older_than: Rows that were done before; those whose time is not known stay.
    """

    failed: bool = False
    keep_best: int | None = None
    by: Order = "energy"
    older_than: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    worse ones: everything is compared with them.
    """
    kept = _kept_variants(rows, unwanted)
    failed, worse, old = [], [], []
    for place, row in enumerate(rows):
        if unwanted.failed and not row.measured:
            failed.append(place)
        elif kept is not None and row.measured and row.variant not in kept:
            worse.append(place)
        elif unwanted.older_than is not None and _before(row.created, unwanted.older_than):
            old.append(place)
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


def _kept_variants(rows: Sequence[Row], unwanted: Unwanted) -> set[str] | None:
    if unwanted.keep_best is None:
        return None
    order = dict.fromkeys(
        row.variant for row in ranked(latest_of(rows), unwanted.by) if row.measured
    )
    best = list(order)[: unwanted.keep_best]
    special = {row.variant for row in rows if row.role or row.stage == "reference"}
    return {*best, *special}


def _before(created: str, moment: datetime) -> bool:
    try:
        return _aware(datetime.fromisoformat(created)) < moment
    except ValueError:
        return False


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
