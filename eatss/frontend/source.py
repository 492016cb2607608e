"""The text of a file: its bytes, spans, and findings about it."""

from __future__ import annotations

import os
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Any, Self

from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    InputError,
    Severity,
    SourceSpan,
    did_you_mean,
    input_error,
)
from eatss.base.files import StrPath, is_c_text, read_regular
from eatss.base.frozen import Numbers, frozen, their_names

# -- findings ----------------------------------------------------------------------------------
# The source text, and the findings of a run about it: all are reported, not only the first.


@frozen
class SourceText:
    """The bytes of one file with the offsets at which its lines start.

    ``written_in`` is the name of another file that it was made from.
    """

    file: str
    data: bytes
    line_starts: Numbers
    is_ascii: bool
    written_in: str = ""

    @classmethod
    def of(cls, file: str, data: bytes, **more: Any) -> Self:
        """Build from the bytes of a file."""
        *starts, _ = accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0)
        return cls(file=file, data=data, line_starts=tuple(starts), is_ascii=data.isascii(), **more)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column (in characters), both from 1, of a byte offset."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if self.is_ascii:
            return line, offset - start + 1
        return line, len(self.data[start:offset].decode("utf-8", "replace")) + 1

    def span(self, start: int, end: int) -> SourceSpan:
        """Return the span of the bytes ``[start, end)``."""
        line, column = self.line_and_column(start)
        end_line, end_column = self.line_and_column(end)
        return SourceSpan(
            file=self.file, line=line, column=column, end_line=end_line, end_column=end_column
        )

    def line_text(self, span: SourceSpan) -> str | None:
        """Return the line, without its end, in which a span of this file begins."""
        if span.file != self.file:
            return None
        start = self.line_starts[min(span.line, len(self.line_starts)) - 1]
        return self.data[start:].partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "replace")

    def text(self, start: int, end: int) -> str:
        """Return the text of the bytes ``[start, end)``."""
        return self.data[start:end].decode("utf-8", "replace")


KINDS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))
"""Codes, messages and hints of findings by their kind."""


def worded(kind: str, words: Mapping[str, object]) -> tuple[str, str, str | None]:
    """Return the code, the message and the hint, if there is one, of a kind of finding."""
    code, *texts = KINDS[kind]
    message, *hints = (text.format_map(words) for text in texts)
    return code, message, "".join(hints) or None


_MAX_ERRORS = 200


class RefusedError(Exception):
    """A construct was refused and reported; unwinds to where reading can go on."""


class Findings:
    """The findings of one run, in the order of discovery, duplicates dropped."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._found: dict[tuple[str, str, SourceSpan | None], Diagnostic] = {}

    def add(self, kind: str, span: SourceSpan | None = None, **words: object) -> None:
        """Record a finding of a kind of :data:`KINDS`, with the words that it takes."""
        code, message, hint = worded(kind, words)
        severity = Severity.WARNING if code.startswith("EATSS-F09") else Severity.ERROR
        diagnostic = Diagnostic(
            code=code,
            message=message,
            severity=severity,
            span=span,
            source_line=None if span is None else self._source.line_text(span),
            hint=hint,
        )
        self._found.setdefault((code, message, span), diagnostic)

    @property
    def errors(self) -> Diagnostics:
        """All errors in the order of the source."""
        return self._sorted(Severity.ERROR)

    @property
    def warnings(self) -> Diagnostics:
        """All warnings in the order of the source."""
        return self._sorted(Severity.WARNING)

    def _sorted(self, severity: Severity) -> Diagnostics:
        found = (d for d in self._found.values() if d.severity is severity)
        return tuple(
            sorted(found, key=lambda d: (d.span.line, d.span.column) if d.span else (inf, 0))
        )

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        errors = self.errors
        if errors:
            raise InputError(*errors[:_MAX_ERRORS])


# -- files -------------------------------------------------------------------------------------
# Reads the file.


MAX_BYTES = 4 * 1024 * 1024


def read_source(source: StrPath) -> SourceText:
    """Return C text, which is called ``<source>``, or that of a regular file.

    Raises:
        InputError: If there is no such file, it is not a regular file, is too large, or
            cannot be read.
    """
    if isinstance(source, str) and is_c_text(source):
        return SourceText.of("<source>", source.encode("utf-8", "surrogateescape"))
    file = os.fspath(source)
    try:
        return SourceText.of(file, read_regular(file, MAX_BYTES))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        beside = their_names(Path(file).parent.glob("*"))
        others = f"name a C source file of at most {MAX_BYTES >> 20} MiB that may be read"
        hint = did_you_mean(Path(file).name, beside) or others
        raise input_error("EATSS-F001", f"cannot read '{file}': {reason}", hint=hint) from None
