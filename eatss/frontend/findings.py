"""The source text, and the findings of a run about it: all are reported, not only the first."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

from eatss.base.diagnostics import Diagnostic, InputError, Severity, SourceSpan
from eatss.base.frozen import frozen


@frozen
class SourceText:
    """The bytes of one file with the offsets at which its lines start."""

    file: str
    data: bytes
    line_starts: tuple[int, ...]
    is_ascii: bool

    @classmethod
    def of(cls, file: str, data: bytes) -> SourceText:
        """Build from the bytes of a file."""
        starts = [0]
        position = data.find(b"\n")
        while position >= 0:
            starts.append(position + 1)
            position = data.find(b"\n", position + 1)
        return cls(file=file, data=data, line_starts=tuple(starts), is_ascii=data.isascii())

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

    def line_text(self, line: int) -> str:
        """Return a line without its line end."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return self.data[start:end].rstrip(b"\r\n").decode("utf-8", "replace")

    def text(self, start: int, end: int) -> str:
        """Return the text of the bytes ``[start, end)``."""
        return self.data[start:end].decode("utf-8", "replace")


_MAX_ERRORS = 200


class RefusedError(Exception):
    """A construct was refused and reported; unwinds to where reading can go on."""


class Findings:
    """The findings of one run, in the order of discovery, duplicates dropped."""

    def __init__(self, source: SourceText | None) -> None:
        self._source = source
        self._found: dict[tuple[str, str, SourceSpan | None], Diagnostic] = {}

    def add(
        self,
        code: str,
        message: str,
        *,
        span: SourceSpan | None = None,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Record a finding."""
        line = None
        if span is not None and self._source is not None and span.file == self._source.file:
            line = self._source.line_text(span.line)
        diagnostic = Diagnostic(
            code=code,
            message=message,
            severity=severity,
            span=span,
            source_line=line,
            hint=hint,
        )
        self._found.setdefault((diagnostic.code, message, span), diagnostic)

    def warn(
        self, code: str, message: str, *, span: SourceSpan | None = None, hint: str | None = None
    ) -> None:
        """Record a warning."""
        self.add(code, message, span=span, hint=hint, severity=Severity.WARNING)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """All errors in the order of the source."""
        return self._sorted(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """All warnings in the order of the source."""
        return self._sorted(Severity.WARNING)

    def _sorted(self, severity: Severity) -> tuple[Diagnostic, ...]:
        found = (d for d in self._found.values() if d.severity is severity)
        return tuple(
            sorted(found, key=lambda d: (d.span.line, d.span.column) if d.span else (inf, 0))
        )

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        errors = self.errors
        if errors:
            raise InputError(*errors[:_MAX_ERRORS])
