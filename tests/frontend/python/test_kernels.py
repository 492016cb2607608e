"""Kernels said in Python are the regions that they are in C."""

from __future__ import annotations

from pathlib import Path

import islpy as isl
import pytest

from eatss.base.diagnostics import SourceSpan
from eatss.base.shipped import data_directory
from eatss.frontend import parse_source
from eatss.polyhedral import compute_dependences
from eatss.polyhedral.scop import Scop
from eatss.session.session import Session
from tests.frontend.python.kernels_in_python import IN_PYTHON
from tests.frontend.python.running import loaded

SOFTMAX_C = """#include <math.h>
void softmax(int n, int m, double A[n][m], double top[n], double sum[n])
{
#pragma scop
    for (int i = 0; i < n; i++) {
        top[i] = A[i][0];
        for (int j = 1; j < m; j++)
            top[i] = A[i][j] > top[i] ? A[i][j] : top[i];
        sum[i] = 0;
        for (int j = 0; j < m; j++) {
            A[i][j] = exp(A[i][j] - top[i]);
            sum[i] += A[i][j];
        }
        for (int j = 0; j < m; j++)
            A[i][j] /= sum[i];
    }
#pragma endscop
}
"""
SOFTMAX_PYTHON = """@eatss.scop
def softmax(n: eatss.Param, m: eatss.Param, A: eatss.f64["n", "m"],
            top: eatss.f64["n"], sum: eatss.f64["n"]):
    for i in range(n):
        top[i] = A[i, 0]
        for j in range(1, m):
            top[i] = A[i, j] if A[i, j] > top[i] else top[i]
        sum[i] = 0
        for j in range(m):
            A[i, j] = math.exp(A[i, j] - top[i])
            sum[i] += A[i, j]
        for j in range(m):
            A[i, j] /= sum[i]
"""


def positive(scop: Scop, piece: isl.UnionMap) -> isl.UnionMap:
    """Restrict a relation to sizes that are not zero, which C's numbers are not."""
    sizes = " and ".join(f"{name} >= 1" for name in scop.parameters)
    names = ", ".join(scop.parameters)
    known = isl.Set(f"[{names}] -> {{ : {sizes} }}", scop.isl_context)
    return piece.intersect_params(known)


def relations(scop: Scop) -> dict[str, str]:
    """Return all relations of a region as texts, statements by number."""
    numbers = {statement.name: f"S{i}" for i, statement in enumerate(scop.statements)}
    found: dict[str, isl.UnionMap] = {}
    for statement in scop.statements:
        name = numbers[statement.name]
        found[f"{name} order"] = isl.UnionMap.from_map(statement.schedule)
        for i, access in enumerate(statement.accesses):
            found[f"{name} {i} {access.kind.value} {access.array}"] = isl.UnionMap.from_map(
                access.relation
            )
    dependences = compute_dependences(scop)
    for kind in ("flow", "anti", "output"):
        found[kind] = getattr(dependences, kind)
    texts = {}
    for key, relation in found.items():
        text = str(positive(scop, relation))
        for old, new in sorted(numbers.items(), reverse=True):
            text = text.replace(f"{old}[", f"{new}_[")
        texts[key] = text
    return texts


def assert_same(one: Scop, other: Scop) -> None:
    assert set(one.parameters) == set(other.parameters)
    mine, theirs = relations(one), relations(other)
    assert set(mine) == set(theirs)
    for key, text in mine.items():
        context = isl.Context()
        a, b = (isl.UnionMap(piece, context) for piece in (text, theirs[key]))
        assert a.is_equal(b), f"{key}\n{text}\n{theirs[key]}"


@pytest.mark.parametrize("kernel", [*IN_PYTHON][::3])
def test_a_kernel_is_the_same_region_in_python_and_in_c(kernel: str) -> None:
    in_c = Session(data_directory("kernels") / f"{kernel}.c").parsed_symbolic.scops[0]
    in_python = Session(IN_PYTHON[kernel]).parsed_symbolic.scops[0]
    assert_same(in_python, in_c)


def test_softmax_is_the_same_region_in_python_and_in_c(tmp_path: Path) -> None:
    in_python = Session(loaded(SOFTMAX_PYTHON, tmp_path, "softmax")).parsed.scops[0]
    assert_same(in_python, parse_source(SOFTMAX_C).scops[0])


def test_another_region_is_not_the_same() -> None:
    in_c = Session(data_directory("kernels") / "mvt.c").parsed_symbolic.scops[0]
    other = parse_source(
        Session(IN_PYTHON["mvt"]).c_source.replace("A[j][i]", "A[i][j]")  # type: ignore[union-attr]
    ).scops[0]
    with pytest.raises(AssertionError, match="read A"):
        assert_same(other, in_c)


@pytest.mark.parametrize("kernel", IN_PYTHON)
def test_every_place_of_a_region_is_a_place_in_python(kernel: str) -> None:
    source = IN_PYTHON[kernel]
    lines = Path(source.file).read_text(encoding="utf-8").splitlines()
    scop = Session(source).parsed.scops[0]

    def text(span: SourceSpan) -> str:
        assert span.file == source.file
        assert span.line == span.end_line
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]

    assert lines[scop.span.line - 1].startswith(f"def {source.name}(")
    for statement in scop.statements:
        assert statement.span.file == source.file
        assert lines[statement.span.line - 1].lstrip().startswith(statement.accesses[0].array)
        for access in statement.accesses:
            written = text(access.span).replace("][", ", ")
            assert written == access.text.replace("][", ", ")
