"""Quotients of several points by one value: products with its reciprocal, and the same bits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eatss
from tests.lower.checking import broken, checked

COLUMNS = """
#include <math.h>
#ifndef N
#define N 40
#endif
void f({kind} y[N][N], {kind} x[N][N], {kind} s[N])
{{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            y[i][j] = {value};
#pragma endscop
}}
"""
ROWS = """
#include <math.h>
#ifndef N
#define N 8
#endif
#ifndef M
#define M 512
#endif
void f(float y[N][M], float x[N][M], float s[N])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        s[i] = 0;
        for (int j = 0; j < M; j++)
            s[i] += x[i][j] * x[i][j];
        for (int j = 0; j < M; j++)
            y[i][j] = x[i][j] / sqrtf(s[i] + 1e-5f);
    }
#pragma endscop
}
"""
FOUR = {"tiles": {"k0": {"i": 4, "j": 16}}, "block": {"k0": (1, 16)}}


def made(value: str, kind: str, folder: Path, **how: Any) -> eatss.Program:
    text = COLUMNS.format(value=value, kind=kind)
    return checked(text, folder, [{"N": 40}, {"N": 3}], **{**FOUR, **how})


@pytest.mark.parametrize(("kind", "root"), [("float", "sqrtf"), ("double", "sqrt")])
def test_points_are_divided_without_a_branch_each(kind: str, root: str, tmp_path: Path) -> None:
    value = f"x[i][j] / {root}(s[j])"
    program = made(value, kind, tmp_path, strict_fp=True, bit_equal=True)
    assert program.text.count(f"= eatss_reciprocal<{kind}>({root}_once);") == 1
    assert program.text.count("if (exact == 0) {") == 1
    assert "inverse, exact)" in program.text
    assert broken(program, tmp_path, "if (exact == 0)", "if (false)") == "wrong result"


@pytest.mark.parametrize(
    ("value", "how"),
    [
        ("s[j] / x[i][j]", {}),  # each by another
        ("x[i][j] / sqrt(s[j])", {"tiles": {"k0": {"i": 2, "j": 16}}}),  # two points
        ("y[i][j] / sqrt(s[j])", {"tiles": {"k0": {"i": 32, "j": 16}}}),  # many to be stored
    ],
)
def test_other_quotients_are_divisions(value: str, how: dict[str, Any], tmp_path: Path) -> None:
    assert "eatss_reciprocal<float>(" not in made(value, "float", tmp_path, **how).text


def test_each_vector_of_a_row_is_tested(tmp_path: Path) -> None:
    sizes = [{"N": 5, "M": length} for length in (1, 33, 512, 514)]
    program = checked(ROWS, tmp_path, sizes)
    assert "y_row[rj_at] = eatss_quotient<float>(" in program.text
    kernel = program.text[program.text.index("__global__") :]
    tests = re.findall(r"if \(exact\w* == 0\)", kernel)
    assert kernel.count("eatss_quotient<float>(") == len(tests) > 1
