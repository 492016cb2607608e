"""Boxes in shared memory: transposed, through registers, in the same memory; lanes that read."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.analysis.variant import ALONG_X, ALONG_Y
from eatss.base.shipped import data_directory
from eatss.lower.lanes import interleaved_places, lane_and_warp
from eatss.lower.pieces import NameTable
from eatss.lower.promotion import by_rows
from eatss.plan.stage import (
    PIECE_BYTES,
    TRANSPOSED_MULTIPLE,
    LoopTile,
    StagedReads,
    Tiling,
    copied_in_pieces,
    padded_rows,
)
from eatss.program import Constant, Name, Program, evaluate
from eatss.verify.run import verify
from tests.lower.checking import checked

pytestmark = pytest.mark.usefixtures("analysed_once")

PRODUCT = """
#ifndef N
#define N 512
#endif
void f(float C[N][N], float A[N][ROW], float B[N][ROW])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
BANKS = 32
BANK_BYTES = 4

ODD = 1001
"""Elements of rows of an array that are no whole vectors."""


STAGED: dict[str, Any] = {
    "block": {"i": 8, "j": 8}, "share": {"k": 1}, "placements": {"A": "shared", "B": "shared"},
}  # fmt: skip


def transposed(program: Program) -> list[str]:
    """Return the references whose boxes are turned."""
    return [
        one.partition(":")[0] for one in program.kernels[0].notes if one.endswith(", transposed")
    ]


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
    walk = by_rows((rows, columns), (0, 1), piece, threads, "thread", NameTable(), 1)
    assert walk.lower == Constant(0)
    tiling = Tiling(
        mapped=(LoopTile(name="i", tile=rows),),
        serial={"k": columns},
        threads=threads,
        neighbours={"i": True},
    )
    reads = StagedReads(
        along=("i", "k"), moving="ik", across="i", element_bytes=element_bytes, copied=1
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
    sizes, tiles = [{"N": 33}, {"N": 64}], {"i": 32, "j": 32, "k": 16}
    text = PRODUCT.replace("ROW", str(ODD))
    program = checked(text, tmp_path, sizes, bit_equal=True, tiles=tiles, stages=2, **STAGED)
    assert sorted(transposed(program)) == ["A[i][k]"]
    assert "i0 + 4 * ti + ri" in program.text


def test_factors_stay_as_they_are_where_it_does_not_pay() -> None:
    text, tiles = PRODUCT.replace("ROW", str(ODD)), {"i": 16, "j": 32, "k": 16}
    assert transposed(eatss.codegen(text, gpu="h200", tiles=tiles, stages=1, **STAGED)) == []


REGISTERS_PRODUCT = """
#ifndef N
#define N 512
#endif
#ifndef K
#define K 512
#endif
void f(float C[N][N], float A[N][K], float B[N][K])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < K; k++)
        C[i][j] += A[i][k] * A[j][k];
#pragma endscop
}
"""
SIZES = [{"N": n, "K": k} for n, k in ((64, 64), (70, 32), (33, 50), (1, 4), (65, 17))]


LOAD = "eatss_load_wide"
STORE = re.compile(r"sh\.\w+\[.*\] = \w+_line(_\d+)?\[e\]\[q\];")


def test_loads_stand_in_front_of_products_and_stores_behind(tmp_path: Path) -> None:
    text = checked(
        REGISTERS_PRODUCT,
        tmp_path,
        SIZES,
        tiles={"i": 128, "j": 128, "k": 8},
        block={"i": 8, "j": 16},
        share={"k": 1},
        placements={"A": "shared"},
        stages=3,
    ).text
    turn = text.partition("stage = 0; ")[2]
    load, product = turn.index(LOAD), turn.index("] += ")
    store = STORE.search(turn)
    assert store is not None
    assert load < product < store.start() < turn.index("__syncthreads();", store.start())
    assert turn.count(LOAD) == len(STORE.findall(turn)) == 2  # of each box, in whole turns only
    before = text.partition("stage = 0; ")[0].partition("__global__")[2]
    assert LOAD not in before  # the first boxes are copied as always


WARP = 32

LANES_PRODUCT = """
#ifndef N
#define N 512
#endif
void f(float C[N][N], float A[N][N], float B[N][N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += A[k][i] * B[k][j];
#pragma endscop
}
"""


def test_every_place_has_one_thread() -> None:
    """And warps are boxes of 8 x 4 places."""
    for threads in product(range(ALONG_X, 129, ALONG_X), range(ALONG_Y, 129, ALONG_Y)):
        if prod(threads) > 1024:
            continue
        found = []
        places = interleaved_places("lane", "warp", threads)
        for thread in range(prod(threads)):
            lane, warp = (evaluate(one, {"n": thread}) for one in lane_and_warp(Name("n")))
            known = {"lane": lane, "warp": warp}
            found.append(tuple(evaluate(place, known) for place in places))
        assert sorted(found) == list(product(*map(range, threads)))
        for first in range(0, len(found), WARP):
            warp_places = found[first : first + WARP]
            extents = [len(set(along)) for along in zip(*warp_places, strict=True)]
            assert extents == [ALONG_X, ALONG_Y]


def places(program: Program) -> list[str]:
    """Return how a kernel says where its threads are."""
    lines = [line.strip() for line in program.text.splitlines()]
    names = ("thread", "lane", "warp", "ti", "tj", "tb")
    return [one for one in lines if one.startswith(tuple(f"const int {name} " for name in names))]


def test_the_text_says_where_lanes_are(tmp_path: Path) -> None:
    sizes, tiles = [{"N": size} for size in (1, 33, 77, 128)], {"i": 32, "j": 32, "k": 8}
    program = checked(
        LANES_PRODUCT, tmp_path, sizes, bit_equal=True, tiles=tiles, stages=2, **STAGED
    )
    assert places(program) == [
        "const int thread = threadIdx.x + 8 * threadIdx.y;",
        "const int lane = thread % 32;",
        "const int warp = thread / 32;",
        "const int ti = lane / 2 % 4 + 4 * warp;",
        "const int tj = lane % 2 + 2 * (lane / 8);",
    ]


TWO_SUMS = """
#ifndef N
#define N 40
#endif
void sums(double C[N][N], double A[N][N], double B[N][N], double D[N][N], double E[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < N; k++)
                C[i][j] += A[i][k] * B[k][j];
            for (int k = 0; k < N; k++)
                C[i][j] += D[i][k] * E[k][j];
        }
#pragma endscop
}
"""
SYMM = data_directory("kernels") / "symm.c"
IN_BOXES = dict.fromkeys("ABDE", "shared")
WARPS: dict[str, Any] = {"instructions": ["mma_f64_16x8x4"], "stages": 2}


def boxes_of(program: Program) -> str:
    """Return the structure of shared memory, in one line."""
    return " ".join(program.text.partition("_shared {")[2].partition("\n};")[0].split())


def test_symm_is_right_with_its_boxes_in_the_same_memory(tmp_path: Path) -> None:
    sizes, tiles = [{"NI": 45, "NJ": 37}], {"k": 32, "j": 32, "i": 8}
    program = checked(SYMM, tmp_path, sizes, tiles=tiles, block=(8, 8), **WARPS)
    assert boxes_of(program) == (
        "union { struct { EATSS_OVERLAID(double, 1) A[2][32][8]; "
        "EATSS_OVERLAID(double, 1) B[2][8][36]; }; "
        "struct { EATSS_OVERLAID(double, 2) A_1[2][8][34]; "
        "EATSS_OVERLAID(double, 2) B_1[2][8][36]; }; };"
    )
    assert program.kernels[0].shared_bytes == 2 * (8 * 34 + 8 * 36) * 8
    assert program.text.count("double C_r[") == 1
    assert program.text.index("double C_r[") > program.text.rindex("eatss_mma_16x8x4(acc_r[")


@pytest.mark.parametrize("broken", ["no barrier between the loops", "a box of the other loop"])
def test_what_another_box_holds_is_not_read(broken: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"placements": IN_BOXES, "block": (8, 8), "stages": 2}
    tiles = {"i": 16, "j": 16, "k": 4}
    program = eatss.codegen(TWO_SUMS, gpu="h200", output=tmp_path, tiles=tiles, **how)
    assert boxes_of(program).startswith("union { struct { EATSS_OVERLAID(double, 1) A[2]")
    front, _, rest = program.text.partition("(&sh.D[")
    first, between, last = front.rpartition("        __syncthreads();\n")
    told = "writes where another one used another box since the last barrier"
    if broken == "a box of the other loop":
        last = between + last
        rest, told = rest.replace("= sh.D[", "= sh.A["), "that another box has overwritten"
    text = f"{first}{last}(&sh.D[{rest}"
    (tmp_path / program.file).write_text(text, encoding="utf-8")
    found = verify(tmp_path, device="cpu", sizes=[{"N": 19}])  # five turns
    assert (found.status, told in found.message) == ("shared memory", True), found.message
