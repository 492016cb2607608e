"""Profiles as TOML: a new one, or one with its calibration put in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from eatss.diagnostics import input_error
from eatss.files import write_whole
from eatss.gpu.calibration import COEFFICIENTS, Calibration
from eatss.gpu.document import calibration_to_document, profile_to_document
from eatss.gpu.profile import GpuProfile

_HEADER = re.compile(r"\s*\[")
_CALIBRATION = re.compile(r"\s*\[\s*calibration\s*[.\]]")
DIGITS = 5
"""Significant digits of what was measured."""


def profile_text(profile: GpuProfile, calibration: Calibration, text: str | None = None) -> str:
    """Return the TOML of a profile with a calibration.

    Args:
        profile: the card.
        calibration: what was measured of it.
        text: a TOML of the profile; all of it but the table ``[calibration]`` stays as it is,
            comments too. A new text is made if not given.
    """
    kept = tomlkit.dumps(_document(profile)) if text is None else text
    lines = kept.splitlines(keepends=True)
    first, last = _calibration_lines(lines)
    before, after = "".join(lines[:first]), "".join(lines[last:])
    if first == last and before.strip():
        before = before.rstrip("\n") + "\n\n"
    made = tomlkit.document()
    made["calibration"] = _calibration(calibration)
    return before + tomlkit.dumps(made).rstrip() + "\n" + after


def _calibration_lines(lines: Sequence[str]) -> tuple[int, int]:
    """Return where the tables of a calibration begin and end; the end of all where there are none.

    Comments and blank lines after the last key belong to what follows.
    """
    headers = [n for n, line in enumerate(lines) if _HEADER.match(line)]
    own = [n for n in headers if _CALIBRATION.match(lines[n])]
    if not own:
        return len(lines), len(lines)
    last = next((n for n in headers if n > own[-1]), len(lines))
    while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
        last -= 1
    return own[0], last


def write_profile(path: Path, profile: GpuProfile, calibration: Calibration) -> None:
    """Write a calibrated profile; a text that is there keeps all but its calibration.

    Raises:
        InputError: ``EATSS-C009``: it cannot be written.
    """
    try:
        there = path.read_bytes().decode("utf-8") if path.is_file() else None
        write_whole(path, profile_text(profile, calibration, there).encode())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise input_error("EATSS-C009", f"cannot write {path}: {reason}") from None


def _document(profile: GpuProfile) -> tomlkit.TOMLDocument:
    plain = profile_to_document(profile)
    plain.pop("calibration", None)
    document = tomlkit.document()
    for key, value in plain.items():
        document[key] = _figures(value) if key == "figures" else value
    return document


def _figures(figures: dict[str, dict[str, Any]]) -> Table:
    table = tomlkit.table()
    for name, entry in figures.items():
        table[name] = _inline(entry)
    return table


def _calibration(calibration: Calibration) -> Table:
    plain = calibration_to_document(calibration)
    coefficients = plain.pop("coefficients")
    table = tomlkit.table()
    for key, value in plain.items():
        table[key] = rounded(value) if isinstance(value, float) else value
    inner = tomlkit.table()
    for name, entry in coefficients.items():
        inner[name] = _inline({key: rounded(value) for key, value in entry.items()})
        unit, meaning = COEFFICIENTS[name]
        inner[name].comment(f"{unit}: {meaning}")
    table["coefficients"] = inner
    return table


def _inline(entry: dict[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    table.update(entry)
    return table


def rounded(value: float) -> float:
    """Return a number with :data:`DIGITS` significant digits."""
    if not value:
        return 0.0
    return round(value, DIGITS - 1 - floor(log10(abs(value))))
