"""Diagnostics in the manner of clang."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

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
    "source": "default",
    "caret": "bold green",
    "hint": "bold cyan",
    "plain": "",
}
_ANSI = {"bold": 1, "dim": 2, "red": 31, "green": 32, "magenta": 35, "cyan": 36, "default": 39}


def print_diagnostics(diagnostics: Sequence[Diagnostic], stream: TextIO) -> None:
    """Print findings so on a stream, coloured on a terminal."""
    shown = stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
    if "NO_COLOR" in os.environ or os.environ.get("TERM") in ("dumb", "unknown"):
        shown = False
    for words, style in _styled(diagnostics):
        codes = ";".join(str(_ANSI[word]) for word in style.split())
        stream.write(f"\x1b[{codes}m{words}\x1b[0m" if shown and codes else words)
    stream.write("\n")
    stream.flush()


def _styled(diagnostics: Sequence[Diagnostic]) -> Iterator[tuple[str, str]]:
    """Yield the text of findings with the style of each stretch."""
    for number, diagnostic in enumerate(diagnostics):
        if number:
            yield "\n", ""
        for words, kind in pieces(diagnostic):
            yield words, _STYLE[diagnostic.severity] if kind == "severity" else _STYLES[kind]
