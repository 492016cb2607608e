"""Text for people: sizes of memory, times, and nothing that could steer a terminal."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import TypeAlias

Texts: TypeAlias = tuple[str, ...]
"""Several texts, in order."""

NamedTexts: TypeAlias = tuple[tuple[str, str], ...]
"""Texts, each with what it is called."""


def printable(text: str) -> str:
    """Return a text whose control characters, which could steer a terminal, are spelled out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\t\n" else c.encode("unicode_escape").decode() for c in text
    )


BYTES_OF_UNIT = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""Bytes of each unit that sizes are told in, the smallest first."""


def bytes_text(size: int) -> str:
    """Return a size as people say it: ``48 KiB``, ``40 MiB``, ``100 bytes``."""
    scale, unit = 1, "bytes"
    for name, one in BYTES_OF_UNIT.items():
        if size >= one:
            scale, unit = one, name
    return f"{size / scale:.4g} {unit}"


def counted(count: int, noun: str, several: str = "") -> str:
    """Return a number of things, ``1 block`` or ``2 blocks``."""
    return f"{count} {noun if count == 1 else several or noun + 's'}"


def equations(pairs: Iterable[tuple[str, object]], between: str = ", ") -> str:
    """Return names and values, ``N=4000, M=20``."""
    return between.join(f"{name}={value}" for name, value in pairs)


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?")
_UNITS_S = {None: 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration_s(text: str) -> float | None:
    """Return the seconds of a duration, seconds where it names no unit; ``None``: it is none."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else float(found[1]) * _UNITS_S[found[2]]


def one_line(error: object, most: int = 200) -> str:
    """Return what an error says in one line, its class where it says nothing."""
    return " ".join(str(error).split())[:most] or type(error).__name__


def class_and_line(error: object, most: int = 200) -> str:
    """Return the class of an error and what it says, in one line."""
    said = " ".join(str(error).split())[:most]
    return f"{type(error).__name__}: {said}".removesuffix(": ")


def as_text(value: str | bytes) -> str:
    """Return what a library tells as bytes or text as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


Edit: TypeAlias = tuple[int, int, str]
"""Where a piece of a text begins and ends, and what stands there instead."""


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with pieces in the place of others; what is inside such a place is left."""
    pieces = []
    done = 0
    for first, last, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if first >= done:
            pieces += [text[done:first], new]
            done = last
    return "".join((*pieces, text[done:]))


def csv_text(columns: Iterable[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a table as CSV, titles first; what is ``None`` is empty."""
    buffer = StringIO()
    writer = csv.DictWriter(buffer, [*columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
