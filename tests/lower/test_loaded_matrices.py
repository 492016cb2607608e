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
BATCH = """\
void gemm(int q, int n, int m, int p, float C[q][n][m], _Float16 A[q][n][p], _Float16 B[q][p][m])
{
#pragma scop
  for (int b = 0; b < q; b++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++)
        for (int k = 0; k < p; k++)
          C[b][i][j] += (float) A[b][i][k] * (float) B[b][k][j];
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


@pytest.mark.samples(1)
@pytest.mark.parametrize("first", A)
@pytest.mark.parametrize("second", B)
@pytest.mark.parametrize(
    ("columns", "stages"),
    [
        pytest.param(32, 1, marks=pytest.mark.long),
        pytest.param(32, 2),
        pytest.param(24, 3, marks=pytest.mark.long),
    ],
)
def test_boxes_are_read_as_they_lie(
    first: str, second: str, columns: int, stages: int, tmp_path: Path
) -> None:
    program = eatss.codegen(
        gemm(A[first], B[second]), gpu="h200", output=tmp_path, **options(columns, stages)
    )
    loads = loads_in(program)
    wanted = {"" if first == "rows" else "turned_", "turned_" if second == "rows" else ""}
    assert set(loads) == wanted
    assert "= sh.A" not in program.text
    assert "= sh.B" not in program.text
    whole = {"n": 64, "m": 2 * columns, "p": 64}
    check(tmp_path, [whole, {"n": 33, "m": 47, "p": 71}])


@pytest.mark.long
def test_two_matrices_are_loaded_at_a_time_or_four(tmp_path: Path) -> None:
    for columns, count in ((32, 4), (24, 2)):
        program = eatss.codegen(gemm(A["rows"], B["rows"]), gpu="h200", **options(columns))
        assert loads_in(program) == {"": 4, "turned_": count}


def test_selected_tiles_are_loaded_so() -> None:
    assert loads_in(eatss.codegen(gemm(A["rows"], B["rows"]), gpu="h200")) == PAIRED


@pytest.mark.long
@pytest.mark.parametrize("text", [gemm(A["rows"], B["rows"]), BATCH], ids=["one", "batch"])
def test_selected_tiles_are_right(text: str, tmp_path: Path) -> None:
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    assert loads_in(program) == PAIRED
    more = {"q": 2} if text is BATCH else {}
    tiles = {"n": 128, "m": 256, "p": 64}
    check(tmp_path, [{**tiles, **more}, {"n": 130, "m": 47, "p": 71, **more}])


@pytest.mark.long
@pytest.mark.parametrize(
    ("second", "places"),
    [(("B[k][2 * j]", "p][2 * m"), PLACES), (B["rows"], {"A": "shared", "B": "l1"})],
    ids=["every other column", "memory"],
)
def test_what_is_in_no_rows_is_loaded_one_by_one(
    second: tuple[str, str], places: Mapping[str, str], tmp_path: Path
) -> None:
    text = gemm(A["rows"], second)
    program = eatss.codegen(text, gpu="h200", output=tmp_path, **options(places=places))
    assert any(f"{MMA}: computes S0" in kernel.notes for kernel in program.kernels)
    assert not loads_in(program)
    check(tmp_path, [{"n": 64, "m": 32, "p": 64}, {"n": 33, "m": 47, "p": 71}])


@pytest.mark.long
def test_rows_of_boxes_are_in_other_banks(tmp_path: Path) -> None:
    """Eight rows of a matrix, 16 bytes each, fill all banks: rows are an odd number of vectors."""
    for first in A.values():
        for second in B.values():
            program = eatss.codegen(gemm(first, second), gpu="h200")
            rows = re.findall(r"eatss_half\) [AB](?:\[\d+\])+\[(\d+)\];", program.text)
            assert [int(one) % 16 for one in rows] == [8, 8]


@pytest.mark.long
def test_tiles_that_an_edge_cuts_are_multiplied_so_too(tmp_path: Path) -> None:
    """Halves beside what is read are zero, converted, too."""
    program = eatss.codegen(gemm(A["rows"], B["rows"]), gpu="h200", output=tmp_path, **options())
    assert "+= (float)sh" not in program.text
    check(tmp_path, [{"n": 1, "m": 1, "p": 1}, {"n": 31, "m": 33, "p": 63}])


@pytest.mark.long
def test_tiles_that_a_diagonal_cuts_are_where_factors_are_finite(tmp_path: Path) -> None:
    program = eatss.codegen(TRMM, gpu="h200", output=tmp_path, **options())
    assert "eatss_is_finite(sh.B" in program.text
    check(tmp_path, [{"n": 64, "m": 64}, {"n": 70, "m": 39}])


def test_they_are_not_where_a_conversion_may_make_a_factor_infinite() -> None:
    narrowed = TRMM.replace("_Float16", "double")
    assert "eatss_is_finite" not in eatss.codegen(narrowed, gpu="h200").text
    widened = narrowed.replace("float", "double").replace("double A", "float A")
    tiles: Any = {"tiles": {"i": 32, "j": 32, "k": 32}, "block": (8, 8), "placements": PLACES}
    program = eatss.codegen(widened, gpu="h200", instructions=["mma_f64_16x8x4"], stages=2, **tiles)
    assert "eatss_is_finite" in program.text
