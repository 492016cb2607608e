"""Tiles at the edge of an array take the branch of whole ones, their copies tested by rows."""

from __future__ import annotations

import re
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
#ifndef M
#define M 512
#endif
void f(TYPE C[N][M], TYPE A[N + 2][M + ROW], TYPE B[M + 2][M + ROW])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = FIRST; j < M - LAST; j++)
      for (int k = 0; k < M; k++)
        C[i][j] += VALUE;
#pragma endscop
}
"""
SIZES = [{"N": n, "M": m} for n, m in ((64, 64), (33, 48), (70, 100), (1, 4), (65, 31))]
"""Some fit tiles; edges cut others in rows and columns, and one is of vectors cut in two."""


def made(
    folder: Path,
    value: str = "A[i][k] * B[k][j]",
    *,
    dtype: str = "float",
    row: int = 0,
    first: int = 0,
    last: int = 0,
    stages: int = 2,
) -> Program:
    text = PRODUCT.replace("TYPE", dtype).replace("ROW", str(row)).replace("VALUE", value)
    text = text.replace("FIRST", str(first)).replace("LAST", str(last))
    program = eatss.codegen(
        text,
        gpu="h200" if dtype == "float" else "rtx4090",
        output=folder,
        tiles={"i": 128 if dtype == "float" else 64, "j": 128, "k": 8},
        block={"i": 8, "j": 16},
        share={"k": 1},
        placements={name: "shared" for name in "AB" if f"{name}[" in value},
        stages=stages,
    )
    found = verify(folder, device="cpu", sizes=SIZES)
    assert (found.status, found.message) == ("ok", "")
    return program


def asked(program: Program) -> str:
    """Return what a whole turn asks, in front of the loop and in the turn."""
    front = re.search(r"const int plain = (.*);", program.text)
    (test,) = re.findall(r"if \((.*k0 \+ 8 < M.*)\) \{\n", program.text)[:1]
    return f"{front.group(1) if front else ''} && {test}"


def test_the_edges_of_a_block_are_no_test_of_a_turn(tmp_path: Path) -> None:
    program = made(tmp_path, stages=2)
    assert not re.search(r"\b[ij]0 \+", asked(program))
    assert "], x0 < N);" in program.text


def test_vectors_that_are_there_as_a_whole_or_not_at_all_are_one_copy(tmp_path: Path) -> None:
    text = made(tmp_path, dtype="float", row=0).text
    assert re.search(r"eatss_copy_wide_ahead_or_clear\(&sh\.B\[.*, x1(_1)? < M\);", text)


def test_vectors_that_an_edge_may_cut_are_copied_in_whole_tiles_only(tmp_path: Path) -> None:
    program = made(tmp_path, first=0, last=1)
    assert "_or_clear(&sh.B" not in program.text
    assert "eatss_copy_wide_ahead(&sh.B" in program.text  # of tiles that are whole
    assert "j0 + " in asked(program)


def test_boxes_that_begin_elsewhere_are_right(tmp_path: Path) -> None:
    made(tmp_path, "A[i + 1][k] * B[k][j]", row=4)
