"""Several elements are copied at a time where rows begin at multiples of them, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.lower.cooperative_copy import wide_copy_loop
from eatss.program import Constant, Program, evaluate
from eatss.recipe.options import CodegenOptions
from eatss.resources import data_directory
from eatss.schedule.names import NameTable
from eatss.verify import Verification, verify

Generate = Callable[..., Program]
Check = Callable[..., Verification]

OPTIONS = CodegenOptions(
    tile_sizes=(("", (("i", 32), ("j", 32), ("k", 16))),),
    block=(("", (16, 8)),),
    instructions=("mma_f64_16x8x16",),
    stages=2,
)
EVEN = [{"NI": 64, "NJ": 64, "NK": 48}, {"NI": 70, "NJ": 38, "NK": 36}]
ODD = [{"NI": 64, "NJ": 65, "NK": 33}, {"NI": 37, "NJ": 66, "NK": 49}]


@given(
    st.sampled_from([1, 2, 4, 8, 16, 32, 3, 5]),
    st.sampled_from([2, 4, 8, 16, 64, 6, 7]),
    st.sampled_from([32, 64, 96, 256]),
)
def test_every_element_is_copied_once(rows: int, columns: int, threads: int) -> None:
    walk = wide_copy_loop((rows, columns), threads, "thread", NameTable(), 2)
    if walk is None:
        whole = threads % max(1, columns // 2) == 0 and rows * columns % (2 * threads) == 0
        assert rows == 1 or columns % 2 or not whole
        return
    assert isinstance(walk.lower, Constant)
    found = []
    for thread, turn in product(range(threads), range(0, walk.count, walk.step)):
        known = {"thread": thread, walk.counter: turn}
        row, column = (evaluate(place, known) for place in walk.places)
        assert column % 2 == 0
        found += [(row, column), (row, column + 1)]
    assert sorted(found) == list(product(range(rows), range(columns)))


def test_even_and_odd_rows_are_right(generate: Generate, verify_kernel: Check) -> None:
    program = generate("gemm", options=OPTIONS)
    assert "const bool wide_A = eatss_is_aligned(A) && NK % 2 == 0;" in program.text
    assert verify_kernel(program, EVEN + ODD).ok


def test_a_copy_that_begins_elsewhere_is_seen(generate: Generate, broken: Check) -> None:
    program = generate("gemm", options=OPTIONS)
    found = broken(program, "eatss_is_aligned(A) && NK % 2 == 0", "true", ODD)
    assert not found.ok


@pytest.mark.parametrize(("columns", "wide"), [(4000, True), (4001, False)])
def test_rows_of_known_length_decide_by_themselves(columns: int, wide: bool) -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        defines={"NI": 4000, "NJ": columns, "NK": 4000},
        tiles={"i": 64, "j": 64, "k": 16},
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x16"],
    )
    kernel = program.text.partition("__global__")[2]
    assert "wide_A" in kernel
    assert ("wide_B" in kernel) == wide or "NJ % 2" in kernel


def test_rows_of_boxes_are_whole_multiples(generate: Generate) -> None:
    text = generate("gemm", options=OPTIONS).text
    rows = re.findall(r"EATSS_TRACKED\(double\) [AB](?:\[\d+\])*\[(\d+)\];", text)
    assert len(rows) == 2
    assert all(int(row) % 2 == 0 for row in rows)


STAR = "A[i - 1][j] + A[i + 1][j] + A[i][j - 1] + A[i][j + 1]"
NEST = "for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) "


def staged(loops: str, arguments: str, folder: Path) -> str:
    """Return the copy of ``A`` in a program that stages it, which does what C does."""
    text = f"#ifndef N\n#define N 600\n#endif\nvoid f({arguments}) {{\n#pragma scop\n{loops}\n"
    (folder / "f.c").write_text(text + "#pragma endscop\n}\n", encoding="utf-8")
    program = eatss.codegen(
        folder / "f.c", gpu="h200", output=folder / "out", placements={"A": "shared"}
    )
    names = {parameter.name for parameter in program.parameters}
    sizes = [dict.fromkeys(names, size) for size in (2, 3, 67)]
    found = verify(folder / "out", device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")
    return program.text.partition("__global__")[2].partition("__syncthreads")[0]


def test_the_box_of_a_star_is_loaded_as_a_whole(tmp_path: Path) -> None:
    copy = staged(NEST + f"B[i][j] = {STAR};", "double A[N][N], double B[N][N]", tmp_path)
    assert "if (j0 >= 1 && j0 + 33 <= N && i0 + 33 <= N && i0 >= 1)" in copy
    assert "||" not in copy  # beside the array, each element is tested for the array's own bounds


@pytest.mark.long
def test_an_array_without_end_and_a_box_hardly_read_are_tested_element_by_element(
    tmp_path: Path,
) -> None:
    unknown = staged(NEST + f"B[i][j] = {STAR};", "double A[][N], double B[N][N]", tmp_path)
    assert "||" in unknown
    diagonal = "for (int k = 0; k < 8; k++) for (int i = 1; i < N; i++) B[k][i] = A[i][i];"
    assert "if (x" in staged(diagonal, "double A[N][N], double B[8][N]", tmp_path)
