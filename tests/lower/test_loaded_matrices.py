"""Fragments of halves are loaded as whole matrices where boxes have them in rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

MMA = "mma_f16_16x8x16"

GEMM = """\
void gemm(int n, int m, int p, float C[n][m], _Float16 A[ROWS], _Float16 B[COLUMNS])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < p; k++)
        C[i][j] += (float) FIRST * (float) SECOND;
#pragma endscop
}
"""
TRMM = """\
void trmm(int n, int m, float C[n][m], _Float16 A[n][n], _Float16 B[n][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < i; k++)
        C[i][j] += (float) A[i][k] * (float) B[k][j];
#pragma endscop
}
"""
A = {"rows": ("A[i][k]", "n][p"), "turned": ("A[k][i]", "p][n")}
B = {"rows": ("B[k][j]", "p][m"), "turned": ("B[j][k]", "m][p")}
PLACES = {"A": "shared", "B": "shared"}
PAIRED = {"": 4, "turned_": 4}


def gemm(first: tuple[str, str], second: tuple[str, str]) -> str:
    """Return a product of two factors, each with the extents of its array."""
    text = GEMM.replace("ROWS", first[1]).replace("COLUMNS", second[1])
    return text.replace("FIRST", first[0]).replace("SECOND", second[0])


def options(columns: int = 32, stages: int = 2, places: Mapping[str, str] = PLACES) -> Any:
    """Return how two by two warps multiply tiles of 32 rows, loops of 32 steps."""
    tiles = {"i": 32, "j": columns, "k": 32}
    own = {"tiles": tiles, "block": (8, 8 if columns == 32 else 4), "placements": dict(places)}
    return {**own, "instructions": [MMA], "stages": stages}


def loads_in(program: eatss.Program) -> dict[str, int]:
    """Return how many matrices loads take at a time, by whether they are turned."""
    calls = re.findall(r" eatss_load_(\w*)matrices\((fragment.*), &sh", program.text)
    return {turned: words.count("fragment") for turned, words in calls}


def check(folder: Path, sizes: Sequence[Mapping[str, int]]) -> None:
    found = verify(folder, device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")


@pytest.mark.parametrize(("first", "second"), [("rows", "rows"), ("turned", "turned")])
def test_boxes_are_read_as_they_lie(first: str, second: str, tmp_path: Path) -> None:
    program = eatss.codegen(
        gemm(A[first], B[second]), gpu="h200", output=tmp_path, **options(32, 2)
    )
    loads = loads_in(program)
    wanted = {"" if first == "rows" else "turned_", "turned_" if second == "rows" else ""}
    assert set(loads) == wanted
    assert "= sh.A" not in program.text
    assert "= sh.B" not in program.text
    whole = {"n": 64, "m": 64, "p": 64}
    check(tmp_path, [whole, {"n": 33, "m": 47, "p": 71}])


def test_selected_tiles_are_loaded_so() -> None:
    assert loads_in(eatss.codegen(gemm(A["rows"], B["rows"]), gpu="h200")) == PAIRED


def test_they_are_not_where_a_conversion_may_make_a_factor_infinite() -> None:
    narrowed = TRMM.replace("_Float16", "double")
    assert "eatss_is_finite" not in eatss.codegen(narrowed, gpu="h200").text
    widened = narrowed.replace("float", "double").replace("double A", "float A")
    tiles: Any = {"tiles": {"i": 32, "j": 32, "k": 32}, "block": (8, 8), "placements": PLACES}
    program = eatss.codegen(widened, gpu="h200", instructions=["mma_f64_16x8x4"], stages=2, **tiles)
    assert "eatss_is_finite" in program.text
