"""Whether a store is of what is to be measured, and what differs if it is not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from eatss.codec import encode
from eatss.diagnostics import Diagnostic, InputError, Severity, input_error
from eatss.store.faults import shown
from eatss.store.nouns import Identity

_HASH = re.compile(r"[0-9a-f]{32,}")
_NAMES = {"source_hash": "source", "defines": "defines and headers"}


def differences(stored: Identity, wanted: Identity) -> tuple[tuple[str, str, str], ...]:
    """Return the fields that differ: name, value of the store, value that is wanted."""
    there, here = encode(stored), encode(wanted)
    return tuple(
        (_NAMES.get(name, name), _text(there[name]), _text(here[name]))
        for name in there
        if there[name] != here[name]
    )


def check_identity(path: Path, stored: Identity, wanted: Identity) -> None:
    """Refuse to go on with a store of something else.

    Raises:
        InputError: ``EATSS-D010``, with a note a field that differs.
    """
    found = differences(stored, wanted)
    if found:
        raise differing(
            f"'{shown(path)}' holds a sweep of something else",
            found,
            ("there", "now"),
            hint="write to another file with -o, or measure with what this one was made with",
        )


def differing(
    message: str,
    found: tuple[tuple[str, str, str], ...],
    places: tuple[str, str],
    *,
    hint: str,
) -> InputError:
    """Return the error of two identities: a note a field, with both values."""
    return InputError(
        Diagnostic(code="EATSS-D010", message=message, hint=hint),
        *(
            Diagnostic(
                code="EATSS-D010",
                message=f"{name}: {places[0]} {one}, {places[1]} {other}",
                severity=Severity.NOTE,
            )
            for name, one, other in found
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
