"""Profiles as TOML: a whole one, or one with its calibration put in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, log10
from pathlib import Path

import tomlkit
from tomlkit.items import Table

from eatss.base.codec import JsonObject
from eatss.base.diagnostics import input_error
from eatss.base.files import write_whole
from eatss.base.text import BYTES_OF_UNIT
from eatss.cards.document import profile_to_document
from eatss.cards.profile import COEFFICIENTS, FIGURES_IN_WORDS, Calibration, GpuProfile

_HEAD = """\
A GPU profile of eatss. Edit it and give its path: eatss select FILE.c --gpu ./{name}.toml
Units stand in the names. Sizes are bytes, or a text such as "192 KiB" (1024-based).
Every figure names its source, a table below; what is not known may be left out where it says so."""

DIGITS = 5
"""Significant digits of what was measured."""


def profile_toml(
    profile: GpuProfile, text: str | None = None, said: Callable[[float], float] = float
) -> str:
    """Return a profile as TOML to keep and edit; comments tell what each figure is.

    Args:
        profile: the card.
        text: a TOML of it; all but the table ``[calibration]`` stays as it is, comments too.
        said: how the numbers of a calibration are told.
    """
    plain = profile_to_document(profile)
    calibration = plain.pop("calibration", None)
    document = tomlkit.parse(text or "")
    for line in () if text else _HEAD.format(name=profile.name).splitlines():
        document.add(tomlkit.comment(line))
    for key, value in {} if text else plain.items():
        document[key] = _figures(value) if key == "figures" else value
    if calibration is not None:
        document["calibration"] = _calibration(calibration, said)
    return tomlkit.dumps(document)


def write_profile(path: Path, profile: GpuProfile, calibration: Calibration) -> None:
    """Write a calibrated profile; a text that is there keeps all but its calibration.

    Raises:
        InputError: ``EATSS-C008``: it cannot be written.
    """
    try:
        there = path.read_bytes().decode("utf-8") if path.is_file() else None
        text = profile_toml(replace(profile, calibration=calibration), there, rounded)
        write_whole(path, text.encode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise input_error("EATSS-C008", f"cannot write {path}: {reason}") from None


def _figures(figures: JsonObject) -> Table:
    rows, words = {}, {}
    for name, row in figures.items():
        words[name], unit = FIGURES_IN_WORDS[name]
        rows[name] = {**row, "value": _size(row["value"])} if unit in BYTES_OF_UNIT else row
    return _table(rows, words)


def _size(number: int) -> int | str:
    """Return a number of bytes in the largest unit that it is whole in."""
    for unit, size in reversed(BYTES_OF_UNIT.items()):
        if number % size == 0:
            return f"{number // size} {unit}"
    return number


def _calibration(calibration: JsonObject, said: Callable[[float], float]) -> Table:
    rows = {
        name: {key: said(value) for key, value in row.items()}
        for name, row in calibration.pop("coefficients").items()
    }
    table = tomlkit.table()
    for key, value in calibration.items():
        table[key] = said(value) if isinstance(value, float) else value
    table["coefficients"] = _table(rows, {name: ": ".join(COEFFICIENTS[name]) for name in rows})
    return table


def _table(rows: JsonObject, comments: Mapping[str, str]) -> Table:
    """Return a table with a line and a comment for each row."""
    table = tomlkit.table()
    for name, row in rows.items():
        table[name] = line = tomlkit.inline_table()
        line.update(row)
        line.comment(comments[name])
    return table


def rounded(value: float) -> float:
    """Return a number with :data:`DIGITS` significant digits."""
    if not value:
        return 0.0
    return round(value, DIGITS - 1 - floor(log10(abs(value))))
