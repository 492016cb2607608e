"""Roots and quotients that a loop does not change: where they stand, and when they stay."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from tests.lower.checking import broken, checked

ROWS = """
#include <math.h>
#ifndef N
#define N 20
#endif
#ifndef M
#define M 300
#endif
void f(float y[N][M], float x[N][M], float s[N], float t[N])
{{
#pragma scop
    for (int i = 0; i < N; i++) {{
        s[i] = 0;
        for (int j = 0; j < M; j++)
            s[i] += x[i][j] * x[i][j];
        for (int j = 0; j < M; j++)
            y[i][j] = {value};
    }}
#pragma endscop
}}
"""
SIZES = {"N": 5, "M": 33}, {"N": 1, "M": 1}, {"N": 3, "M": 300}, {"N": 2, "M": 1025}


def made(value: str, folder: Path) -> eatss.Program:
    return checked(ROWS.format(value=value), folder, SIZES)


def test_a_root_of_a_row_is_computed_once_a_thread(tmp_path: Path) -> None:
    program = made("x[i][j] / sqrtf(s[i] / M + 1e-5f)", tmp_path)
    whole = program.text.split("} else {\n        {")[0]
    assert whole.count("= sqrtf(s_v / M + 1e-5f);") == 1
    lines = [line for line in program.text.splitlines() if "y[" in line or "y_row" in line]
    assert lines
    assert not any("sqrtf(" in line and "//" not in line for line in lines)
    assert broken(program, tmp_path, "= sqrtf(s_v / M", "= sqrtf(s_v / 2", [*SIZES]) != "ok"


def test_a_part_that_statements_have_twice_is_one(tmp_path: Path) -> None:
    program = made("(x[i][j] - s[i] / M) * (x[i][j] - s[i] / M)", tmp_path)
    once = [line for line in program.text.splitlines() if "= s_v / M;" in line]
    assert len(once) == program.text.count("float s_v_once")
    assert "- s_v / M)" not in "".join(
        line for line in program.text.splitlines() if "//" not in line
    )


@pytest.mark.parametrize(
    "value",
    [
        "(sqrtf(s[i]) < 1e9f) * j / 2",
        "(!sqrtf(s[i]) + 1) * (j + 1) / 2",
        "((sqrtf(s[i]) < 1e9f) + 16777216) * j",
    ],
)
def test_truth_values_are_integers(value: str, tmp_path: Path) -> None:
    assert "= sqrtf(s_v) <" not in made(value, tmp_path).text


@pytest.mark.parametrize(
    "value",
    [
        "x[i][j] / (x[i][j] * x[i][j] + 1.0f)",  # it moves
        "x[i][j] > 0.0f ? x[i][j] / sqrtf(s[i]) : 0.0f",  # only some come to it
        "x[i][j] * (s[i] * 2.0f + 1.0f)",  # compilers move it
    ],
)
def test_other_parts_stay(value: str, tmp_path: Path) -> None:
    assert "_once" not in made(value, tmp_path).text


def test_integers_are_divided_where_a_row_has_elements_only(tmp_path: Path) -> None:
    text = ROWS.format(value="x[i][j] * sqrtf(100 / s[i])").replace("float s[N]", "int s[N]")
    text = text.replace("x[i][j] * x[i][j]", "x[i][j] > -1e9f")
    program = checked(text, tmp_path, [*SIZES, {"N": 3, "M": 0}])
    assert "sqrtf(" in program.text
    assert "sqrtf_once" not in program.text


def test_results_are_the_same_in_every_bit_where_rounding_is_kept(tmp_path: Path) -> None:
    text = ROWS.format(value="x[i][j] / sqrtf(s[i] / M + 1e-5f) - s[i] / M")
    program = checked(text, tmp_path, SIZES, strict_fp=True, bit_equal=True)
    assert "sqrtf" in program.text
