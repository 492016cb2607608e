"""Findings of passes after the front end, with the lines of the source that they point at."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import islpy as isl

from eatss.base.diagnostics import Diagnostic, InputError, InternalError, SourceSpan


@contextmanager
def source_lines(what: str = "", span: SourceSpan | None = None) -> Iterator[None]:
    """Add the lines of the source to findings of later passes, and name what isl failed at.

    Raises:
        InternalError: ``EATSS-X002``, isl failed.
    """
    try:
        yield
    except InputError as error:
        raise InputError(*map(with_source_line, error.diagnostics)) from None
    except isl.Error as error:
        message = f"isl failed {what}: {error}"
        raise InternalError(Diagnostic(code="EATSS-X002", message=message, span=span)) from error


def with_source_line(finding: Diagnostic) -> Diagnostic:
    """Add the text of the line that a finding points at."""
    if finding.span is None or finding.source_line is not None:
        return finding
    line = linecache.getline(finding.span.file, finding.span.line).rstrip("\r\n")
    return replace(finding, source_line=line or None)
