"""Rows of shared memory that threads load 16 bytes of at a time, and points in such rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.program import Program
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

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
        gpu="rtx4090",
        output=folder,
        tiles={"i": 16, "j": 32, "k": 8},
        block={"i": 8, "j": threads},
        share={"k": 1},
        placements={n: "shared" if n in shared else "l1" for n in "ABv" if f"{n}[" in value},
    )
    found = verify(folder, device="cpu", sizes=SIZES)
    exact = program.kernels[0].bit_exact
    assert (found.status, found.message, found.bit_equal) == ("ok", "", exact)
    return program


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("dtype", "threads", "rows"),
    [("float", 8, (12, 36)), ("double", 8, (10, 34))],
)
def test_points_are_in_rows_of_vectors(
    dtype: str, threads: int, rows: tuple[int, int], tmp_path: Path
) -> None:
    program = made(tmp_path, "A[i][k] * B[k][j]", dtype=dtype, threads=threads)
    values = {"float": "j0 + 4 * tj + rj", "double": "j0 + 2 * tj + 16 * (rj / 2) + rj % 2"}
    assert values[dtype] in program.text
    assert f"{dtype}) A[16][{rows[0]}];" in program.text
    assert f"{dtype}) B[8][{rows[1]}];" in program.text
    assert "__shared__ __align__(16)" in program.text


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("value", "shared"),
    [
        ("A[i][k] * B[k][j]", "A"),  # neighbours of B are in global memory
        ("A[i][k] * B[k][j] * v[j]", "AB"),
        ("A[i][k] * (B[k][j] - B[k][j + 1])", "AB"),  # no vector begins at both
        ("A[i][k] * A[j][k] * v[j]", "A"),
    ],
)
def test_points_are_as_far_apart_as_threads_elsewhere(
    value: str, shared: str, tmp_path: Path
) -> None:
    program = made(tmp_path, value, shared=shared)
    assert "j0 + tj + 8 * rj" in program.text


@pytest.mark.long
def test_rows_are_odd_where_many_threads_read_one_column(tmp_path: Path) -> None:
    few = made(tmp_path / "few", "A[i][k] * A[j][k] * v[j]", shared="A", threads=8)
    many = made(tmp_path / "many", "A[i][k] * A[j][k] * v[j]", shared="A", threads=16)
    assert "[32][12];" in few.text
    assert "[32][9];" in many.text


def wide(folder: Path, stages: int, sizes: list[dict[str, int]], dtype: str = "float") -> str:
    """Return the text of a product whose threads have several vectors, its results checked."""
    text = PRODUCT.replace("TYPE", dtype).replace("VALUE", "A[i][k] * B[k][j]")
    program = eatss.codegen(
        text.replace("N + 1", "N + 4"),
        gpu="h200" if dtype == "float" else "v100",  # that has no tensor cores for doubles
        output=folder,
        tiles={"i": 16, "j": 64, "k": 16},
        block={"i": 8, "j": 8},
        share={"k": 1},
        placements={"A": "shared", "B": "shared"},
        stages=stages,
    )
    found = verify(folder, device="cpu", sizes=sizes)
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)
    return program.text


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float", "j0 + 4 * tj + 32 * (rj / 4) + rj % 4"),
        ("double", "j0 + 2 * tj + 16 * (rj / 2) + rj % 2"),
    ],
)
def test_vectors_of_a_thread_lie_apart(dtype: str, value: str, tmp_path: Path) -> None:
    assert value in wide(tmp_path, 1, [{"N": 1}, {"N": 65}, {"N": 96}], dtype)


@pytest.mark.samples(1)
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_rows_are_copied_16_bytes_at_a_time(stages: int, tmp_path: Path) -> None:
    """It is done where rows begin at multiples of them: sizes that are, and others."""
    text = wide(tmp_path, stages, [{"N": 63}, {"N": 64}, {"N": 66}, {"N": 68}])
    assert ("eatss_copy_wide_ahead(&sh" if stages > 1 else "eatss_copy_wide(&sh") in text
    ahead = f"(k0 + {16 * (stages - 1)})" if stages > 1 else "k0"
    assert f"wide_A && {ahead} % 4 == 0" in text


@pytest.mark.long
def test_bounds_of_a_triangle_stay_and_others_go(tmp_path: Path) -> None:
    """Columns beside the array need no test; steps that a row does not have stay out."""
    source = """
    #ifndef N
    #define N 4096
    #endif
    void f(float C[N][N], float A[N][N], float B[N][N])
    {
    #pragma scop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = i + 1; k < N; k++)
                    C[i][j] += A[k][i] * B[k][j];
    #pragma endscop
    }
    """
    program = eatss.codegen(
        source,
        gpu="h200",
        output=tmp_path,
        tiles={"i": 32, "j": 32, "k": 16},
        block={"i": 8, "j": 8},
        share={"k": 1},
        placements={"A": "shared", "B": "shared"},
    )
    found = verify(tmp_path, device="cpu", sizes=[{"N": 5}, {"N": 32}, {"N": 49}, {"N": 100}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)
    sums = program.text.partition("C_r[ri][rj] += ")[0].rpartition("__syncthreads")[2]
    tests = [line.strip() for line in sums.splitlines() if line.strip().startswith("if (")]
    assert tests == ["if (finite) {"]
    assert "bool finite = k0 + 16 <= N && i0 + 32 <= k0;" in program.text
    assert "if (i < k)" in program.text


def test_rows_and_columns_beside_the_array_run_without_tests(tmp_path: Path) -> None:
    """What is computed there is never stored; no step of the sum is added that is not there."""
    program = made(tmp_path, "A[i][k] * B[k][j]")
    sums = program.text[program.text.index("for (int k = k0;") :]
    sums = sums[: sums.index("__syncthreads")]
    assert "eatss_min(k0 + 8, N)" in sums
    assert "if (" not in sums


@pytest.mark.long
def test_what_runs_once_a_tile_does_not_part_points(tmp_path: Path) -> None:
    """Behind its sums symm reads matrices that are in no box, once a tile."""
    program = eatss.codegen(
        data_directory("kernels") / "symm.c",
        gpu="h200",
        output=tmp_path,
        defines={"DATA_TYPE": "float"},
        tiles={"k": 64, "j": 128, "i": 8},
        block={"k": 8, "j": 16},
        stages=2,
    )
    assert "j0 + 4 * tj" in program.text
    assert "k0 + 8 * tk + rk" in program.text
    assert ", turned" in program.text
    found = verify(
        tmp_path, device="cpu", sizes=[{"NI": n, "NJ": m} for n, m in ((70, 65), (9, 4))]
    )
    assert (found.status, found.message) == ("ok", "")
