"""Factors that products share are multiplied once a sum; what is added to is loaded then.

Factors that are the same for several points are multiplied with each other first.

A sum that is added to another one goes on in its registers, if nothing else needs those.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.program import Program
from tests.lower.checking import checked

TILES = {"i": 32, "j": 32, "k": 16}
SCALED = """
#define N 4000
void f(double alpha, double C[N][N], double A[N][N], double B[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                C[i][j] += alpha * A[i][k] * B[k][j];
#pragma endscop
}
"""


def test_rounding_of_the_source_is_kept_where_it_is_asked_for() -> None:
    strict = eatss.codegen(SCALED, gpu="h200", tiles=TILES, block=(16, 8), strict_fp=True)
    assert "sum_C_r" not in strict.text
    assert strict.kernels[0].bit_exact


LATER = """
void f(int NI, int NJ, int NK, double alpha, double C[NI][NJ], double U[NI][NJ], double A[NI][NK],
       double B[NK][NJ], double D[NI][NK])
{
#pragma scop
    for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++) {
            STATEMENTS
        }
#pragma endscop
}
"""


def test_what_a_sum_begins_with_is_what_it_was_and_sums_that_read_themselves_stay(
    tmp_path: Path,
) -> None:
    source = LATER.replace(
        "STATEMENTS",
        "C[i][j] += U[i][j]; U[i][j] = 0;"
        " for (int k = 0; k < NK; k++) C[i][j] += A[i][k] * B[k][j];",
    )
    checked(source, tmp_path, [{"NI": 37, "NJ": 35, "NK": 17}], tiles=TILES, block=(16, 8))


def test_factors_of_the_same_points_stand_together(tmp_path: Path) -> None:
    source = """
    #ifndef N
    #define N 4096
    #endif
    void f(float C[N][N], float A[N][N], float B[N][N], float v[N], float w[N], float s)
    {
    #pragma scop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < N; k++)
                    C[i][j] += A[i][k] * B[k][j] * v[j];
    #pragma endscop
    }
    """
    how: dict[str, Any] = {"tiles": {"i": 16, "j": 16, "k": 8}, "block": {"i": 4, "j": 4}}
    sizes = [{"N": 7}, {"N": 33}]
    program = checked(source, tmp_path, sizes, bit_equal=False, share={"k": 1}, **how)
    text = re.sub(r"(sh\.)?(\w+)(\[[^\[\]]*\])+", r"\2", program.text)
    assert re.findall(r"C_r \+= (.*);", text) == ["A * (B * v)"] * text.count("C_r +=")
    assert program.kernels[0].regroups


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
SMALL: dict[str, Any] = {
    "tiles": {"i": 16, "j": 32, "k": 32},
    "block": (16, 8),
    "placements": {"A": "shared", "B": "shared"},
}


def made(tmp_path: Path, finish: str, **options: Any) -> Program:
    return checked(SYMMETRIC.replace("FINISH", finish), tmp_path, [{"N": 37}], **SMALL, **options)


def test_one_set_of_registers_for_two_sums_is_right(tmp_path: Path) -> None:
    program = made(tmp_path, TOGETHER, instructions=["mma_f64_16x8x4"], stages=2)
    assert len(program.kernels) == 1
    assert "sum_C_r" not in program.text


def test_two_sets_where_the_other_sum_is_subtracted(tmp_path: Path) -> None:
    finish = "C[i][j] = beta * C[i][j] - alpha * t[i][j];"
    assert "sum_C_r" in made(tmp_path, finish, stages=1).text
