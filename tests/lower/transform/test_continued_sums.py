"""A sum that is added to another one goes on in its registers, if nothing else needs those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.program import Program, load_program
from eatss.verify import verify
from tests.examples import with_long

pytestmark = pytest.mark.usefixtures("analysed_once")

SYMMETRIC = """
#ifndef N
#define N 200
#endif
void product(double alpha, double beta, double C[N][N], double A[N][N], double B[N][N],
             double t[N][N], double u[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            t[i][j] = 0;
            for (int k = 0; k < i; k++) {
                C[k][j] += alpha * A[i][k] * B[i][j];
                t[i][j] += B[k][j] * A[i][k];
            }
            FINISH
        }
#pragma endscop
}
"""
TOGETHER = "C[i][j] = beta * C[i][j] + alpha * A[i][i] * B[i][j] + alpha * t[i][j];"
APART = {
    "other factors": "C[i][j] = beta * C[i][j] + beta * t[i][j];",
    "it is subtracted": "C[i][j] = beta * C[i][j] - alpha * t[i][j];",
    "it is needed twice": "C[i][j] = alpha * t[i][j] + beta * t[i][j];",
    "at fewer points": "if (j > 3) C[i][j] = beta * C[i][j] + alpha * t[i][j];",
}
SMALL: dict[str, Any] = {
    "tiles": {"i": 16, "j": 32, "k": 32},
    "block": (16, 8),
    "placements": {"A": "shared", "B": "shared"},
}


def made(tmp_path: Path, finish: str, **options: Any) -> Program:
    """Write a program and its code, and return that."""
    source = tmp_path / "product.c"
    source.write_text(SYMMETRIC.replace("FINISH", finish), encoding="utf-8")
    eatss.codegen(source, gpu="h200", output=tmp_path / "made", **SMALL, **options)
    return load_program(tmp_path / "made")


@pytest.mark.parametrize(
    "options",
    [
        {"instructions": ["mma_f64_16x8x4"], "stages": 2},
        pytest.param({"stages": 1}, marks=pytest.mark.long),
    ],
)
def test_one_set_of_registers_for_two_sums_is_right(
    options: dict[str, Any], tmp_path: Path
) -> None:
    program = made(tmp_path, TOGETHER, **options)
    assert len(program.kernels) == 1
    assert "sum_C_r" not in program.text
    found = verify(tmp_path / "made", device="cpu", sizes=[{"N": 37}, {"N": 64}])
    assert found.ok, found.message


@pytest.mark.long
@pytest.mark.parametrize("why", with_long(APART, ["other factors", "at fewer points"]))
def test_two_sets_where_the_other_sum_is_something_else_too(why: str, tmp_path: Path) -> None:
    assert "sum_C_r" in made(tmp_path, APART[why], stages=1).text
    sizes = [{"N": 37}, {"N": 70}]
    assert verify(tmp_path / "made", device="cpu", sizes=sizes).ok


@pytest.mark.long
def test_what_else_the_first_sum_is_needed_for_comes_before_the_second_goes_on(
    tmp_path: Path,
) -> None:
    made(tmp_path, f"{TOGETHER} u[i][j] = t[i][j];", stages=1)
    assert verify(tmp_path / "made", device="cpu", sizes=[{"N": 37}, {"N": 70}]).ok


def test_rounding_is_that_of_the_source_where_it_is_asked_for(tmp_path: Path) -> None:
    text = made(tmp_path, TOGETHER, strict_fp=True, stages=1).text
    assert "C_r[rj][rk] += alpha * sh.A" in text


@pytest.mark.long
def test_two_sums_beside_each_other_that_copy_ahead_name_their_tests_apart(tmp_path: Path) -> None:
    source = tmp_path / "product.c"
    text = SYMMETRIC.replace("k < i", "k < N").replace("C[k][j] += alpha * A[i][k] * B[i][j];", "")
    finish = """if (j <= i) C[i][j] = C[i][j] + alpha * t[i][j];
            for (int k = 0; k < N; k++) C[i][j] += alpha * A[k][i] * B[k][j];"""
    text = text.replace("N 200", "N 2000").replace("FINISH", finish)
    source.write_text(text, encoding="utf-8")
    program = eatss.codegen(source, gpu="h200", output=tmp_path / "made")
    assert program.text.count("const int plain") == 2  # each loop its own
    found = verify(tmp_path / "made", device="cpu", sizes=[{"N": 33}])
    assert found.ok, found.message
