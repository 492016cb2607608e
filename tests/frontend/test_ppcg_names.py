"""Statements are named as PPCG names them, and PolyBench is read in its shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.frontend.symbolic import parse_symbolic
from eatss.polyhedral.scop import Scop
from tests.frontend.reading import equal

# -- Statements have the names that PPCG gives them; it counts more than statements.


SHELL = """\
void f(double A[8], double B[8])
{{
{before}
#pragma scop
{region}
#pragma endscop
{after}}}
"""


def _scop(region: str, *, before: str = "int i, j;", after: str = "") -> Scop:
    (scop,) = parse_file(SHELL.format(region=region, before=before, after=after)).scops
    return scop


@pytest.mark.parametrize(
    ("region", "names"),
    [
        ("for (i = 0; i < 8; i++) A[i] = 0;", ["S_1"]),
        ("for (int k = 0; k < 8; k++) A[k] = 0;", ["S_0"]),
        ("A[0] = 1; for (i = 1; i < 8; i++) A[i] = 0; B[0] = 1;", ["S_0", "S_2", "S_4"]),
        ("for (i = 0; i < 8; i++) { A[i] = 0; for (j = 0; j < i; j++) A[i] += B[j]; }",
         ["S_1", "S_3"]),
        ("for (i = 0; i < 8; i++) { if (i < 4) A[i] = 0; else A[i] = 1; }", ["S_1", "S_2"]),
        ("for (i = 0; i < 8; i++) { double t = B[i]; A[i] = t; }", ["S_2", "S_4"]),
        ("for (i = 0; i < 8; i++) { double t; t = B[i]; A[i] = t; }", ["S_3", "S_4"]),
        ("double t = B[0]; A[0] = t;", ["S_1", "S_2"]),
        ("A[0] = B[0] = 1; B[1] = 0;", ["S_0_0", "S_0", "S_1"]),
    ],
)  # fmt: skip
def test_statements_are_numbered_as_ppcg_numbers_them(region: str, names: list[str]) -> None:
    assert [statement.ppcg_name for statement in _scop(region).statements] == names


def test_a_variable_of_the_block_is_dead_unless_it_is_named_after_the_region() -> None:
    region, before = "t = B[0]; A[0] = t;", "double t;"
    assert _scop(region, before=before).array("t").ppcg_kills
    assert not _scop(region, before=before, after="B[1] = t;\n").array("t").ppcg_kills
    assert not _scop(region, before=before).array("A").ppcg_kills


def test_a_counter_named_after_the_region_is_kept() -> None:
    region = "for (i = 0; i < 8; i++) A[i] = 0;"
    assert _scop(region).ppcg_counters == ()
    assert _scop(region, after="for (i = 0; i < 8; i++) B[i] = 0;\n").ppcg_counters == ("i",)
    assert _scop("for (int i = 0; i < 8; i++) A[i] = 0;", before="").ppcg_counters == ()


def test_what_sets_a_counter_is_counted_with_the_loops_around_it() -> None:
    nest = "for (i = 0; i < 8; i++) for (int k = 0; k < 8; k++) for (j = 0; j < 8; j++) A[j] = 0;"
    assert _scop(nest).ppcg_steps == (("S_0", 0), ("S_1", 2), ("S_3", 3), ("S_4", 1))
    assert _scop("for (int k = 0; k < 8; k++) A[k] = 0;").ppcg_steps == ()


@pytest.mark.parametrize(
    ("region", "wholes"),
    [
        ("if (B[0] > 0) A[0] = 1; else A[0] = 2;", ()),
        ("if (B[0] > 0) for (int k = 0; k < 8; k++) A[k] = 1;", ("'B[0] > 0'",)),
        ("A[1] = A[0] = B[0];", ("'A[1] = A[0] = B[0]'",)),
    ],
)
def test_what_ppcg_takes_for_one_statement_is_known(region: str, wholes: tuple[str, ...]) -> None:
    (scop,) = parse_file(SHELL.format(region=region, before="", after="")).scops
    assert scop.ppcg_wholes == wholes


# -- Files with macros of PolyBench's shape are taken unchanged, in every variant of the macros.


def gemm(*defines: str) -> Scop:
    options = FrontendOptions(defines=defines)
    result = parse_file(Path(__file__).parent / "gemm_shape.c", options)
    assert result.warnings == ()
    return result.scops[0]


def test_default_macros_give_constant_arrays_and_parametric_bounds() -> None:
    scop = gemm()
    assert scop.function == "kernel"
    assert scop.parameters == ("ni", "nj", "nk")
    assert equal(scop.array("A").extent, "{ A[i, j] : 0 <= i < 1024 and 0 <= j < 1200 }")
    assert equal(
        scop.statement("S2").domain,
        "[ni, nj, nk] -> { S2[i, k, j] : 0 <= i < ni and 0 <= k < nk and 0 <= j < nj }",
    )
    assert equal(
        scop.statement("S3").schedule,
        "[ni, nj] -> { S3[i, j] -> [0, i, 3, j, 0, 0, 0] : 0 <= i < ni and 0 <= j < nj }",
    )


PADDED = """
#ifndef PADDING
#define PADDING 0
#endif
#if !defined(N) && !defined(STEPS)
#define N 64
#define STEPS 3
#endif
double w[STEPS];
void f(int n, double a[N + PADDING][N + PADDING]) {
#pragma scop
  for (int i = 0; i < n; i++) a[i][i] = w[STEPS - 1];
#pragma endscop
}
"""


def test_a_size_varies_without_padding_and_the_others_of_its_data_set() -> None:
    assert parse_symbolic(PADDED).values == (("N", 64),)
    padded = parse_symbolic(PADDED, FrontendOptions(defines=("PADDING=2",)))
    assert padded.values == (("N", 64),)


def test_references_inside_macro_calls_are_named_by_what_they_touch() -> None:
    source = """
#define LARGER(x, y) ((x) >= (y) ? (x) : (y))
#define PAIRS(x, y) ((x) + (y) == 3 ? 1 : 0)
#define TWICE_OF(v, at) (2.0 * v[2 * (at - 1) - (-BASE)])
#define BASE n
void best(int n, int t[64][64], char s[64], double w[200]) {
#pragma scop
  for (int i = n - 1; i >= 1; i--)
    for (int j = i + 1; j < n; j++) {
      if (i < j - 1)
        t[i][j] = LARGER(t[i][j], t[i + 1][j - 1] + PAIRS(s[i], s[j]));
      w[j] = TWICE_OF(w, i);
    }
#pragma endscop
}
"""
    best, twice = parse_file(source).scops[0].statements
    texts = {access.text for access in best.accesses}
    assert texts == {"t[i][j]", "t[i + 1][j - 1]", "s[i]", "s[j]"}
    assert {access.text for access in twice.accesses} == {"w[j]", "w[(2 * (i - 1)) - -n]"}
