"""Turned boxes are loaded as vectors in front of a turn, and stored behind its products."""

from __future__ import annotations

import re
from pathlib import Path

import eatss
from eatss.program import Program
from eatss.verify import verify

PRODUCT = """
#ifndef N
#define N 512
#endif
#ifndef K
#define K 512
#endif
void f(float C[N][N], float A[N][K + ROW], float B[N][K + ROW])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < K; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
SIZES = [{"N": n, "K": k} for n, k in ((64, 64), (70, 32), (33, 50), (1, 4), (65, 17))]


def made(
    folder: Path, value: str, *, row: int = 0, stages: int = 2, tiles: tuple[int, int] = (128, 128)
) -> Program:
    program = eatss.codegen(
        PRODUCT.replace("VALUE", value).replace("ROW", str(row)),
        gpu="h200",
        output=folder,
        tiles={"i": tiles[0], "j": tiles[1], "k": 8},
        block={"i": 8, "j": 16},
        share={"k": 1},
        placements={name: "shared" for name in "AB" if f"{name}[" in value},
        stages=stages,
    )
    found = verify(folder, device="cpu", sizes=SIZES)
    assert (found.status, found.message) == ("ok", "")
    return program


LOAD = "eatss_load_wide"
STORE = re.compile(r"sh\.\w+\[.*\] = \w+_line(_\d+)?\[e\]\[q\];")


def test_loads_stand_in_front_of_products_and_stores_behind(tmp_path: Path) -> None:
    text = made(tmp_path, "A[i][k] * A[j][k]", stages=3).text
    turn = text.partition("stage = 0; ")[2]
    load, product = turn.index(LOAD), turn.index("] += ")
    store = STORE.search(turn)
    assert store is not None
    assert load < product < store.start() < turn.index("__syncthreads();", store.start())
    assert turn.count(LOAD) == len(STORE.findall(turn)) == 2  # of each box, in whole turns only
    before = text.partition("stage = 0; ")[0].partition("__global__")[2]
    assert LOAD not in before  # the first boxes are copied as always
