"""Boxes of loops that follow each other in a block: generated, executed, and read too late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.program import Program, load_program
from eatss.verify import Verification, verify

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

Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return what writes the code of a file, and returns the folder."""

    def run(source: Path, **options: Any) -> Path:
        folder = tmp_path / "made"
        eatss.codegen(source, gpu="h200", output=folder, force=True, block=(8, 8), **options)
        return folder

    return run


def checked(folder: Path, text: str, sizes: dict[str, int]) -> Verification:
    program = load_program(folder)
    (folder / f"{program.name}.cu").write_text(text, encoding="utf-8")
    return verify(folder, device="cpu", sizes=[sizes])


def boxes_of(program: Program) -> str:
    """Return the structure of shared memory, in one line."""
    return " ".join(program.text.partition("_shared {")[2].partition("\n};")[0].split())


def test_symm_is_right_with_its_boxes_in_the_same_memory(made: Made) -> None:
    folder = made(SYMM, tiles={"k": 32, "j": 32, "i": 8}, **WARPS)
    program = load_program(folder)
    assert boxes_of(program) == (
        "union { struct { EATSS_OVERLAID(double, 1) A[2][32][8]; "
        "EATSS_OVERLAID(double, 1) B[2][8][36]; }; "
        "struct { EATSS_OVERLAID(double, 2) A_1[2][8][34]; "
        "EATSS_OVERLAID(double, 2) B_1[2][8][36]; }; };"
    )
    assert program.kernels[0].shared_bytes == 2 * (8 * 34 + 8 * 36) * 8
    assert program.text.count("double C_r[") == 1
    assert program.text.index("double C_r[") > program.text.rindex("eatss_mma_16x8x4(acc_r[")
    assert checked(folder, program.text, {"NI": 45, "NJ": 37}).status == "ok"


@pytest.mark.parametrize("broken", ["no barrier between the loops", "a box of the other loop"])
def test_what_another_box_holds_is_not_read(broken: str, tmp_path: Path, made: Made) -> None:
    source = tmp_path / "sums.c"
    source.write_text(TWO_SUMS, encoding="utf-8")
    folder = made(source, tiles={"i": 16, "j": 16, "k": 4}, placements=IN_BOXES, stages=2)
    program = load_program(folder)
    assert boxes_of(program).startswith("union { struct { EATSS_OVERLAID(double, 1) A[2]")
    front, _, rest = program.text.partition("(&sh.D[")
    first, between, last = front.rpartition("        __syncthreads();\n")
    told = "writes where another one used another box since the last barrier"
    if broken == "a box of the other loop":
        last = between + last
        rest, told = rest.replace("= sh.D[", "= sh.A["), "that another box has overwritten"
    found = checked(folder, f"{first}{last}(&sh.D[{rest}", {"N": 19})  # five turns
    assert (found.status, told in found.message) == ("shared memory", True), found.message
