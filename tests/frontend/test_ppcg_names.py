"""Statements have the names that PPCG gives them; it counts more than statements."""

from __future__ import annotations

import pytest

from eatss.frontend import parse_source
from eatss.polyhedral.scop import Scop

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
    (scop,) = parse_source(SHELL.format(region=region, before=before, after=after)).scops
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
        ("for (i = 0; i < 8; i++) { ; A[i] = B[i] = 0; B[i] += 1; }", ["S_1", "S_1", "S_2"]),
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
        ("twice(A);", ("'twice(A)'",)),
    ],
)
def test_what_ppcg_takes_for_one_statement_is_known(region: str, wholes: tuple[str, ...]) -> None:
    called = "void twice(double *x) { for (int i = 0; i < 8; i++) x[i] *= 2; }\n"
    (scop,) = parse_source(called + SHELL.format(region=region, before="", after="")).scops
    assert scop.ppcg_wholes == wholes
