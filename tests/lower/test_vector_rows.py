"""Rows of shared memory that threads load 16 bytes of at a time, and points in such rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.program import Program
from eatss.verify import verify

PRODUCT = """
#ifndef N
#define N 512
#endif
void f(TYPE C[N][N], TYPE A[N][N], TYPE B[N][N + 1], TYPE v[N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
SIZES = [{"N": 1}, {"N": 31}, {"N": 64}, {"N": 77}]


def made(
    folder: Path, value: str, *, dtype: str = "float", threads: int = 8, shared: str = "AB"
) -> Program:
    text = PRODUCT.replace("TYPE", dtype).replace("VALUE", value)
    program = eatss.codegen(
        text,
        gpu="h200",
        output=folder,
        tiles={"i": 16, "j": 32, "k": 8},
        block={"i": 8, "j": threads},
        placements={n: "shared" if n in shared else "l1" for n in "ABv" if f"{n}[" in value},
    )
    found = verify(folder, device="cpu", sizes=SIZES)
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)
    return program


@pytest.mark.parametrize(
    ("dtype", "threads", "rows"),
    [("float", 8, (12, 36)), ("double", 8, (10, 34))],
)
def test_points_are_in_rows_of_vectors(
    dtype: str, threads: int, rows: tuple[int, int], tmp_path: Path
) -> None:
    program = made(tmp_path, "A[i][k] * B[k][j]", dtype=dtype, threads=threads)
    points = 32 // threads
    assert f"j0 + {points} * tj + rj" in program.text
    assert f"{dtype}) A[16][{rows[0]}];" in program.text
    assert f"{dtype}) B[8][{rows[1]}];" in program.text
    assert "__shared__ __align__(16)" in program.text


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        ("A[i][k] * B[k][j]", "A"),  # neighbours of B are in global memory
        ("A[i][k] * B[k][j] * v[j]", "AB"),
        ("A[i][k] * (B[k][j] - B[k][j + 1])", "AB"),  # no vector begins at both
        ("A[i][k] * A[j][k]", "A"),
    ],
)
def test_points_are_as_far_apart_as_threads_elsewhere(
    value: str, shared: str, tmp_path: Path
) -> None:
    program = made(tmp_path, value, shared=shared)
    assert "j0 + tj + 8 * rj" in program.text


def test_rows_are_odd_where_many_threads_read_one_column(tmp_path: Path) -> None:
    few = made(tmp_path / "few", "A[i][k] * A[j][k]", shared="A", threads=8)
    many = made(tmp_path / "many", "A[i][k] * A[j][k]", shared="A", threads=16)
    assert "[32][12];" in few.text
    assert "[32][9];" in many.text


def test_rows_and_columns_beside_the_array_run_without_tests(tmp_path: Path) -> None:
    """What is computed there is never stored; no step of the sum is added that is not there."""
    program = made(tmp_path, "A[i][k] * B[k][j]")
    sums = program.text[program.text.index("for (int k = k0;") :]
    sums = sums[: sums.index("__syncthreads")]
    assert "eatss_min(k0 + 8, N)" in sums
    assert "if (" not in sums
