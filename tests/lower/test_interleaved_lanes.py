"""Threads of a block whose lanes are interleaved along two loops: a thread for every point."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path

import pytest

import eatss
from eatss.analysis.structure import ALONG_X, ALONG_Y
from eatss.base.diagnostics import InternalError, SourceSpan
from eatss.lower.lanes import interleaved_places, lane_and_warp
from eatss.program import Name, Program, evaluate
from eatss.verify import verify

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


@pytest.mark.parametrize("others", [()])
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


@pytest.mark.parametrize(
    ("tiles", "block", "along_i", "along_j"),
    [((32, 32, 8), (8, 8), "lane / 2 % 4 + 4 * warp", "lane % 2 + 2 * (lane / 8)")],
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


SIZES = {
    "gemm": ("NI", "NJ", "NK"),
    "syrk": ("NI", "NJ"),
    "syr2k": ("NI", "NJ"),
    "trmm": ("NI",),
    "2mm": ("NI", "NJ", "NK", "NL"),
}


SHARED = {"gemm": "AB", "syrk": "A", "syr2k": "AB", "trmm": "AB", "2mm": ("A", "B", "C", "tmp")}


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
