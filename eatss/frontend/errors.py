"""Decides which of clang's errors matter."""

from __future__ import annotations

from pathlib import Path

from eatss.base.diagnostics import SourceSpan
from eatss.frontend.clang import ClangMessage, Found, Unit
from eatss.frontend.findings import Findings, SourceText
from eatss.frontend.regions import UNKNOWN_PRAGMAS, Region

_TOO_DEEP = "#include nested too deeply"
_DIRECTIVES = "Lexical or Preprocessor Issue"
_OWN_WORDS = "User-Defined Issue"


def check_cycles(unit: Unit, source: SourceText, findings: Findings) -> None:
    """Record that headers include one another without end, or are nested beyond clang's limit."""
    message = next((m for m in unit.messages if m.message == _TOO_DEEP), None)
    if message is None:
        return
    chain = unit.deepest_includes
    again = next((k for k in range(len(chain) - 2, -1, -1) if chain[k] == chain[-1]), None)
    text = message.message
    if again is not None:
        names = [f"'{Path(name).name}'" for name in chain[again + 1 : -1]]
        through = f" through {' and '.join(names)}" if names else ""
        text = f"'{Path(chain[-1]).name}' includes itself{through}"
    findings.add(
        "EATSS-F009",
        text,
        span=span_of(message, source),
        hint="write #pragma once into the header, or guard it with #ifndef",
    )


def check_messages(
    unit: Unit, source: SourceText, regions: tuple[Region, ...], findings: Findings
) -> None:
    """Record the errors of clang that make a region unreliable."""
    errors = [m for m in unit.messages if m.is_error and m.option != UNKNOWN_PRAGMAS]
    missing = [m for m in errors if m.message.endswith("file not found")]
    for message in errors:
        if message in missing:
            _warn_of_header(message, source, findings)
        elif _matters(message, source, regions, missing):
            _record(message, source, missing, findings)


def _matters(
    message: ClangMessage,
    source: SourceText,
    regions: tuple[Region, ...],
    missing: list[ClangMessage],
) -> bool:
    """Return whether an error is not one that only a header we lack may have caused."""
    in_region = message.file == source.file and any(
        r.opening.start <= message.offset <= r.closing.end for r in regions
    )
    if message.category == _DIRECTIVES:
        unbalanced = "#" in message.message or message.message.startswith("unterminated")
        return in_region or unbalanced or not missing
    return in_region or message.category in ("Parse Issue", _OWN_WORDS)


def _record(
    message: ClangMessage, source: SourceText, missing: list[ClangMessage], findings: Findings
) -> None:
    undeclared = "undeclared" in message.message or "unknown type" in message.message
    hint = None
    if missing:  # a macro that is missing shows as a syntax error
        names = ", ".join(m.message.split("'")[1] for m in missing)
        hint = f"headers that were not found: {names}; pass their folder with -I"
    elif undeclared:
        hint = "declare it, or pass -I or -D"
    text = message.message
    if message.category == _OWN_WORDS:
        text = f"#error {text}"
    elif message.file == source.file and source.data[message.offset : message.offset + 1] == b"#":
        text = "'#' within a line, where no directive begins"
        hint = 'give the directive a line of its own, or write _Pragma("scop")'
    code = "EATSS-F008" if undeclared else "EATSS-F007"
    findings.add(code, text, span=span_of(message, source), hint=hint)


def span_of(found: Found, source: SourceText, length: int = 1) -> SourceSpan:
    """Return where something stands that clang found, in the main file or in a header."""
    if found.file == source.file:
        return source.span(found.offset, found.offset + length)
    return SourceSpan.in_line(found.file or source.file, found.line, found.column, length)


def _warn_of_header(message: ClangMessage, source: SourceText, findings: Findings) -> None:
    """Warn of a header of the user's own; system headers may be missing."""
    if message.file != source.file or source.data[message.offset : message.offset + 1] != b'"':
        return
    name = message.message.split("'")[1]
    span = source.span(message.offset, message.offset + len(name) + 2)
    findings.warn("EATSS-F091", message.message, span=span, hint="pass its folder with -I")
