"""Profiles as TOML: a new one, or one with its calibration put in its place."""

from __future__ import annotations

from math import floor, log10
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from eatss.gpu.calibration import COEFFICIENTS, Calibration
from eatss.gpu.document import calibration_to_document, profile_to_document
from eatss.gpu.profile import GpuProfile

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
    document = tomlkit.parse(text) if text is not None else _document(profile)
    if "calibration" in document:
        del document["calibration"]
    document["calibration"] = _calibration(calibration)
    made = tomlkit.dumps(document).rstrip()
    return made.replace("\n[calibration]", "\n\n[calibration]").replace("\n\n\n", "\n\n") + "\n"


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
