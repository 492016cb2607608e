"""Decides which of clang's errors matter."""

from __future__ import annotations

from eatss.diagnostics import SourceSpan
from eatss.frontend.clang import ClangMessage, Unit
from eatss.frontend.codes import Code
from eatss.frontend.findings import Findings
from eatss.frontend.regions import UNKNOWN_PRAGMAS, Region
from eatss.frontend.source import SourceText


def check_messages(
    unit: Unit, source: SourceText, regions: tuple[Region, ...], findings: Findings
) -> None:
    """Record the errors of clang that make a region unreliable."""
    errors = [m for m in unit.messages if m.is_error and m.option != UNKNOWN_PRAGMAS]
    missing = [m for m in errors if m.message.endswith("file not found")]
    for message in errors:
        if message in missing:
            _warn_of_header(message, source, findings)
            continue
        if _matters(message, source, regions):
            _record(message, source, missing, findings)


def _matters(message: ClangMessage, source: SourceText, regions: tuple[Region, ...]) -> bool:
    in_region = message.file == source.file and any(
        r.opening.start <= message.offset <= r.closing.end for r in regions
    )
    return in_region or message.category == "Parse Issue"


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
    if message.file == source.file:
        span = source.span(message.offset, message.offset + 1)
    else:
        span = SourceSpan(
            file=message.file or source.file,
            line=message.line,
            column=message.column,
            end_line=message.line,
            end_column=message.column + 1,
        )
    code = Code.UNDECLARED if undeclared else Code.SYNTAX
    findings.add(code, message.message, span=span, hint=hint)


def _warn_of_header(message: ClangMessage, source: SourceText, findings: Findings) -> None:
    """Warn of a header of the user's own; system headers may be missing."""
    if message.file != source.file or source.data[message.offset : message.offset + 1] != b'"':
        return
    name = message.message.split("'")[1]
    span = source.span(message.offset, message.offset + len(name) + 2)
    findings.warn(Code.MISSING_HEADER, message.message, span=span, hint="pass its folder with -I")
