"""The wording of what is wrong with a profile.

pydantic says which rule a value breaks; this says it in the user's terms, with the
place in the file and what to write instead. Codes:

========== =====================================================
EATSS-G006 unknown key
EATSS-G007 missing key
EATSS-G008 wrong type or unit
EATSS-G009 outside the range any card can have
EATSS-G010 two parts of the profile contradict each other
EATSS-G011 a source or note that leads nowhere
EATSS-G012 a schema version that this eatss does not read
========== =====================================================

Where in a TOML text a key stands, so that a finding can point at it.

``tomllib`` keeps no positions. This reads lines only: table headers, keys at the
start of a line, and keys inside an inline table on that line. Where a text is
written in a way this does not follow, the nearest enclosing table is the answer,
and no answer is a possible answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eatss.base.diagnostics import Diagnostic, SourceSpan, did_you_mean
from eatss.base.frozen import frozen
from eatss.cards.profile import FIGURES, SCHEMA_VERSION, Calibration, Coefficient

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_KEY = re.compile(rf"^\s*(?P<path>{_PART}(?:\s*\.\s*{_PART})*)\s*=")


@frozen
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


TOP_LEVEL_KEYS = (
    "schema_version",
    "name",
    "title",
    "aliases",
    "architecture",
    "compute_capability",
    "figures",
    "sources",
    "notes",
    "calibration",
)
_CALIBRATION_KEYS = tuple(Calibration.__dataclass_fields__)
_COEFFICIENT_KEYS = tuple(Coefficient.__dataclass_fields__)

_RANGE_WORDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
_UNITS = {
    "_bytes": 'in bytes, or as a text with a unit: "192 KiB"',
    "_mhz": "in MHz",
    "_gb_s": "in GB/s (10^9 bytes a second)",
    "_gflops": "in GFLOP/s",
    "_w": "in watts",
}


@frozen
class Origin:
    """What a document was read from: ``text`` is there when it came from a file."""

    label: str
    text: str | None = None


def finding(
    code: str, message: str, path: tuple[str, ...], origin: Origin, hint: str | None = None
) -> Diagnostic:
    """Return a finding about the key ``path``, with its place where the origin is a file."""
    place = None if origin.text is None else find_place(origin.text, path, origin.label)
    if place is None:
        return Diagnostic(code=code, message=f"{origin.label}: {message}", hint=hint)
    return Diagnostic(
        code=code, message=message, span=place.span, source_line=place.source_line, hint=hint
    )


def from_pydantic(detail: Mapping[str, Any], origin: Origin) -> Diagnostic:
    """Word one error of pydantic."""
    path = tuple(str(part) for part in detail["loc"])
    code, message, hint = _word(detail, path)
    return finding(code, message, path, origin, hint)


def _word(detail: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, str, str | None]:
    kind, value, context = detail["type"], _show(detail["input"]), detail.get("ctx", {})
    dotted = ".".join(path)
    wording: tuple[str, str, str | None]
    match kind:
        case _ if detail["input"] is None and path[0] == "figures" and path[-1] == "value":
            # as JSON can say, and TOML cannot: an unknown figure is left out
            absent = f"leave out {path[1]} if no source gives it"
            return "EATSS-G008", f"{dotted} is null", absent
        case "missing":
            return _missing(path)
        case "extra_forbidden":
            return _unknown_key(path)
        case "literal_error":
            message = f"{dotted} is {value}; this eatss reads {SCHEMA_VERSION}"
            wording = ("EATSS-G012", message, f"schema_version = {SCHEMA_VERSION}")
        case "size" | "size_unit":
            hint = f"write {context['instead']}" if "instead" in context else _unit_hint(path)
            wording = ("EATSS-G008", f"{dotted} = {value} {detail['msg']}", hint)
        case "string_pattern_mismatch":
            wording = ("EATSS-G008", f"{dotted} = {value} is not understood", _form_hint(path))
        case _ if kind in _RANGE_WORDS:
            key, words = _RANGE_WORDS[kind]
            message = f"{dotted} = {value}, but a card has {words} {context[key]:.15g}"
            wording = ("EATSS-G009", message, _unit_hint(path))
        case _:
            message = f"{dotted} must be {_WANTED.get(kind, detail['msg'])}, not {value}"
            wording = ("EATSS-G008", message, _type_hint(kind, path, value))
    return wording


def _missing(path: tuple[str, ...]) -> tuple[str, str, str | None]:
    *table, key = path
    where = f" in {'.'.join(table)}" if table else ""
    hint = None
    if key == "source":
        hint = "every figure names its source, a key of [sources]"
    elif table == ["figures"]:
        hint = f'{key} = {{ value = …, source = "…" }}'
    return "EATSS-G007", f"{key} is missing{where}", hint


def _unknown_key(path: tuple[str, ...]) -> tuple[str, str, str | None]:
    known: tuple[str, ...] = TOP_LEVEL_KEYS
    if path[0] == "calibration" and len(path) > 1:
        known = _CALIBRATION_KEYS if len(path) == 2 else _COEFFICIENT_KEYS
    elif len(path) == 2:
        known = FIGURES
    elif len(path) > 2:
        known = ("title", "url") if path[0] == "sources" else ("value", "source")
    hint = did_you_mean(path[-1], known, "known here")
    return "EATSS-G006", f"unknown key {'.'.join(path)}", hint


def _form_hint(path: tuple[str, ...]) -> str:
    if path[-1] == "compute_capability":
        return 'write it as "9.0"'
    if path[0] in ("name", "aliases"):
        return "a name has lower-case letters, digits and . _ - only"
    return "write it without control characters"


def _type_hint(kind: str, path: tuple[str, ...], value: str) -> str | None:
    if kind == "model_type" and path[0] == "figures":
        return f'{path[-1]} = {{ value = {value}, source = "…" }}'
    return _unit_hint(path)


def _unit_hint(path: tuple[str, ...]) -> str | None:
    for part in path:
        for ending, words in _UNITS.items():
            if part.endswith(ending):
                return f"{part} is given {words}"
    return None


def _show(value: object) -> str:
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # Python writes no decimal number of more than 4300 digits
        text = "a number of thousands of digits"
    text = text.replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
