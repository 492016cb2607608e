"""Diagnostics in the manner of clang, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from eatss.codec import encode
from eatss.diagnostics import Diagnostic, Piece, Severity, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What ``--diagnostics json`` prints on standard error."""

    diagnostics: tuple[Diagnostic, ...]


_STYLE = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold magenta",
    Severity.NOTE: "bold cyan",
}
_STYLES: Mapping[Piece, str] = {
    "place": "bold",
    "message": "bold",
    "code": "dim",
    "gutter": "dim",
    "source": "default",
    "caret": "bold green",
    "hint": "bold cyan",
    "plain": "",
}


def diagnostics_text(diagnostics: Sequence[Diagnostic]) -> Text:
    """Return findings as clang prints them: place, message, source line, caret, hint."""
    return Text("\n").join(_one(d) for d in diagnostics)


def diagnostics_json(diagnostics: Sequence[Diagnostic]) -> str:
    """Return findings as a JSON object with the key ``diagnostics``."""
    return json.dumps(encode(Findings(diagnostics=tuple(diagnostics))), indent=2)


def _one(diagnostic: Diagnostic) -> Text:
    text = Text()
    for words, kind in pieces(diagnostic):
        style = _STYLE[diagnostic.severity] if kind == "severity" else _STYLES[kind]
        text.append(words, style=style)
    return text
