"""Rows of shared memory that threads load 16 bytes of at a time, and points in such rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
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


@pytest.mark.parametrize(
    ("dtype", "threads", "rows"),
    [("float", 8, (12, 36))],
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


def test_vectors_of_a_thread_lie_apart(tmp_path: Path) -> None:
    assert "j0 + 4 * tj + 32 * (rj / 4) + rj % 4" in wide(
        tmp_path, 1, [{"N": 1}, {"N": 65}, {"N": 96}], "float"
    )


@pytest.mark.parametrize("stages", [1])
def test_rows_are_copied_16_bytes_at_a_time(stages: int, tmp_path: Path) -> None:
    """It is done where rows begin at multiples of them: sizes that are, and others."""
    text = wide(tmp_path, stages, [{"N": 63}, {"N": 64}, {"N": 66}, {"N": 68}])
    assert ("eatss_copy_wide_ahead(&sh" if stages > 1 else "eatss_copy_wide(&sh") in text
    ahead = f"(k0 + {16 * (stages - 1)})" if stages > 1 else "k0"
    assert f"wide_A && {ahead} % 4 == 0" in text


def test_rows_and_columns_beside_the_array_run_without_tests(tmp_path: Path) -> None:
    """What is computed there is never stored; no step of the sum is added that is not there."""
    program = made(tmp_path, "A[i][k] * B[k][j]")
    sums = program.text[program.text.index("for (int k = k0;") :]
    sums = sums[: sums.index("__syncthreads")]
    assert "eatss_min(k0 + 8, N)" in sums
    assert "if (" not in sums
