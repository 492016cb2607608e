"""What the front end says of the C, said of the Python it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.frontend.options import FrontendResult
from eatss.frontend.python.python_scop import PythonScop
from eatss.frontend.symbolic import SymbolicResult
from eatss.polyhedral.scops import Scop, Statement

_AFFINE = (
    "use sums of counters and parameters with constant factors; // and % by constants, min, max "
    "and a if c else b are fine"
)
_HINTS = {
    "EATSS-F012": _AFFINE,
    "EATSS-F013": _AFFINE,
    "EATSS-F014": _AFFINE,
    "EATSS-F016": "pass it as a parameter: m: eatss.Param",
    "EATSS-F017": "write the choice as an expression: x = a if condition else b",
    "EATSS-F032": "write its expression here, or set it to one before, in each round of the loop",
}
"""Hints that are otherwise for Python than for C."""

C_FILE = "<source>"
"""What C text is called in spans of the front end."""


def in_python(result: FrontendResult, source: PythonScop) -> FrontendResult:
    """Return regions and warnings with places in Python."""
    return FrontendResult(
        scops=tuple(region_in_python(scop, source) for scop in result.scops),
        warnings=tuple(finding_in_python(warning, source) for warning in result.warnings),
    )


def symbolic_in_python(
    result: SymbolicResult, numeric: FrontendResult, source: PythonScop
) -> SymbolicResult:
    """Return regions for any size with places in Python.

    Args:
        result: the regions as they were read.
        numeric: those for the numbers of the source, in Python; a region that is the same for any
            size stays the same object.
        source: the Python.
    """
    same = {id(a): b for a, b in zip(result.numeric.scops, numeric.scops, strict=True)}
    return replace(
        result,
        scops=tuple(same.get(id(scop)) or region_in_python(scop, source) for scop in result.scops),
        numeric=numeric,
        warnings=tuple(finding_in_python(warning, source) for warning in result.warnings),
    )


def region_in_python(scop: Scop, source: PythonScop) -> Scop:
    """Return a region whose spans, and those of its statements, are places in Python."""
    return replace(
        scop,
        span=source.span_of(scop.span),
        statements=tuple(_statement(statement, source) for statement in scop.statements),
    )


def finding_in_python(finding: Diagnostic, source: PythonScop) -> Diagnostic:
    """Return a finding that points at Python; one about a header or nothing stays as it is."""
    if finding.span is None or finding.span.file != C_FILE:
        return finding
    span = source.span_of(finding.span)
    hint = _HINTS.get(finding.code, finding.hint)
    return replace(finding, span=span, source_line=source.text.line(span.line), hint=hint)


@contextmanager
def findings_in_python(source: PythonScop) -> Iterator[None]:
    """Let errors about the C point at the Python.

    Raises:
        InputError: where one is raised inside.
    """
    try:
        yield
    except InputError as error:
        raise InputError(*(finding_in_python(one, source) for one in error.diagnostics)) from None


def _statement(statement: Statement, source: PythonScop) -> Statement:
    return replace(
        statement,
        span=source.span_of(statement.span),
        written_in=PurePath(source.file).name,
        accesses=tuple(
            replace(access, span=source.span_of(access.span)) for access in statement.accesses
        ),
    )
