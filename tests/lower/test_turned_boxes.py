"""Boxes whose rows lie along a thread's points, where those of the array lie along the sum."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.lower.pieces import NameTable
from eatss.lower.promotion import turned_copy_loop
from eatss.plan.stage import (
    PIECE_BYTES,
    TRANSPOSED_MULTIPLE,
    LoopTile,
    StagedReads,
    Tiling,
    copied_in_pieces,
    padded_rows,
)
from eatss.program import Constant, Program, evaluate
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

PRODUCT = """
#ifndef N
#define N 512
#endif
void f(TYPE C[N][N], TYPE A[N][ROW], TYPE B[N][ROW])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = FIRST; k < N; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
BANKS = 32
BANK_BYTES = 4

ODD, EVEN = 1001, 1024
"""Elements of rows of an array that are no whole vectors, and that are."""


def source(value: str, *, dtype: str = "float", first: str = "0", row: int = ODD) -> str:
    text = PRODUCT.replace("TYPE", dtype).replace("VALUE", value)
    return text.replace("FIRST", first).replace("ROW", str(row))


def made(
    folder: Path,
    value: str,
    *,
    tiles: tuple[int, int, int] = (32, 32, 16),
    block: tuple[int, int] = (8, 8),
    stages: int = 1,
    dtype: str = "float",
    first: str = "0",
    row: int = ODD,
) -> Program:
    return eatss.codegen(
        source(value, dtype=dtype, first=first, row=row),
        gpu="h200" if dtype == "float" else "rtx4090",
        output=folder,
        tiles=dict(zip("ijk", tiles, strict=True)),
        block=dict(zip("ij", block, strict=True)),
        share={"k": 1},
        placements={name: "shared" for name in "AB" if f"{name}[" in value},
        stages=stages,
    )


def turned(program: Program) -> list[str]:
    """Return the references whose boxes are turned."""
    return [one.partition(":")[0] for one in program.kernels[0].notes if one.endswith(", turned")]


@given(
    st.sampled_from([8, 16, 32, 64, 128, 6]),
    st.sampled_from([4, 8, 16, 32, 12]),
    st.sampled_from([32, 64, 128, 256, 96]),
    st.sampled_from([4, 8]),
)
def test_every_element_is_copied_once_and_no_bank_is_met_twice(
    rows: int, columns: int, threads: int, element_bytes: int
) -> None:
    piece = PIECE_BYTES // element_bytes
    if not copied_in_pieces(rows, columns, threads, piece):
        return
    walk = turned_copy_loop((rows, columns), 0, threads, "thread", NameTable(), piece)
    assert walk.lower == Constant(0)
    tiling = Tiling(
        mapped=(LoopTile(name="i", tile=rows),),
        serial={"k": columns},
        threads=threads,
        neighbours={"i": True},
    )
    reads = StagedReads(
        along=("i", "k"), moving="ik", across="i", element_bytes=element_bytes, aligned=False
    )
    declared, kept = padded_rows(tiling, reads, (rows, columns))
    assert kept == columns
    together = BANKS * BANK_BYTES // element_bytes
    found = []
    for turn in range(walk.count):
        lanes = []
        for thread in range(threads):
            known = {"thread": thread, walk.counter: turn}
            row, column = (evaluate(place, known) for place in walk.places)
            lanes.append((row, column))
        for at in range(0, threads, piece):  # whole sectors of memory
            (row, column), *others = lanes[at : at + piece]
            assert column % piece == 0
            assert others == [(row, column + one) for one in range(1, piece)]
        for at in range(0, threads, together):
            places = [column * declared + row for row, column in lanes[at : at + together]]
            banks = Counter(place * element_bytes // BANK_BYTES % BANKS for place in places)
            assert max(banks.values()) == 1 or rows < TRANSPOSED_MULTIPLE * 2
        found += lanes
    assert sorted(found) == list(product(range(rows), range(columns)))


def test_factors_that_lie_along_the_sum_are_turned(tmp_path: Path) -> None:
    program = made(tmp_path, "A[i][k] * B[k][j]", stages=2)
    assert sorted(turned(program)) == ["A[i][k]"]
    assert "i0 + 4 * ti + ri" in program.text
    found = verify(tmp_path, device="cpu", sizes=[{"N": 33}, {"N": 64}])
    one_by_one = (
        " + " in "A[i][k] * B[k][j]"
    )  # products are added to the sum in turn, and round otherwise
    assert (found.status, found.message, found.bit_equal) == ("ok", "", not one_by_one)


def test_factors_stay_as_they_are_where_it_does_not_pay(tmp_path: Path) -> None:
    program = made(tmp_path, "A[i][k] * B[k][j]", tiles=(16, 32, 16), block=(8, 8), row=ODD)
    assert turned(program) == []


def test_factors_are_turned_where_sums_leave_few_registers(tmp_path: Path) -> None:
    tiles, block = (64, 128, 16), (8, 8)
    program = made(tmp_path, "A[i][k] * B[k][j]", tiles=tiles, block=block, row=EVEN)
    assert turned(program) == ["A[i][k]"]
    assert "wide_B" in program.text
    assert "wide_A" not in program.text


def test_doubles_and_triangles_are_turned_too(tmp_path: Path) -> None:
    program = made(tmp_path, "A[i][k] * A[j][k]", dtype="double", first="0", stages=3)
    assert turned(program) == ["A[i][k]", "A[j][k]"]
    found = verify(tmp_path, device="cpu", sizes=[{"N": 1}, {"N": 50}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)
