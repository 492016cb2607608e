"""Diagnostics in the manner of clang, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from eatss.codec import encode
from eatss.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.report.render import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What ``--diagnostics json`` prints on standard error."""

    diagnostics: tuple[Diagnostic, ...]


_STYLE = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold magenta",
    Severity.NOTE: "bold cyan",
}
_LONGEST_LINE = 160


def diagnostics_text(diagnostics: Sequence[Diagnostic]) -> Text:
    """Return findings as clang prints them: place, message, source line, caret, hint."""
    return Text("\n").join(_one(d) for d in diagnostics)


def diagnostics_json(diagnostics: Sequence[Diagnostic]) -> str:
    """Return findings as a JSON object with the key ``diagnostics``."""
    return json.dumps(encode(Findings(diagnostics=tuple(diagnostics))), indent=2)


def _one(diagnostic: Diagnostic) -> Text:
    text = Text()
    if diagnostic.span is not None:
        text.append(printable(f"{diagnostic.span}: "), style="bold")
    text.append(f"{diagnostic.severity.value}: ", style=_STYLE[diagnostic.severity])
    text.append(printable(diagnostic.message), style="bold")
    text.append(f" [{diagnostic.code}]", style="dim")
    if diagnostic.span is not None and diagnostic.source_line is not None:
        text.append("\n")
        text.append(_excerpt(diagnostic.source_line, diagnostic.span))
    if diagnostic.hint is not None:
        text.append("\n  hint: ", style="bold cyan")
        text.append(printable(diagnostic.hint))
    return text


def _excerpt(source_line: str, span: SourceSpan) -> Text:
    """Return the source line with a caret below; a long line is cut around the caret."""
    line = "".join(c if c.isprintable() else " " for c in source_line.rstrip("\n"))
    start = min(span.column - 1, len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    first = max(0, start - _LONGEST_LINE // 2) if len(line) > _LONGEST_LINE else 0
    shown = line[first : first + _LONGEST_LINE]
    width = max(1, min(end, first + _LONGEST_LINE) - start)
    number = f"{span.line:>5} | "
    text = Text(number, style="dim")
    text.append(shown, style="default")
    text.append("\n" + " " * (len(number) - 2) + "| ", style="dim")
    text.append(" " * (start - first) + "^" + "~" * (width - 1), style="bold green")
    return text
