"""Statements and files that the tests of the front end read."""

from __future__ import annotations

from typing import Any

import islpy as isl
import pytest

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral.scop import Scop

HEAD = (
    "void f(int n, int m, double A[100], double B[100][100], double *p, double s, int *idx)\n{\n"
    "  int i, j, k; double t;\n#pragma scop\n"
)
TAIL = "\n#pragma endscop\n}\n"
_DEFAULT = FrontendOptions()


def region(body: str, *, before: str = "", options: FrontendOptions = _DEFAULT) -> Scop:
    """Parse statements inside a function with a few arrays; return the region."""
    return only(before + HEAD + body + TAIL, options)


def warnings_of(body: str) -> tuple[Diagnostic, ...]:
    """Parse statements; return the warnings."""
    return parse_file(HEAD + body + TAIL).warnings


def refused(body: str, *, before: str = "") -> tuple[Diagnostic, ...]:
    """Parse statements that must be refused; return the findings."""
    with pytest.raises(InputError) as caught:
        parse_file(before + HEAD + body + TAIL)
    return caught.value.diagnostics


def only(text: str, options: FrontendOptions = _DEFAULT) -> Scop:
    """Parse a whole file with one region."""
    (scop,) = parse_file(text, options=options).scops
    return scop


def equal(piece: isl.Set | isl.Map, text: str) -> bool:
    """Compare a set or map with one in isl's notation."""
    other: Any = type(piece).read_from_str(piece.get_ctx(), text)
    return bool(other.is_equal(piece))
