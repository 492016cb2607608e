"""Errors of code generation at a place of the source."""

from __future__ import annotations

from eatss.diagnostics import Diagnostic, InputError, InternalError, SourceSpan


def input_error_at(
    code: str, message: str, *, span: SourceSpan | None, hint: str | None = None
) -> InputError:
    """Return an error of the user's input at a place of the source."""
    return InputError(Diagnostic(code=code, message=message, span=span, hint=hint))


def internal_error_at(code: str, message: str, *, span: SourceSpan | None) -> InternalError:
    """Return the error for a check that failed: a fault of eatss."""
    return InternalError(Diagnostic(code=code, message=f"internal error: {message}", span=span))
