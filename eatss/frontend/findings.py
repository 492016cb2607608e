"""Gathers the findings of a run, so that all are reported and not only the first."""

from __future__ import annotations

from eatss.diagnostics import Diagnostic, InputError, Severity, SourceSpan
from eatss.frontend.codes import Code
from eatss.frontend.source import SourceText

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
        code: Code,
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
            code=code.value,
            message=message,
            severity=severity,
            span=span,
            source_line=line,
            hint=hint,
        )
        self._found.setdefault((diagnostic.code, message, span), diagnostic)

    def warn(
        self, code: Code, message: str, *, span: SourceSpan | None = None, hint: str | None = None
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
        found = [d for d in self._found.values() if d.severity is severity]
        found.sort(key=lambda d: (d.span is None, d.span.line if d.span else 0, _column(d)))
        return tuple(found)

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        errors = self.errors
        if errors:
            raise InputError(*errors[:_MAX_ERRORS])


def _column(diagnostic: Diagnostic) -> int:
    return diagnostic.span.column if diagnostic.span is not None else 0
