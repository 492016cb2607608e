"""Threads of a block whose lanes are interleaved along two loops: a thread for every point."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path

import pytest

import eatss
from eatss.analysis.structure import ALONG_X, ALONG_Y
from eatss.base.diagnostics import InternalError, SourceSpan
from eatss.base.shipped import data_directory
from eatss.lower.lanes import interleaved_places, lane_and_warp
from eatss.program import Name, Program, evaluate, save_program
from eatss.verify import verify
from tests.examples import with_long

pytestmark = pytest.mark.usefixtures("analysed_once")

SPAN = SourceSpan(file="f.c", line=1, column=1, end_line=1, end_column=2)
WARP = 32

PRODUCT = """
#ifndef N
#define N 512
#endif
void f(TYPE C[N][N], TYPE A[N][N], TYPE B[N][N], TYPE v[N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""

BATCH = """
#ifndef N
#define N 512
#endif
void f(TYPE C[N][N][N], TYPE A[N][N][N], TYPE B[N][N][N])
{
#pragma scop
  for (int b = 0; b < N; b++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++)
          C[b][i][j] += A[b][k][i] * B[b][k][j];
#pragma endscop
}
"""


@pytest.mark.samples(1)
@pytest.mark.parametrize("others", [(), (1,), (2,), (3, 2)])
def test_every_place_has_one_thread(others: tuple[int, ...]) -> None:
    """And warps are boxes of 8 x 4 places."""
    pairs = product(range(ALONG_X, 129, ALONG_X), range(ALONG_Y, 129, ALONG_Y))
    for pair in pairs:
        threads = (*pair, *others)
        if prod(threads) > 1024:
            continue
        found = []
        places = interleaved_places("lane", "warp", threads, SPAN)
        for thread in range(prod(threads)):
            lane, warp = (evaluate(one, {"n": thread}) for one in lane_and_warp(Name("n")))
            known = {"lane": lane, "warp": warp}
            found.append(tuple(evaluate(place, known) for place in places))
        assert sorted(found) == list(product(*map(range, threads)))
        for first in range(0, len(found), WARP):
            warp_places = found[first : first + WARP]
            extents = [len(set(along)) for along in zip(*warp_places, strict=True)]
            assert extents == [ALONG_X, ALONG_Y, *[1] * len(others)]


def test_places_without_a_thread_are_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eatss.lower.lanes.ALONG_Y", 2)
    with pytest.raises(InternalError) as caught:
        interleaved_places("lane", "warp", (16, 16), SPAN)
    assert caught.value.diagnostics[0].code == "EATSS-K901"


def made(
    folder: Path,
    value: str = "A[k][i] * B[k][j]",
    *,
    tiles: tuple[int, int, int] = (32, 32, 8),
    block: tuple[int, int] = (8, 8),
    placed: str = "AB",
    dtype: str = "float",
    stages: int = 1,
) -> Program:
    return eatss.codegen(
        PRODUCT.replace("TYPE", dtype).replace("VALUE", value),
        gpu="h200" if dtype == "float" else "rtx4090",
        output=folder,
        tiles=dict(zip("ijk", tiles, strict=True)),
        block=dict(zip("ij", block, strict=True)),
        share={"k": 1},
        placements={n: "shared" if n in placed else "l1" for n in "ABv" if f"{n}[" in value},
        stages=stages,
    )


def places(program: Program) -> list[str]:
    """Return how a kernel says where its threads are."""
    lines = [line.strip() for line in program.text.splitlines()]
    names = ("thread", "lane", "warp", "ti", "tj", "tb")
    return [one for one in lines if one.startswith(tuple(f"const int {name} " for name in names))]


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("tiles", "block", "along_i", "along_j"),
    [
        ((32, 32, 8), (8, 8), "lane / 2 % 4 + 4 * warp", "lane % 2 + 2 * (lane / 8)"),
        (
            (32, 64, 8),
            (8, 16),
            "lane / 2 % 4 + 4 * (warp / 2)",
            "lane % 2 + 2 * (lane / 8) + 8 * (warp % 2)",
        ),
        ((16, 128, 8), (4, 32), "lane / 2 % 4", "lane % 2 + 2 * (lane / 8) + 8 * warp"),
    ],
)
def test_the_text_says_where_lanes_are(
    tiles: tuple[int, int, int],
    block: tuple[int, int],
    along_i: str,
    along_j: str,
    tmp_path: Path,
) -> None:
    program = made(tmp_path, tiles=tiles, block=block, stages=2)
    assert places(program) == [
        f"const int thread = threadIdx.x + {block[1]} * threadIdx.y;",
        "const int lane = thread % 32;",
        "const int warp = thread / 32;",
        f"const int ti = {along_i};",
        f"const int tj = {along_j};",
    ]
    found = verify(tmp_path, device="cpu", sizes=[{"N": 1}, {"N": 33}, {"N": 77}, {"N": 128}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("value", "tiles", "block", "placed"),
    [
        # 4 threads along x: both loads take 2 wavefronts
        ("A[k][i] * B[k][j]", (64, 16, 8), (16, 4), "AB"),
        ("A[k][i] * B[k][j]", (8, 64, 8), (2, 16), "AB"),
        ("A[k][i] * B[k][j]", (24, 32, 8), (6, 8), "AB"),  # warps would not be whole
        ("A[k][i] * B[k][j]", (16, 32, 8), (8, 8), "AB"),  # two points along i: half a vector
        ("A[k][i] * B[k][j]", (32, 32, 8), (8, 8), "B"),
        ("A[k][i] * v[j]", (32, 32, 8), (8, 8), "A"),
        ("A[i][k] * B[k][j]", (32, 32, 8), (8, 8), "AB"),  # vectors of A lie along k
    ],
)
def test_lanes_are_in_turn_elsewhere(
    value: str, tiles: tuple[int, int, int], block: tuple[int, int], placed: str, tmp_path: Path
) -> None:
    program = made(tmp_path, value, tiles=tiles, block=block, placed=placed)
    assert "const int tj = threadIdx.x;" in program.text
    assert "lane" not in program.text


def test_lanes_of_tensor_cores_stay_theirs() -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        tiles={"i": 64, "j": 64, "k": 16},
        block={"i": 16, "j": 8},
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x4"],
    )
    assert "lane_i" in program.text
    assert "lane / 8" not in program.text


SIZES = {
    "gemm": ("NI", "NJ", "NK"),
    "syrk": ("NI", "NJ"),
    "syr2k": ("NI", "NJ"),
    "trmm": ("NI",),
    "2mm": ("NI", "NJ", "NK", "NL"),
}


SHARED = {"gemm": "AB", "syrk": "A", "syr2k": "AB", "trmm": "AB", "2mm": ("A", "B", "C", "tmp")}


@pytest.mark.long
@pytest.mark.parametrize("kernel", SIZES)
def test_results_are_those_of_the_original(kernel: str, tmp_path: Path) -> None:
    program = eatss.codegen(
        data_directory("kernels") / f"{kernel}.c",
        gpu="h200",
        output=tmp_path,
        defines={"DATA_TYPE": "float"},
        tiles={"i": 64, "j": 128, "k": 16},
        block=(8, 8),
        placements=dict.fromkeys(SHARED[kernel], "shared"),
        stages=3,
    )
    assert "lane / 2 % 4" in program.text
    names = SIZES[kernel]
    ragged = dict(zip(names, (37, 70, 19, 33), strict=False))
    whole = dict(zip(names, (64, 128, 32, 64), strict=False))
    found = verify(tmp_path, device="cpu", sizes=[ragged, whole])
    assert (found.status, found.message) == ("ok", "")


def test_names_of_the_source_stay_its_own(tmp_path: Path) -> None:
    text = PRODUCT.replace("TYPE", "float").replace("VALUE", "A[k][i] * B[k][j]")
    text = text.replace("int i = 0; i < N; i++", "int lane = 0; lane < N; lane++")
    text = text.replace("[i]", "[lane]").replace("A[N]", "warp[N]").replace("A[k]", "warp[k]")
    eatss.codegen(
        text,
        gpu="h200",
        output=tmp_path,
        tiles={"lane": 32, "j": 32, "k": 8},
        block={"lane": 8, "j": 8},
        share={"k": 1},
        placements={"warp": "shared", "B": "shared"},
    )
    assert "const int lane_1 = thread % 32;" in next(tmp_path.glob("*.cu")).read_text()
    found = verify(tmp_path, device="cpu", sizes=[{"N": 33}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.long
@pytest.mark.parametrize("dtype", with_long(["float", "double"], ["double"]))
def test_a_third_loop_goes_from_warp_to_warp(dtype: str, tmp_path: Path) -> None:
    program = eatss.codegen(
        BATCH.replace("TYPE", dtype),
        gpu="rtx4090",
        output=tmp_path,
        tiles={"b": 2, "i": 16, "j": 64, "k": 8},
        block={"b": 2, "i": 4, "j": 16},
        placements={"A": "shared", "B": "shared"},
    )
    assert places(program) == [
        "const int thread = threadIdx.x + 16 * threadIdx.y + 64 * threadIdx.z;",
        "const int lane = thread % 32;",
        "const int warp = thread / 32;",
        "const int tb = warp / 2;",
        "const int ti = lane / 2 % 4;",
        "const int tj = lane % 2 + 2 * (lane / 8) + 8 * (warp % 2);",
    ]
    found = verify(tmp_path, device="cpu", sizes=[{"N": 1}, {"N": 17}, {"N": 64}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.long
def test_verification_sees_lanes_that_leave_points_out(tmp_path: Path) -> None:
    program = made(tmp_path)
    broken = program.text.replace("const int ti = lane / 2 % 4", "const int ti = lane / 4 % 4", 1)
    assert broken != program.text
    save_program(replace(program, text=broken), tmp_path)
    assert verify(tmp_path, device="cpu", sizes=[{"N": 32}]).status != "ok"
