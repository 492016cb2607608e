"""Diagnostics in the manner of clang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from eatss.base.diagnostics import Diagnostic, Piece, Severity, pieces

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
    "caret": "bold green",
    "hint": "bold cyan",
}


def print_diagnostics(diagnostics: Sequence[Diagnostic], stream: TextIO) -> None:
    """Print findings so on a stream, coloured on a terminal."""
    console = Console(file=stream, highlight=False, emoji=False)
    for diagnostic in diagnostics:
        text = Text()
        for words, kind in pieces(diagnostic):
            own = _STYLE[diagnostic.severity] if kind == "severity" else _STYLES.get(kind, "")
            text.append(words, own)
        console.print(text, soft_wrap=True)
    stream.flush()
