"""What ``eatss select`` says of sums in scalars that PPCG cannot tile."""

from __future__ import annotations

import warnings

import pytest

import eatss
from eatss.analysis.analyse import SlowLoop
from eatss.base.diagnostics import Severity, SourceSpan

PRODUCT = """\
void product(int n, double alpha, double A[n][n], double B[n][n], double C[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++)
        sum += A[i][k] * B[k][j];
      C[i][j] = VALUE;
    }
#pragma endscop
}
"""
ROW = """\
void row(int n, double A[n][n], double B[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 1; j < n - 1; j++) {
      double sum = A[i][j - 1] + A[i][j + 1];
      B[i][j] = sum * 0.5;
    }
#pragma endscop
}
"""


def notes(source: str) -> tuple[eatss.Diagnostic, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eatss.select(source, gpu="h200").warnings


@pytest.mark.parametrize(
    ("value", "rewrite"),
    [
        ("sum", "add up in C[i][j] itself, without 'sum': "),
        ("alpha * sum", "make 'sum' an array that has an element for each, sum[i][j]: "),
    ],
)
def test_a_sum_in_a_scalar_is_told_with_its_rewrite(value: str, rewrite: str) -> None:
    (note,) = notes(PRODUCT.replace("VALUE", value))
    assert (note.code, note.severity) == ("EATSS-A010", Severity.NOTE)
    assert note.message == (
        "the loop k of kernel0 is not tiled because of 'sum' (lines 5, 7 and 8): "
        "each iteration of i and j sets it anew"
    )
    assert note.span is not None
    assert note.span.line == 5
    assert (note.hint or "").startswith(rewrite)


def test_a_scalar_without_a_loop_of_its_own_is_not_told() -> None:
    assert notes(ROW) == ()


def test_a_note_names_one_line_as_one() -> None:
    place = SourceSpan(file="f.c", line=3, column=1, end_line=3, end_column=9)
    loop = SlowLoop(
        kernel="k0",
        loop="i",
        effect="runs in one thread",
        array="x",
        dependence="iteration i needs i - 1",
        spans=(place, place),
        rewrite="double the array",
    )
    assert loop.note().text() == (
        "f.c:3:1: note: the loop i of k0 runs in one thread because of 'x' (line 3): "
        "iteration i needs i - 1 [EATSS-A010]\n  hint: double the array"
    )
