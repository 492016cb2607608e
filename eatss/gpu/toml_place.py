"""Where in a TOML text a key stands, so that a finding can point at it.

``tomllib`` keeps no positions. This reads lines only: table headers, keys at the
start of a line, and keys inside an inline table on that line. Where a text is
written in a way this does not follow, the nearest enclosing table is the answer,
and no answer is a possible answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eatss.diagnostics import SourceSpan

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_KEY = re.compile(rf"^\s*(?P<path>{_PART}(?:\s*\.\s*{_PART})*)\s*=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A span in a TOML text and the whole line it stands on."""

    span: SourceSpan
    source_line: str


def find_place(text: str, path: tuple[str, ...], file: str) -> Place | None:
    """Return where the key ``path`` stands, or its nearest enclosing key or table."""
    while path:
        place = _exact(text, path, file)
        if place is not None:
            return place
        path = path[:-1]
    return None


def place_at(text: str, line: int, column: int, file: str) -> Place:
    """Return the one-character place at a line and column (from 1) of ``text``."""
    lines = text.splitlines() or [""]
    line = min(max(line, 1), len(lines))
    return _place(lines[line - 1], line, column - 1, column, file)


def _exact(text: str, path: tuple[str, ...], file: str) -> Place | None:
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header is not None:
            table = _split(header["path"])
            if table == path:
                return _place(line, number, header.start("path"), header.end("path"), file)
            continue
        key = _KEY.match(line)
        if key is None:
            continue
        full = table + _split(key["path"])
        if full == path:
            return _place(line, number, key.start("path"), key.end("path"), file)
        if path[:-1] == full:
            inner = re.compile(rf"[{{,]\s*(?P<key>[\"']?{re.escape(path[-1])}[\"']?)\s*=")
            found = inner.search(line, key.end())
            if found is not None:
                return _place(line, number, found.start("key"), found.end("key"), file)
    return None


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(_PART, dotted))


def _place(line: str, number: int, start: int, end: int, file: str) -> Place:
    span = SourceSpan(
        file=file,
        line=number,
        column=start + 1,
        end_line=number,
        end_column=max(end, start + 1) + 1,
    )
    return Place(span=span, source_line=line)
