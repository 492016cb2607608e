"""Code whose loops run over several dimensions as one computes what the source does."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import eatss
from eatss.program import Program
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

MACROS = "".join(f"#ifndef N{one}\n#define N{one} 12\n#endif\n" for one in "ABCDEF")
FIXED = "double C[NA][NB][NC][ND], double A[NA][NB][NE][NF], double B[NE][NF][NC][ND]"
OPEN = "int NA, int NB, int NC, int ND, int NE, int NF, " + FIXED
BODY = "C[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d];"


def nest(*names: str) -> str:
    return "".join(f"for (int {n} = 0; {n} < N{n.upper()}; {n}++)\n" for n in names)


CONTRACTIONS = {
    "two indices are summed over": (FIXED, nest(*"abcdef") + BODY),
    "sizes are arguments": (OPEN, nest(*"abcdef") + BODY),
    "a sum in a scalar": (
        FIXED,
        nest(*"abcd") + "{ double s = 0;\n" + nest(*"ef")
        + "s += A[a][b][e][f] * B[e][f][c][d];\nC[a][b][c][d] = s; }",
    ),
    "three indices, and a number among the sizes": (
        "double C[NA][ND], double A[NA][NE][3][NF], double B[NE][3][NF][ND]",
        nest(*"ade") + "for (int b = 0; b < 3; b++)\n" + nest("f")
        + "C[a][d] += A[a][e][b][f] * B[e][b][f][d];",
    ),
    "a local array": (
        FIXED,
        "double t[NA][NB][NC][ND];\n#pragma scop\n"
        + nest(*"abcd") + "{ t[a][b][c][d] = 0;\n" + nest(*"ef")
        + "t[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d]; }\n"
        + nest(*"abcd") + "C[a][b][c][d] = t[a][b][c][d];\n#pragma endscop",
    ),
}  # fmt: skip

SIZES = [
    {"NA": 5, "NB": 7, "NC": 3, "ND": 11, "NE": 2, "NF": 9},
    {"NA": 12, "NB": 11, "NC": 9, "ND": 8, "NE": 5, "NF": 7},
    {"NA": 0, "NB": 7, "NC": 3, "ND": 11, "NE": 2, "NF": 9},
    {"NA": 5, "NB": 7, "NC": 3, "ND": 0, "NE": 2, "NF": 9},
    {"NA": 5, "NB": 7, "NC": 3, "ND": 4, "NE": 2, "NF": 0},
]


def source(arguments: str, loops: str) -> str:
    if "#pragma" not in loops:
        loops = f"#pragma scop\n{loops}\n#pragma endscop"
    macros = "" if arguments.startswith("int N") else MACROS
    return f"{macros}void f({arguments}) {{\n{loops}\n}}\n"


def verified_on_cpu(
    text: str, folder: Path, sizes: list[dict[str, int]], index_bits: Literal[32, 64] | None = None
) -> Program:
    """Generate a program for C text and demand that it computes what the text does."""
    (folder / "f.c").write_text(text, encoding="utf-8")
    program = eatss.codegen(
        folder / "f.c", gpu="h200", output=folder / "out", index_bits=index_bits
    )
    names = {parameter.name for parameter in program.parameters}
    at = [{name: value for name, value in one.items() if name in names} for one in sizes]
    found = verify(folder / "out", device="cpu", sizes=at)
    assert (found.status, found.message) == ("ok", ""), text
    return program


def tiles_of(program: Program) -> set[str]:
    return {loop for kernel in program.kernels for loop, _ in kernel.tile_sizes}


@pytest.mark.parametrize("which", CONTRACTIONS)
def test_a_collapsed_contraction_equals_the_original(which: str, tmp_path: Path) -> None:
    program = verified_on_cpu(source(*CONTRACTIONS[which]), tmp_path, SIZES)
    assert any("_" in loop for loop in tiles_of(program))


def test_the_program_takes_the_arrays_and_sizes_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(source(*CONTRACTIONS["sizes are arguments"]), encoding="utf-8")
    program = eatss.codegen(tmp_path / "f.c", gpu="h200")
    (entry,) = program.entries
    shapes = {one.name: len(one.shape) for one in entry.arguments if one.role == "array"}
    assert shapes == {"C": 4, "A": 4, "B": 4}
    assert [one.name for one in program.parameters] == ["NA", "NB", "NC", "ND", "NE", "NF"]
    assert all(one.tile for one in program.parameters)


def test_two_negative_sizes_make_no_loop_that_runs(tmp_path: Path) -> None:
    negative = [{"NA": -3, "NB": -5, "NC": 3, "ND": 4, "NE": 2, "NF": 3}]
    verified_on_cpu(source(OPEN, nest(*"abcdef") + BODY), tmp_path, negative)


def test_indices_of_64_bits_multiply_sizes_in_64_bits(tmp_path: Path) -> None:
    text = source(*CONTRACTIONS["sizes are arguments"])
    program = verified_on_cpu(text, tmp_path, SIZES, index_bits=64)
    assert "const long NA_NB = " in program.text
    launch = next(line for line in program.text.splitlines() if "EATSS_LAUNCH(f_k0" in line)
    assert "(long)NA" in launch


def test_a_product_of_sizes_is_held_to_32_bits() -> None:
    program = eatss.codegen(source(*CONTRACTIONS["two indices are summed over"]), gpu="h200")
    assert program.index_bits == 32
    messages = [one.message for one in program.entries[0].assumptions]
    assert any("NA * NB must be at most 2^" in message for message in messages)
