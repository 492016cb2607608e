"""What is told of sources for PPCG; values of parameters leave its code alone."""

from __future__ import annotations

import warnings

import pytest

import eatss
from tests.refusals import refusing

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


def test_a_scalar_without_a_loop_of_its_own_is_not_told() -> None:
    assert notes(ROW) == ()


PARAMETERS_PRODUCT = """\
void product(int n, double A[n][n], double B[n][n], double C[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++)
        sum += A[i][k] * B[k][j];
      C[i][j] = sum;
    }
#pragma endscop
}
"""
SWEEP = """\
void sweep(int n, double A[n][n], double B[n][n]) {
#pragma scop
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) {
      double sum = A[i - 1][j] + A[i + 1][j];
      sum += A[i][j - 1] + A[i][j + 1];
      B[i][j] = 0.25 * sum;
    }
#pragma endscop
}
"""
PRODUCT_IN_CONDITION = """\
void limited(int n, double x[n], double y[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    if (n * i < 5000)
      y[i] = x[i];
#pragma endscop
}
"""


def loops(source: str, **options: object) -> list[list[str]]:
    program = eatss.inspect(source, **options)  # type: ignore[arg-type]
    return [[loop.name for loop in fact.loops] for fact in program.facts]


@pytest.mark.parametrize(("source", "n"), [(PARAMETERS_PRODUCT, 4096), (SWEEP, 100)])
def test_values_of_parameters_leave_the_kernels_of_ppcg(source: str, n: int) -> None:
    assert loops(source, parameters={"n": n}) == [["i", "j"]]


def test_the_sizes_of_the_kernels_are_the_given_ones() -> None:
    (fact,) = eatss.inspect(SWEEP, parameters={"n": 1000}).facts
    assert [loop.trip_count for loop in fact.loops] == [998, 998]


def test_a_source_that_only_values_make_affine_is_refused_for_ppcg() -> None:
    with refusing("EATSS-P020"):
        eatss.inspect(PRODUCT_IN_CONDITION, parameters={"n": 65})
    assert eatss.inspect(PRODUCT_IN_CONDITION, parameters={"n": 65}, cut="eatss").facts
