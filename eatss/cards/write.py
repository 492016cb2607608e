"""Profiles as TOML: a whole one, or one with its calibration put in its place."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log10
from pathlib import Path

import tomlkit
from tomlkit.items import InlineTable, Table

from eatss.base.codec import JsonObject
from eatss.base.diagnostics import input_error
from eatss.base.files import write_whole
from eatss.base.text import BYTES_OF_UNIT
from eatss.cards.document import calibration_to_document, profile_to_document
from eatss.cards.profile import COEFFICIENTS, FIGURES_IN_WORDS, Calibration, GpuProfile

_HEAD = """\
A GPU profile of eatss. Edit it and give its path: eatss select FILE.c --gpu ./{name}.toml
Units stand in the names. Sizes are bytes, or a text such as "192 KiB" (1024-based).
Every figure names its source, a table below; what is not known may be left out where it says so."""

DIGITS = 5
"""Significant digits of what was measured."""


def profile_toml(profile: GpuProfile) -> str:
    """Return the whole profile as TOML to keep and edit: it reads back as it is.

    Comments tell what each figure is.
    """
    document = _document(profile)
    if profile.calibration is not None:
        document["calibration"] = _calibration(profile.calibration, said=float)
    return tomlkit.dumps(document)


def profile_text(profile: GpuProfile, calibration: Calibration, text: str | None = None) -> str:
    """Return the TOML of a profile with a calibration.

    Args:
        profile: the card.
        calibration: what was measured of it.
        text: a TOML of the profile; all of it but the table ``[calibration]`` stays as it is,
            comments too. A new text is made if not given.
    """
    document = _document(profile) if text is None else tomlkit.parse(text)
    document["calibration"] = _calibration(calibration)
    return tomlkit.dumps(document)


def write_profile(path: Path, profile: GpuProfile, calibration: Calibration) -> None:
    """Write a calibrated profile; a text that is there keeps all but its calibration.

    Raises:
        InputError: ``EATSS-C008``: it cannot be written.
    """
    try:
        there = path.read_bytes().decode("utf-8") if path.is_file() else None
        write_whole(path, profile_text(profile, calibration, there).encode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise input_error("EATSS-C008", f"cannot write {path}: {reason}") from None


def _document(profile: GpuProfile) -> tomlkit.TOMLDocument:
    plain = profile_to_document(profile)
    plain.pop("calibration", None)
    document = tomlkit.document()
    for line in _HEAD.format(name=profile.name).splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    for key, value in plain.items():
        document[key] = _figures(value) if key == "figures" else value
    return document


def _figures(figures: dict[str, JsonObject]) -> Table:
    table = tomlkit.table()
    for name, entry in figures.items():
        title, unit = FIGURES_IN_WORDS[name]
        value = _size(entry["value"]) if unit in BYTES_OF_UNIT else entry["value"]
        table[name] = _inline({**entry, "value": value})
        table[name].comment(title)
    return table


def _size(number: int) -> int | str:
    """Return a number of bytes in the largest unit that it is whole in."""
    for unit, size in reversed(BYTES_OF_UNIT.items()):
        if number % size == 0:
            return f"{number // size} {unit}"
    return number


def _calibration(calibration: Calibration, said: Callable[[float], float] | None = None) -> Table:
    said = said or rounded
    plain = calibration_to_document(calibration)
    coefficients = plain.pop("coefficients")
    table = tomlkit.table()
    for key, value in plain.items():
        table[key] = said(value) if isinstance(value, float) else value
    inner = tomlkit.table()
    for name, entry in coefficients.items():
        inner[name] = _inline({key: said(value) for key, value in entry.items()})
        unit, meaning = COEFFICIENTS[name]
        inner[name].comment(f"{unit}: {meaning}")
    table["coefficients"] = inner
    return table


def _inline(entry: JsonObject) -> InlineTable:
    table = tomlkit.inline_table()
    table.update(entry)
    return table


def rounded(value: float) -> float:
    """Return a number with :data:`DIGITS` significant digits."""
    if not value:
        return 0.0
    return round(value, DIGITS - 1 - floor(log10(abs(value))))
