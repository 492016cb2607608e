"""Conditions on rows, as ``--where`` takes them: ``tile_i>=32``, ``status=ok``; and their order.

Which rows of a store are no longer wanted follows from them, too.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.objectives import MEASURES, Order
from eatss.tune.point import Configuration, Value
from eatss.tune.store.nouns import Row, Rows, Sizes, Sweep, latest_of

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(>=|<=|!=|==?|<|>)\s*(.*?)\s*")
_FIELDS = (
    *("variant", "status", "role", "stage", "card", "reason", "strategy", "created", "decided"),
    *("time_s", "energy_j", "power_w", "flops", "gflops", "gflops_per_joule"),
    *("time_error", "energy_error", "made_s", "card_s", "card_j", "at_s"),
)


def chosen_rows(sweep: Sweep, conditions: Sequence[str]) -> Rows:
    """Return the rows that meet all conditions.

    A name is a value of the space, a metric, a size, or a field of a row. What a row does not
    have meets no condition.

    Raises:
        InputError: ``EATSS-D013``, a condition is none, or its name is not known.
    """
    parsed = [_parsed(sweep, condition) for condition in conditions]
    return tuple(row for row in sweep.rows if all(meets(row) for meets in parsed))


def rows_of_variant(sweep: Sweep, beginning: str) -> Rows:
    """Return the rows of the variant whose key begins so.

    Raises:
        InputError: ``EATSS-D016``, no key does, or several.
    """
    found = sorted({row.variant for row in sweep.rows if row.variant.startswith(beginning)})
    if len(found) == 1:
        return tuple(row for row in sweep.rows if row.variant == found[0])
    several = f"{len(found)} variants begin" if found else "no variant begins"
    raise input_error(
        "EATSS-D016",
        f"{several} with '{beginning}'",
        hint=f"write more of it: {', '.join(found[:4])}" if found else "'show' alone lists them",
    )


def _parsed(sweep: Sweep, text: str) -> Callable[[Row], bool]:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise input_error(
            "EATSS-D013",
            f"'{text}' is no condition",
            hint="write NAME, one of = != < <= > >=, and a value: --where 'tile_i>=32'",
        )
    name, sign, word = found.groups()
    known = {one for row in sweep.rows for one in _named(row)} | set(_FIELDS)
    if name not in known:
        own = sorted(known - set(_FIELDS))
        raise input_error(
            "EATSS-D013",
            f"no row has a '{name}'",
            hint=f"there are: {', '.join([*own, *_FIELDS])}",
        )
    compare, wanted = _OPERATORS[sign.replace("==", "=")], _value(word)

    def meets(row: Row) -> bool:
        value = _named(row).get(name, getattr(row, name) if name in _FIELDS else None)
        if isinstance(value, str):
            alike = isinstance(wanted, str) or sign in ("=", "==", "!=")
            return alike and compare(value, word)
        return value is not None and not isinstance(wanted, str) and compare(value, wanted)

    return meets


def _named(row: Row) -> Configuration:
    return {**dict(row.sizes), **dict(row.metrics), **dict(row.values)}


def _value(word: str) -> Value:
    try:
        found = json.loads(word)
    except ValueError:
        return word
    return found if isinstance(found, int | float) else word


def cost(row: Row, by: Order) -> float:
    """Return what is to be small: s, J, J·s, or J/GFLOP; infinite if it is not known.

    Failures cost infinitely much, however quickly they came.
    """
    if not row.measured:
        return math.inf
    if by != "ppw":
        return MEASURES[by].of(row.time_s, row.energy_j)
    per_joule = row.gflops_per_joule
    return 1 / per_joule if per_joule else math.inf


def ranked(rows: Iterable[Row], by: Order) -> Rows:
    """Return rows, the best first; those whose cost is not known last, in their order."""
    return tuple(sorted(rows, key=lambda row: cost(row, by)))


def best(rows: Iterable[Row], by: Order) -> Row | None:
    """Return the best row, ``None`` where no cost is known."""
    first = next(iter(ranked(rows, by)), None)
    return None if first is None or math.isinf(cost(first, by)) else first


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
    places: dict[str, list[int]] = {"failed": [], "worse": [], "old": []}
    reasons: dict[tuple[str, str | None], list[str]] = {}
    counters = []
    for place, row in enumerate(rows):
        if row.stage == "counters":
            counters.append(place)
            continue
        reason = ""
        if unwanted.failed and not row.measured:
            reason = "failed"
        elif kept is not None and row.measured and _group(row) not in kept:
            reason = "worse"
        elif unwanted.older_than is not None and _before(row.created, unwanted.older_than):
            reason = "old"
        reasons.setdefault((row.variant, row.card), []).append(reason)
        if reason:
            places[reason].append(place)
    for place in counters:  # they go with the last row of their variant
        of_variant = reasons.get((rows[place].variant, rows[place].card), [""])
        if all(of_variant):
            places[of_variant[-1]].append(place)
    return Pruned(**{reason: tuple(own) for reason, own in places.items()})


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
