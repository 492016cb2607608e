"""Code of statements that are cut where they meet what they read: the same as the original."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import data_directory
from tests.lower.checking import broken, checked

pytestmark = pytest.mark.usefixtures("analysed_once")

SIZES = [{"N": 1}, {"N": 2}, {"N": 7}, {"N": 40}]


UPDATE = """
#ifndef N
#define N 300
#endif
void f(double A[N][N])
{
#pragma scop
for (int k = 0; k < N; k++)
for (int i = 0; i < N; i++)
for (int j = 0; j < N; j++)
A[i][j] -= 0.25 * A[i][k] * A[k][j];
#pragma endscop
}
"""

APART = UPDATE.replace("k = 0; k < N;", "k = 2; k < N - 2;").replace(
    "-= 0.25 * A[i][k] * A[k][j]", "-= 0.3 * A[i][k - 2] + 0.3 * A[k + 2][j]"
)


@pytest.mark.parametrize("text", [UPDATE, APART])
def test_updates_with_pivots_are_cut_and_right(tmp_path: Path, text: str) -> None:
    program = checked(text, tmp_path, SIZES, bit_equal=True, strict_fp=True, tile_time=False)
    assert all("_" in name for kernel in program.kernels for name in kernel.statements)


def test_floyd_warshall_is_the_same_in_every_bit(tmp_path: Path) -> None:
    kernel = data_directory("kernels") / "floyd-warshall.c"
    program = checked(kernel, tmp_path, SIZES, bit_equal=True)
    assert len(program.kernels) == 3  # diagonal, panels, products


def test_broken_pieces_and_orders_are_found(tmp_path: Path) -> None:
    program = eatss.codegen(UPDATE, gpu="h200", output=tmp_path, strict_fp=True, tile_time=False)
    launches = [one for one in program.text.splitlines() if "EATSS_LAUNCH(f_k" in one]
    assert len(launches) == 8
    stored = "A[i * N + j] -= 0.25 * A[i * N + k] * A[k * N + j];"
    texts = [
        program.text.replace(launches[0], "@")
        .replace(launches[1], launches[0])
        .replace("@", launches[1]),
        program.text.replace(launches[0], ""),
        program.text.replace(stored, ";"),
        program.text.replace("j < k && i < k", "j < k - 1 && i < k"),  # a piece is too small
    ]
    for text in texts:
        assert text != program.text
        assert broken(program, tmp_path, program.text, text, SIZES) != "ok"


def test_what_would_take_too_long_is_left() -> None:
    text = UPDATE.replace(
        "for (int k", "for (int t = 0; t < 5; t++)\nfor (int s = 0; s < 5; s++)\nfor (int k"
    )
    program = eatss.codegen(text, gpu="h200", tile_time=False)
    assert not any("_" in name for kernel in program.kernels for name in kernel.statements)
    assert program.parameters


def test_arrays_are_computed_anew_where_all_are_asked_for() -> None:
    text = (
        "#include <math.h>\n#ifndef N\n#define N 2000\n#endif\n"
        "void f(double A[N][N], double C[N][N])\n{\n    double T[N][N];\n#pragma scop\n"
        "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)\n"
        "    T[i][j] = exp(sin(A[i][j])) + pow(cos(A[i][j]), exp(A[i][j]));\n"
        "for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++)\n"
        "    C[i][j] = T[i - 1][j] + T[i + 1][j] + T[i][j - 1] + T[i][j + 1];\n"
        "#pragma endscop\n}\n"
    )
    said = [
        any("computed anew" in note for kernel in program.kernels for note in kernel.notes)
        for program in (eatss.codegen(text, gpu="h200", recompute=one) for one in ("auto", "all"))
    ]
    assert said == [False, True]
