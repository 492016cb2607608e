"""Whether sweeps are of the same thing, and several of these, of cards of a kind, as one."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eatss.base.codec import encode
from eatss.base.diagnostics import Diagnostic, InputError, Severity, input_error
from eatss.base.frozen import frozen
from eatss.tune.store.faults import shown
from eatss.tune.store.nouns import Identity, Row, Rows, Sweep
from eatss.tune.store.stored_rows import stored_row

_HASH = re.compile(r"[0-9a-f]{32,}")
_NAMES = {"source_hash": "source", "defines": "defines and headers"}


def check_identity(path: Path, stored: Identity, wanted: Identity) -> None:
    """Refuse to go on with a store of something else.

    Raises:
        InputError: ``EATSS-D010``, with a note a field that differs.
    """
    _check_alike(
        f"'{shown(path)}' holds a sweep of something else",
        ("there", stored),
        ("now", wanted),
        hint="write to another file with -o, or measure with what this one was made with",
    )


def _check_alike(
    message: str, first: tuple[str, Identity], second: tuple[str, Identity], *, hint: str
) -> None:
    """Refuse two identities that differ: a note a field, with both values."""
    one, other = encode(first[1]), encode(second[1])
    differing = [name for name in one if one[name] != other[name]]
    if not differing:
        return
    raise InputError(
        Diagnostic(code="EATSS-D010", message=message, hint=hint),
        *(
            Diagnostic(
                code="EATSS-D010",
                message=f"{_NAMES.get(name, name)}: {first[0]} {_text(one[name])}, "
                f"{second[0]} {_text(other[name])}",
                severity=Severity.NOTE,
            )
            for name in differing
        ),
    )


def check_space(path: Path, stored: str, wanted: str) -> None:
    """Refuse a space of other variables; one of other values, or filters, takes the place.

    Raises:
        InputError: ``EATSS-D011``.
    """
    there, here = variables(stored), variables(wanted)
    if stored == wanted or (there is not None and there == here):
        return
    raise input_error(
        "EATSS-D011",
        f"'{shown(path)}' holds a sweep of another space: its variables are "
        f"{_listed(there)}, now {_listed(here)}",
        hint="write to another file with -o; a space of the same variables may have other values",
    )


def variables(space: str) -> set[str] | None:
    """Return the names of the iterators; ``None`` where the text is no space in TOML."""
    try:
        found = tomllib.loads(space).get("iterators")
    except tomllib.TOMLDecodeError:
        return None
    return set(found) if isinstance(found, dict) else None


def _listed(names: set[str] | None) -> str:
    return "not known" if names is None else ", ".join(sorted(names)) or "none"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    text = str(value)
    return text[:12] if _HASH.fullmatch(text) else text or "none"


@frozen
class _Part:
    """The rows that a sweep adds; ``start_s`` is the ``at_s`` of the last one known before."""

    rows: Rows
    start_s: float = 0.0

    @property
    def cards(self) -> set[str | None]:
        """The cards of the rows; of refused rows only, that of none."""
        found: set[str | None] = {row.card for row in self.rows if row.card is not None}
        return found or {row.card for row in self.rows}

    @property
    def created(self) -> str:
        """When the first row was done; what is not known comes last."""
        return min((row.created for row in self.rows if row.created), default="~")


def merged(sweeps: Sequence[tuple[str, Sweep]]) -> Sweep:
    """Return sweeps, each with its name, as one: the first with what the others have besides.

    Rows tell their card by its ``uuid``, so those of several cards stay apart. The same row in two
    sweeps, to its last digit, is one measurement. The space is that of the first. Where sweeps were
    on one card, ``at_s`` of a later one, by ``created``, goes on where the earlier one ended.

    Raises:
        InputError: ``EATSS-D010``, they are of different things; ``EATSS-D011``, of spaces with
            other variables.
    """
    (first, start), *others = sweeps
    rows = list(start.rows)
    parts = [_Part(rows=start.rows)]
    cards = {card.uuid: card for card in start.cards}
    for name, sweep in others:
        _check_alike(
            f"'{first}' and '{name}' are sweeps of different things",
            (first, start.identity),
            (name, sweep.identity),
            hint="only what was measured of the same thing, in the same way, goes into one store",
        )
        check_space(Path(first), start.space, sweep.space)
        cards = {card.uuid: card for card in sweep.cards} | cards
        new = _not_in(rows, sweep.rows)
        known = Counter(map(id, sweep.rows)) - Counter(map(id, new))
        start_s = max((row.at_s for row in sweep.rows if id(row) in known), default=0.0)
        parts.append(_Part(rows=tuple(new), start_s=start_s))
        rows += new
    return Sweep(
        identity=start.identity,
        space=start.space,
        cards=tuple(cards.values()),
        rows=tuple(row for part in _one_after_another(parts) for row in part),
    )


def _one_after_another(parts: Sequence[_Part]) -> list[Rows]:
    """Return rows with times (``at_s``) that lie behind those of earlier sweeps on a card."""
    ends: dict[str | None, float] = {}
    placed = {}
    for number in sorted(range(len(parts)), key=lambda one: parts[one].created):
        part = parts[number]
        known = [ends[card] for card in part.cards if card in ends]
        overlaps = bool(known) and min(row.at_s for row in part.rows) < max(known)
        shift_s = max(0.0, max(known) - part.start_s) if overlaps else 0.0
        moved = tuple(
            replace(row, at_s=row.at_s + shift_s) if shift_s else row for row in part.rows
        )
        placed[number] = moved
        last = max((row.at_s for row in moved), default=0.0)
        ends |= {card: max(last, ends.get(card, 0.0)) for card in part.cards}
    return [placed[number] for number in range(len(parts))]


def _not_in(known: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are not known, in their order; equal ones are known as often."""
    left = Counter(map(_sign, known))
    new = []
    for row in rows:
        key = _sign(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(row)
    return new


def _sign(row: Row) -> tuple[object, ...]:
    """Return what a row is told by; ``at_s`` may have been shifted, unless nothing says when."""
    return tuple(stored_row(replace(row, at_s=0.0) if row.created else row))
