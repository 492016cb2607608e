"""Collapsed loops, operands read from copies, producers recomputed: the same as the original."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.frontend.options import Reading
from eatss.program import Program
from eatss.report.inspection import render_inspection
from eatss.session.session import Session
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import checked, right

pytestmark = pytest.mark.usefixtures("analysed_once")

MACROS = "".join(f"#ifndef N{one}\n#define N{one} 12\n#endif\n" for one in "ABCDEF")
FIXED = "double C[NA][NB][NC][ND], double A[NA][NB][NE][NF], double B[NE][NF][NC][ND]"
OPEN = "int NA, int NB, int NC, int ND, int NE, int NF, " + FIXED
BODY = "C[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d];"


def nest(*names: str) -> str:
    return "".join(f"for (int {n} = 0; {n} < N{n.upper()}; {n}++)\n" for n in names)


CONTRACTIONS = {
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
    program = eatss.codegen(text, gpu="h200", output=folder, index_bits=index_bits)
    names = {parameter.name for parameter in program.parameters}
    at = [{name: value for name, value in one.items() if name in names} for one in sizes]
    right(verify(folder, device="cpu", sizes=at))
    return program


def tiles_of(program: Program) -> set[str]:
    return {loop for kernel in program.kernels for loop, _ in kernel.tile_sizes}


@pytest.mark.parametrize("which", CONTRACTIONS)
def test_a_collapsed_contraction_equals_the_original(which: str, tmp_path: Path) -> None:
    program = verified_on_cpu(source(*CONTRACTIONS[which]), tmp_path, SIZES)
    assert any("_" in loop for loop in tiles_of(program))


def test_the_program_takes_the_arrays_and_sizes_of_the_source() -> None:
    program = eatss.codegen(source(*CONTRACTIONS["sizes are arguments"]), gpu="h200")
    (entry,) = program.entries
    shapes = {one.name: len(one.shape) for one in entry.arguments if one.role == "array"}
    assert shapes == {"C": 4, "A": 4, "B": 4}
    assert [one.name for one in program.parameters] == ["NA", "NB", "NC", "ND", "NE", "NF"]
    assert all(one.tile for one in program.parameters)


def test_indices_of_64_bits_multiply_sizes_in_64_bits(tmp_path: Path) -> None:
    text = source(*CONTRACTIONS["sizes are arguments"])
    program = verified_on_cpu(text, tmp_path, SIZES, index_bits=64)
    assert "const long NA_NB = " in program.text
    launch = next(line for line in program.text.splitlines() if "EATSS_LAUNCH(f_k0" in line)
    assert "(long)NA" in launch


LOWER = """for (int i = N - 1; i >= 0; i--) for (int j = 0; j < M; j++)
    for (int k = 0; k < i; k++) B[i][j] += A[i][k] * B[k][j];"""
COPIES_MACROS = "#ifndef N\n#define N 600\n#endif\n#ifndef M\n#define M 500\n#endif\n"


def copying(arguments: str, loops: str) -> str:
    macros = "" if arguments.startswith("int N") else COPIES_MACROS
    return f"{macros}void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def test_trmm_is_a_product_on_tensor_cores_that_reads_from_a_copy(
    generate: Callable[..., Program], verify_kernel: Callable[..., Verification]
) -> None:
    program = generate("trmm")
    copying, product = program.kernels
    assert copying.notes == ("B_before: a copy of B, which is overwritten later",)
    assert "B[k][j] is read from the copy B_before" in product.notes
    assert "mma_f64_16x8x4: computes S0" in product.notes
    assert [one.name for one in program.entries[0].temporaries] == ["B_before"]
    # the sum begins at the tile of the block's first row: there is no work before it
    begins = r"for \(int k0 = (\d+) \* eatss_floordiv\(i0 \+ 1, \1\), stage = 0; k0 < NI;"
    assert re.search(begins, program.text)
    right(verify_kernel(program, [{"NI": size} for size in (0, 1, 2, 131)]))


@pytest.mark.parametrize("name", ["gemm", "lu", "trmm"])
def test_a_copy_is_where_it_frees_a_loop_only(name: str) -> None:
    scops = Session(data_directory("kernels") / f"{name}.c", code=True).scops
    copies = [array for scop in scops for array in scop.arrays if array.copy_of]
    assert bool(copies) == (name == "trmm")


def test_a_region_for_its_own_sizes_alone_has_a_copy_or_none_in_both_readings() -> None:
    text = copying("double A[N][N], double B[N][M]", LOWER).replace(
        "#ifndef N\n#define N 600\n#endif", ""
    )
    symbolic = Session(text.replace("N", "600")).symbolic
    for region, analysed in zip(symbolic.regions, symbolic.program.scops, strict=True):
        assert region.scheduled.scop.arrays[-1].copy_of == "B"
        assert analysed.scop.arrays[-1].copy_of == "B"


PIECES = {
    "rows": ["int i = 0; i < N; i++", "int i = N - 1; i >= 0; i--", "int i = 1; i < N / 2; i++"],
    "sum": [
        "int k = i + 1; k < N; k++",
        "int k = 0; k < i; k++",
        "int k = i; k < N; k++",
        "int k = i + 2; k < N; k += 2",
    ],
    "target": ["B[i][j]", "B[i + 1][j]"],
    "operand": ["B[k][j]", "B[k + 1][j]", "B[k][j] * B[k][j]", "B[k][i]"],
    "sign": ["+=", "-=", "="],
    "guard": ["", "if (k < i + j) ", "if (j > 1) "],
    "after": ["", "B[i][j] = 2 * B[i][j];", "A[i][j] = B[i][j];"],
    "element": ["double", "float", "int"],
}


def equals_the_original(
    tmp_path_factory: pytest.TempPathFactory, piece: dict[str, str], n: int, m: int
) -> None:
    loops = (
        f"for ({piece['rows']}) for (int j = 0; j < M; j++) {{\n"
        f"for ({piece['sum']}) {piece['guard']}"
        f"{piece['target']} {piece['sign']} A[i][k] * {piece['operand']};\n{piece['after']} }}"
    )
    arguments = "double A[N + M + 2][N + M + 2], double B[N + M + 2][N + M + 2]"
    text = copying(arguments.replace("double", piece["element"]), loops)
    try:
        verified_on_cpu(text, tmp_path_factory.mktemp("drawn"), [{"N": n, "M": m}])
    except InputError as error:
        if error.diagnostics[0].code != "EATSS-P001":
            raise
        reject()  # too hard for isl


drawn = given(
    piece=st.fixed_dictionaries({name: st.sampled_from(of) for name, of in PIECES.items()}),
    n=st.sampled_from([1, 5, 34, 67]),
    m=st.sampled_from([1, 6, 33]),
)
unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
test_random_updates_in_place_equal_the_original = settings(unhurried, max_examples=examples(2))(
    drawn(equals_the_original)
)


PROGRAMS = Path(__file__).resolve().parents[2] / "benchmarks" / "programs"
LOCAL = (PROGRAMS / "horizontal-diffusion-local.c").read_text(encoding="utf-8")

ANEW_MACROS = "#ifndef N\n#define N 6000\n#endif\n#ifndef M\n#define M 5000\n#endif\n"
NEST = "for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) "
INNER = "for (int i = 1; i < N - 1; i++) for (int j = 1; j < M - 1; j++) "


def recomputing(local: str, loops: str) -> str:
    arguments = "double A[N][M], double B[N][M], float F[N][M], int K[N][M]"
    region = f"#pragma scop\n{loops}\n#pragma endscop"
    return f"{ANEW_MACROS}void f({arguments}) {{\n{local}\n{region}\n}}\n"


WRITTEN = {
    "numbers of other types": recomputing(
        "float T[N][M]; int U[N][M]; short V[N][M];",
        NEST + "T[i][j] = A[i][j] / 3;\n"
        + NEST + "U[i][j] = T[i][j] * 100;\n"
        + NEST + "V[i][j] = U[i][j] * 999;\n"
        + INNER + "B[i][j] = U[i][j - 1] / 7 + T[i][j] * T[i - 1][j] + V[i][j + 1] * 2;",
    ),
    "others see it": recomputing(
        "",
        NEST + "F[i][j] = A[i][j] + 1;\n" + INNER + "B[i][j] = F[i - 1][j] * F[i + 1][j];",
    ),
}  # fmt: skip


def notes_of(program: Program) -> list[str]:
    return [note for kernel in program.kernels for note in kernel.notes]


@pytest.mark.parametrize("which", ["numbers of other types", "others see it"])
def test_a_program_that_computes_anew_equals_the_original(which: str, tmp_path: Path) -> None:
    sizes = [{"N": 19, "M": 70}]
    program = checked(WRITTEN[which], tmp_path, sizes, bit_equal=True, recompute="all")
    assert any("is computed anew where it is read" in note for note in notes_of(program))
    assert not program.entries[0].temporaries
    assert len(program.kernels) == 1


def test_a_chain_of_stencils_is_one_kernel(tmp_path: Path) -> None:
    sizes = [{"NK": 3, "NI": 9, "NJ": 70}]
    (kernel,) = checked(LOCAL, tmp_path, sizes, bit_equal=True, recompute="all").kernels
    assert kernel.statements == ("S3",)
    assert kernel.notes[:3] == tuple(
        f"{name} is computed anew where it is read" for name in ("fli", "lap", "flj")
    )


# Which are computed anew -------------------------------------------------------------------


def test_nothing_is_computed_anew_where_nobody_wants_it() -> None:
    plain = eatss.codegen(LOCAL, gpu="h200", recompute="none")
    assert not any("anew" in note for note in notes_of(plain))
    shown = eatss.inspect(LOCAL)
    assert "recomputed" not in render_inspection(shown)
    with pytest.raises(InputError, match="EATSS-C012"):
        eatss.select(LOCAL, gpu="h200", recompute="all")
    with pytest.raises(InputError, match="EATSS-C004"):
        Reading(recompute="some")  # type: ignore[arg-type]
