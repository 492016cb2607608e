"""Copies of several elements at a time, in shares of a turn, and tiles at the edges of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.pieces import NameTable
from eatss.lower.promotion import CopyLoop, copy_loop
from eatss.lower.recipe import CodegenOptions
from eatss.plan.stage import LEAST_IN_A_ROW, MOST_IN_PIECES, copied_in_rows
from eatss.program import Constant, Program, evaluate
from eatss.verify.result import Verification
from tests.lower.checking import checked, right

pytestmark = pytest.mark.usefixtures("analysed_once")

Generate = Callable[..., Program]

COUNTS = st.one_of(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 3, 5, 12, 24, 48]), st.integers(1, 70))
LENGTHS = st.one_of(
    st.sampled_from([2, 4, 8, 16, 64, 6, 7, 24, 40, 48, 96, 192]), st.integers(1, 130)
)
THREADS = st.one_of(st.sampled_from([32, 64, 96, 128, 192, 256]), st.integers(1, 96))


def taken_together(vectors: int, threads: int) -> int:
    """Return how many neighbouring threads can share rows of so many vectors evenly."""
    even = (one for one in range(1, vectors + 1) if vectors % one == 0 and threads % one == 0)
    return max(even)


def fills_rows(rows: int, columns: int, threads: int, width: int) -> bool:
    """Tell whether threads copy rows, or pieces of them that are long enough, all as many."""
    if rows == 1 or columns == 1 or columns % width:
        return False
    lanes = taken_together(columns // width, threads)
    few = rows * (columns // width) <= MOST_IN_PIECES * threads
    pieces = lanes * width in range(LEAST_IN_A_ROW, columns) and few
    return (lanes * width == columns or pieces) and rows * lanes % threads == 0


def copied(walk: CopyLoop, threads: int) -> list[list[tuple[int, ...]]]:
    """Return the places that each turn of each thread begins at."""
    found = []
    for thread in range(threads):
        turns = range(evaluate(walk.lower, {"thread": thread}), walk.count, walk.step)
        known = [{"thread": thread, walk.counter: turn} for turn in turns]
        found.append([tuple(evaluate(one, names) for one in walk.places) for names in known])
    return found


@given(COUNTS, LENGTHS, THREADS, st.sampled_from([2, 4]))
def test_neighbouring_threads_copy_what_follows_in_a_row_and_every_element_once(
    rows: int, columns: int, threads: int, width: int
) -> None:
    planned = copied_in_rows((rows, columns), threads, width)
    assert planned == fills_rows(rows, columns, threads, width)
    if not planned:
        return
    walk = copy_loop((rows, columns), threads, "thread", NameTable(), width)
    assert isinstance(walk.lower, Constant)
    assert walk.unrolled
    lanes = taken_together(columns // width, threads)
    assert lanes * width >= min(columns, LEAST_IN_A_ROW)
    found = copied(walk, threads)
    assert sorted(chain(*found)) == list(product(range(rows), range(0, columns, width)))
    for places in zip(*found, strict=True):  # those of a turn
        for at in range(0, threads, lanes):
            (row, column), *others = places[at : at + lanes]
            assert others == [(row, column + width * one) for one in range(1, lanes)]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), THREADS)
def test_boxes_of_any_dimensions_are_copied_once(sizes: list[int], threads: int) -> None:
    walk = copy_loop(sizes, threads, "thread", NameTable())
    assert sorted(chain(*copied(walk, threads))) == list(product(*map(range, sizes)))
    if sum(size > 1 for size in sizes) > 2:
        assert not walk.unrolled
        assert not copied_in_rows(sizes, threads, 2)


@given(COUNTS, LENGTHS, THREADS, st.sampled_from([(2, 2), (4, 2), (4, 4), (1, 2), (1, 4)]))
def test_every_part_of_a_record_is_copied_once(
    rows: int, columns: int, threads: int, widths: tuple[int, int]
) -> None:
    width, record = widths
    if width > 1 and not copied_in_rows((rows, columns), threads, width // record):
        return
    walk = copy_loop((rows, columns, record), threads, "thread", NameTable(), width, record)
    found = []
    for row, column, part in chain(*copied(walk, threads)):
        found += [(row, *divmod(record * column + part + one, record)) for one in range(width)]
    assert sorted(found) == list(product(range(rows), range(columns), range(record)))


STAGED: dict[str, Any] = {"share": {"k": 1}, "placements": {"A": "shared", "B": "shared"}}
COMPLEX = """
#ifndef N
#define N 256
#endif
void f(TYPE C[N][N][2], TYPE A[N][N][2], TYPE B[N][N][2])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      C[i][j][0] = 0;
      C[i][j][1] = 0;
      for (int k = 0; k < N; k++) {
        C[i][j][0] += A[i][k][0] * B[k][j][0] - A[i][k][1] * B[k][j][1];
        C[i][j][1] += A[i][k][0] * B[k][j][1] + A[i][k][1] * B[k][j][0];
      }
    }
#pragma endscop
}
"""


@pytest.mark.parametrize(("dtype", "rows"), [("float", (36, 132)), ("double", (34, 130))])
def test_parts_of_complex_numbers_are_in_one_row(
    dtype: str, rows: tuple[int, int], tmp_path: Path
) -> None:
    program = checked(
        COMPLEX.replace("TYPE", dtype),
        tmp_path,
        [{"N": 64}, {"N": 48}, {"N": 17}, {"N": 1}],
        tiles={"i": 64, "j": 64, "k": 16},
        block={"i": 16, "j": 16},
        stages=2,
        strict_fp=True,  # without tensor cores
        **STAGED,
    )
    assert f"A[2][64][{rows[0]}];" in program.text
    assert f"B[2][16][{rows[1]}];" in program.text
    assert {*re.findall(r"eatss_copy_wide_ahead\(&sh\.(.)", program.text)} == {*"AB"}
    assert not any("not as predicted" in str(one.notes) for one in program.kernels)


def test_parts_that_several_statements_read_are_planned_as_they_are_staged(tmp_path: Path) -> None:
    text = """
    void f(int n, float O[n][n][2], float I[n][n][2], float w[5][5]) {
    #pragma scop
      for (int i = 2; i < n - 2; i++)
        for (int j = 2; j < n - 2; j++)
          for (int a = 0; a < 5; a++)
            for (int b = 0; b < 5; b++) {
              O[i][j][0] += w[a][b] * I[i + a - 2][j + b - 2][0];
              O[i][j][1] += w[a][b] * I[i + a - 2][j + b - 2][1];
            }
    #pragma endscop
    }"""
    sizes = [{"n": 70}, {"n": 41}, {"n": 5}, {"n": 4}]
    program = checked(text, tmp_path, sizes, placements={"I": "shared"})
    assert "sh.I" in program.text
    assert not any("not as predicted" in str(one.notes) for one in program.kernels)


RECURRENCE = """
void f(int n, float C[n][n], float D[n][n], float A[n][n][4]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 1; j < n; j++) {
      C[i][j] = 0.5f * C[i][j - 1] + A[i][j][0] * A[i][j][FIRST];
      if (j < n - 3)
        D[i][j] = 0.5f * D[i][j - 1] + C[i][j] * A[i][j][SECOND] * A[i][j][3];
    }
#pragma endscop
}"""


@pytest.mark.parametrize("parts", [("1", "2"), ("3", "0")])
def test_what_reads_parts_of_records_has_tiles_of_these(
    parts: tuple[str, str], tmp_path: Path
) -> None:
    text = RECURRENCE.replace("FIRST", parts[0]).replace("SECOND", parts[1])
    sizes = [{"n": 70}, {"n": 41}, {"n": 1}, {"n": 0}]
    program = checked(text, tmp_path, sizes, placements={"A": "shared"})
    assert "sh.A_1[" in program.text
    assert not any("not as predicted" in str(one.notes) for one in program.kernels)


PRODUCT = """
#ifndef N
#define N 512
#endif
#ifndef M
#define M 512
#endif
void f(float C[N][M], float A[N + 2][M + ROW], float B[M + 2][M + ROW])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M - LAST; j++)
      for (int k = 0; k < M; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
SIZES = [{"N": n, "M": m} for n, m in ((64, 64), (70, 100), (65, 31))]
"""Some fit tiles; edges cut others in rows and columns, and one is of vectors cut in two."""


def made(
    folder: Path,
    value: str = "A[i][k] * B[k][j]",
    *,
    row: int = 0,
    last: int = 0,
) -> Program:
    text = PRODUCT.replace("ROW", str(row)).replace("VALUE", value).replace("LAST", str(last))
    tiles, block = {"i": 128, "j": 128, "k": 8}, {"i": 8, "j": 16}
    return checked(text, folder, SIZES, tiles=tiles, block=block, stages=2, **STAGED)


def asked(program: Program) -> str:
    """Return what a whole turn asks, in front of the loop and in the turn."""
    front = re.search(r"const int plain = (.*);", program.text)
    (test,) = re.findall(r"if \((.*k0 \+ 8 < M.*)\) \{\n", program.text)[:1]
    return f"{front.group(1) if front else ''} && {test}"


def test_the_edges_of_a_block_are_no_test_of_a_turn(tmp_path: Path) -> None:
    program = made(tmp_path)
    assert not re.search(r"\b[ij]0 \+", asked(program))
    assert "], x0 < N);" in program.text


def test_vectors_that_an_edge_may_cut_are_copied_in_whole_tiles_only(tmp_path: Path) -> None:
    program = made(tmp_path, last=1)
    assert "_or_clear(&sh.B" not in program.text
    assert "eatss_copy_wide_ahead(&sh.B" in program.text  # of tiles that are whole
    assert "j0 + " in asked(program)


def test_boxes_that_begin_elsewhere_are_right(tmp_path: Path) -> None:
    made(tmp_path, "A[i + 1][k] * B[k][j]", row=4)


Check = Callable[..., Verification]

ROWS_PRODUCT = """
#ifndef N
#define N 512
#endif
void f(float C[N][N], float A[N][N], float B[N][N + 1])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""


def of_rows(folder: Path, text: str, columns: int, steps: int, sizes: list[dict[str, int]]) -> str:
    """Return the text of a product in tiles of rows, its results checked."""
    tiles, block = {"i": 16, "j": columns, "k": steps}, {"i": 8, "j": 8}
    card = {"gpu": "rtx4090"}
    return checked(
        text, folder, sizes, bit_equal=True, tiles=tiles, block=block, **STAGED, **card
    ).text


def test_points_are_in_rows_of_vectors(tmp_path: Path) -> None:
    text = of_rows(tmp_path, ROWS_PRODUCT, 32, 8, [{"N": 1}, {"N": 31}, {"N": 64}, {"N": 77}])
    for part in ("j0 + 4 * tj + rj", "float) A[16][12];", "float) B[8][36];"):
        assert part in text
    assert "__shared__ __align__(16)" in text


def test_rows_are_copied_16_bytes_at_a_time(tmp_path: Path) -> None:
    """It is done where rows begin at multiples of them: sizes that are, and others."""
    sizes = [{"N": 63}, {"N": 64}, {"N": 66}, {"N": 68}]
    text = of_rows(tmp_path, ROWS_PRODUCT.replace("N + 1", "N + 4"), 64, 16, sizes)
    assert "eatss_copy_wide(&sh" in text
    assert "wide_A && k0 % 4 == 0" in text


def test_products_of_threads_that_load_operands_ahead_are_right(
    generate: Generate, verify_kernel: Check
) -> None:
    options = CodegenOptions(
        tile_sizes=(("", (("i", 256), ("j", 128), ("k", 8))),), block=(("", (16, 16)),), stages=2
    )
    program = generate("gemm", dtype="float", options=options)
    assert re.search(r"\bA_step\[", program.text)
    sizes = [(256, 256, 24), (270, 145, 21), (133, 97, 13), (5, 3, 1), (34, 50, 0)]
    named = [dict(zip(("NI", "NJ", "NK"), one, strict=True)) for one in sizes]
    right(verify_kernel(program, named))
