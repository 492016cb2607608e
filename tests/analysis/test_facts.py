"""What the model knows of a kernel, and the sizes that its counts are for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import islpy as isl
import pytest

import eatss
from eatss.analysis.facts import KernelFacts, Memory
from eatss.analysis.work import sizes_of
from eatss.api import inspect
from eatss.base.shipped import data_directory
from eatss.base.targets import TargetName
from eatss.frontend.parse import parse_file
from eatss.report.pages import printed
from eatss.session.session import Session

KERNELS = data_directory("kernels")


def facts_of(loops: str, arguments: str, **options: object) -> KernelFacts:
    source = f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    (facts,) = inspect(source, **options).facts  # type: ignore[arg-type]
    return facts


def classes(facts: KernelFacts) -> dict[str, Memory]:
    return {reference.access: reference.memory for reference in facts.references}


COPY = "for (int i = 0; i < 100; i++) for (int j = 0; j < 100; j++)"


def test_the_cma_loop_is_the_parallel_loop_that_walks_most_references() -> None:
    facts = facts_of(f"{COPY} b[j][i] = a[j][i] + c[i][j];", "double a[100][100], "
                     "double b[100][100], double c[100][100]")  # fmt: skip
    assert facts.cma_loop == "i"
    assert classes(facts) == {"b[j][i]": Memory.L1, "a[j][i]": Memory.L1, "c[i][j]": Memory.SHARED}


def test_an_accumulator_off_the_cma_loop_stays_in_l1() -> None:
    program = inspect(KERNELS / "conv-2d.c")
    (facts,) = program.facts
    assert facts.cma_loop == "w"
    memory = classes(facts)
    assert memory["Out[c][h][w]"] is Memory.L1
    assert memory["Ker[c][kh][kw]"] is Memory.SHARED


def test_references_of_one_cache_line_count_once() -> None:
    (facts,) = [f for f in inspect(KERNELS / "fdtd-2d.c").facts if len(f.references) >= 6]
    assert facts.distinct_references == 4


def test_a_volume_is_a_product_of_sizes_and_exact_where_each_moves_one_subscript() -> None:
    source = """
void f(double o[100][100], double a[103][103], double w[4][4]) {
#pragma scop
  for (int h = 0; h < 100; h++)
    for (int v = 0; v < 100; v++)
      for (int k = 0; k < 4; k++)
        for (int l = 0; l < 4; l++)
          o[h][v] += a[h + k][v + l] * w[k][l];
#pragma endscop
}
"""
    (facts,) = inspect(source).facts
    sizes = {"h": 8, "v": 16, "k": 4, "l": 4}
    found = {v.array: (v.elements.evaluate(sizes), v.exact) for v in facts.references}
    assert found == {"o": (8 * 16, True), "a": (8 * 16 * 4 * 4, False), "w": (4 * 4, True)}


def test_kernels_of_several_regions_are_numbered_through_the_file() -> None:
    region = "#pragma scop\nfor (int i = 0; i < 64; i++) a[i] = 1.0;\n#pragma endscop\n"
    program = inspect(f"void f(double a[64]) {{\n{region}{region}}}\n")
    assert [facts.name for facts in program.facts] == ["kernel0", "kernel1"]
    assert len(program.scops) == 2


COPIES = """
void copies(int b, int n, int m, double x[4096][b][n][m], double y[4096][b][n][m]) {
#pragma scop
  for (int s = 0; s < 4096; s++)
    for (int l = 0; l < b; l++)
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
          y[s][l][i][j] = x[s][l][i][j];
#pragma endscop
}
"""

SWEEPS = """
#ifndef N
#define N 2000
#endif
void sweeps(int steps, double a[N], double b[N]) {
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < N - 1; i++) b[i] = a[i - 1] + a[i + 1];
    for (int i = 1; i < N - 1; i++) a[i] = b[i];
  }
#pragma endscop
}
"""

TRIANGLE = """
void triangle(int n, double a[2 * n][n]) {
#pragma scop
  for (int i = 0; i < 2 * n; i++)
    for (int j = 0; j < n; j++)
      if (j <= i) a[i][j] = 0;
#pragma endscop
}
"""


@pytest.mark.parametrize("target", get_args(TargetName))
def test_open_sizes_are_said_to_be_assumed_with_units_that_people_read(target: TargetName) -> None:
    found = eatss.predict(COPIES, gpu="h200", target=target)
    said = "at b=n=m=64 assumed, --param b=… --param n=… --param m=…"  # 16 GiB
    assert said in repr(found)
    text = printed(found, "table")
    assert said in text
    assert re.search(r"expected [\d.]+ ms, [\d.]+ J", text)
    assert "e+" not in text
    assert found.to_dict()["sizes"][0] == {"name": "b", "value": 64, "assumed": True}
    assert {row["sizes"] for row in found.to_rows()} == {said}


def test_what_is_counted_is_counted_at_the_sizes_that_are_said() -> None:
    first, _ = Session(SWEEPS, cut="eatss").analysed.facts
    assert first.work.launches == 4096
    (triangle,) = Session(TRIANGLE, cut="eatss").analysed.facts
    assert dict(triangle.work.trips) == {"i": 8192, "j": 4096}
    assert triangle.work.arrays[0].elements == 8192 * 4096
    assert triangle.work.statements[0].instances == 8192 * 4096 - 4096 * 4095 // 2


@pytest.mark.parametrize(
    ("known", "values"),
    [
        ("n = 7", [("n", 7, False), ("m", 4096, True)]),
        ("n <= 100 and m >= 2 n", [("n", 100, True), ("m", 4096, True)]),
        ("m >= 5000 and n = 2 m", [("n", 10000, True), ("m", 5000, True)]),
    ],
)
def test_assumed_sizes_are_what_may_be(known: str, values: list[tuple[str, int, bool]]) -> None:
    source = "void f(int n, int m, double a[n][m]) {\n#pragma scop\n"
    source += "  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i][j] = 0;\n"
    (scop,) = parse_file(source + "#pragma endscop\n}\n").scops
    context = isl.Set.read_from_str(scop.isl_context, f"[n, m] -> {{ : {known} }}")
    found = sizes_of([replace(scop, context=context)])
    assert [(one.name, one.value, one.assumed) for one in found] == values


def test_arrays_that_the_card_has_no_room_for_are_warned_of() -> None:
    with pytest.warns(eatss.EatssWarning, match="arrays take 8 TiB at b=n=m=512") as said:
        found = eatss.predict(COPIES, gpu="h200", parameters=dict.fromkeys("bnm", 512))
    assert "EATSS-M026" in str(said[0].message)
    text = printed(found, "table")
    assert re.search(r"expected [\d.]+ (s|h), [\d.]+ [kM]?J", text)
    assert "e+" not in text


@pytest.mark.parametrize(("n", "overflows"), [(46340, False), (46341, True)])
def test_arrays_that_32_bit_subscripts_of_ppcg_overflow_in_are_warned_of(
    n: int, *, overflows: bool
) -> None:
    source = "void f(int n, double a[n][n]) {\n#pragma scop\n"
    source += "  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = 0;\n"
    selection = eatss.select(source + "#pragma endscop\n}\n", gpu="h200", parameters={"n": n})
    assert ("EATSS-M027" in [one.code for one in selection.warnings]) is overflows


@pytest.mark.parametrize(
    ("arguments", "body", "sizes"),
    [
        ("double u[64][64], double *v", "for (int j = 0; j < n; j++) v[i] += u[i][j];", {"n": 64}),
        ("double b[100], double *v", "v[i] = b[2 * i] + b[2 * i + 1];", {"n": 50}),
        (
            "int m, double A[n][m], double b[9]",
            "for (int j = 0; j < m; j++) A[i][j] = b[j] + b[i];",
            {"n": 9, "m": 9},
        ),
        ("float a[n][n][n]", "a[i][0][0] = 0;", {"n": 1024}),  # 2048: 2^33 elements
        ("double a[n]", "if (n > 5000) a[i] = 0;", {"n": 4096}),
    ],
)
def test_assumed_sizes_are_some_that_the_code_takes(
    arguments: str, body: str, sizes: dict[str, int]
) -> None:
    source = f"void f(int n, {arguments}) {{\n#pragma scop\n  for (int i = 0; i < n; i++) {body}\n"
    (scop,) = parse_file(source + "#pragma endscop\n}\n").scops
    assert {one.name: one.value for one in sizes_of([scop])} == sizes


@pytest.mark.parametrize(
    ("value", "width"),
    [
        ("0.5 * x[i] + y[i]", 8),
        ("0.25 * (x[i] + y[i])", 4),  # a compiler has that in floats
        ("0.1 * (x[i] + y[i])", 8),
        ("(float)0.5 * x[i] + y[i]", 4),
        ("0.5f * x[i] + y[i]", 4),
    ],
)
def test_literals_of_type_double_make_floats_compute_in_doubles(value: str, width: int) -> None:
    arrays = "float x[100], float y[100], float z[100]"
    facts = facts_of(f"for (int i = 0; i < 100; i++) z[i] = {value};", arrays)
    (statement,) = facts.work.statements
    assert statement.element_bytes == width
