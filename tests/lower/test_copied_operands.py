"""Programs with operands read from copies compute what the original does, at any sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.report.inspection import render_inspection
from eatss.session.session import Session
from eatss.verify import Verification, verify
from tests.examples import examples, with_long

TRMM = data_directory("kernels") / "trmm.c"

MACROS = "#ifndef N\n#define N 600\n#endif\n#ifndef M\n#define M 500\n#endif\n"
SIZES = [{"N": n, "M": m} for n, m in ((0, 3), (1, 1), (2, 3), (37, 29), (131, 5))]
NEST = "for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) "
FIXED = "double A[N][N], double B[N][M], double D[N][M]"
OPEN = "int N, int M, double A[N][N], double B[N][M]"

LIKE_TRMM = {
    "a lower triangle": (
        FIXED,
        "for (int i = N - 1; i >= 0; i--) for (int j = 0; j < M; j++)\n"
        "for (int k = 0; k < i; k++) B[i][j] += A[i][k] * B[k][j];",
    ),
    "from the right": (
        "double A[M][M], double B[N][M]",
        NEST + "for (int k = j + 1; k < M; k++) B[i][j] += B[i][k] * A[k][j];",
    ),
    "half of it is overwritten": (
        FIXED,
        "for (int i = 0; i < N / 2; i++) for (int j = 0; j < M; j++)\n"
        "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];",
    ),
    "the diagonal is read, too": (
        FIXED,
        NEST + "for (int k = i; k < N; k++) B[i][j] += A[k][i] * B[k][j];",
    ),
    "a guard": (
        FIXED,
        NEST + "for (int k = i + 1; k < N; k++) if (k < i + j) B[i][j] += A[k][i] * B[k][j];",
    ),
    "one value or another": (
        FIXED,
        NEST + "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] > 0 ? B[k][j] : 2;",
    ),
    "two arrays in place": (
        FIXED,
        NEST + "for (int k = i + 1; k < N; k++) { B[i][j] += A[k][i] * D[k][j];\n"
        "D[i][j] += A[i][k] * B[k][j]; }",
    ),
    "sizes are arguments": (
        OPEN,
        NEST + "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];",
    ),
    "pointers": (
        "int N, int M, double *A, double *B",
        NEST + "for (int k = i + 1; k < N; k++) B[i * M + j] += A[k * N + i] * B[k * M + j];",
    ),
    "a vector": ("double B[N + M]", "for (int i = 0; i < N - 1; i++) B[i] += B[i + 1];"),
    "a triangle times a vector": (
        "double A[N][N], double B[N + M]",
        "for (int i = 0; i < N; i++) for (int k = i + 1; k < N; k++) B[i] += A[i][k] * B[k];",
    ),
    "neighbours below": (
        FIXED,
        "for (int i = 0; i < N - 1; i++) for (int j = 1; j < M; j++)\n"
        "B[i][j] = B[i + 1][j - 1] + B[i + 1][j];",
    ),
    "a use before and after": (
        FIXED,
        NEST + "D[i][j] = B[i][j];\n"
        + NEST + "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];\n"
        + NEST + "D[i][j] -= B[i][j];",
    ),
    "whole numbers": (
        "int A[N][N], int B[N][M]",
        NEST + "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];",
    ),
}  # fmt: skip


def source(arguments: str, loops: str) -> str:
    macros = "" if arguments.startswith("int N") else MACROS
    return f"{macros}void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def notes_of(program: Program) -> list[str]:
    return [note for kernel in program.kernels for note in kernel.notes]


def verified_on_cpu(text: str, folder: Path, sizes: list[dict[str, int]]) -> Program:
    """Generate a program for C text and demand that it computes what the text does."""
    (folder / "f.c").write_text(text, encoding="utf-8")
    program = eatss.codegen(folder / "f.c", gpu="h200", output=folder / "out")
    names = {parameter.name for parameter in program.parameters}
    at = [{name: value for name, value in one.items() if name in names} for one in sizes]
    found = verify(folder / "out", device="cpu", sizes=at)
    assert (found.status, found.message) == ("ok", ""), text
    return program


QUICK = ("half of it is overwritten",)


@pytest.mark.parametrize("which", with_long(LIKE_TRMM, set(LIKE_TRMM).difference(QUICK)))
def test_a_program_with_a_copy_equals_the_original(which: str, tmp_path: Path) -> None:
    program = verified_on_cpu(source(*LIKE_TRMM[which]), tmp_path, SIZES)
    assert any("is read from the copy" in note for note in notes_of(program))
    assert [one.name.endswith("_before") for one in program.entries[0].temporaries].count(True)
    assert not any("runs on the host" in note for note in notes_of(program))


@pytest.mark.long
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
    found = verify_kernel(program, [{"NI": size} for size in (0, 1, 2, 131)])
    assert (found.status, found.message) == ("ok", "")


@pytest.mark.long
def test_a_strict_trmm_equals_the_original_bit_by_bit(
    generate: Callable[..., Program], verify_kernel: Callable[..., Verification]
) -> None:
    program = generate("trmm", options=CodegenOptions(strict_fp=True))
    found = verify_kernel(program, [{"NI": 45}])
    assert (found.status, found.message) == ("ok", "")
    assert found.bit_equal


@pytest.mark.parametrize("name", ["gemm", "lu", "symm", "seidel-2d", "trmm"])
def test_a_copy_is_where_it_frees_a_loop_only(name: str) -> None:
    scops = Session(data_directory("kernels") / f"{name}.c", code=True).scops
    copies = [array for scop in scops for array in scop.arrays if array.copy_of]
    assert bool(copies) == (name == "trmm")


@pytest.mark.long
def test_no_other_kernel_of_the_collection_has_a_copy(
    any_kernel: str, generate: Callable[..., Program]
) -> None:
    found = any("is read from the copy" in note for note in notes_of(generate(any_kernel)))
    assert found == (any_kernel == "trmm")


def test_kernels_of_ppcg_are_of_its_own_schedule() -> None:
    programs = ((eatss.inspect(TRMM), False), (eatss.inspect(TRMM, cut="eatss"), True))
    for program, copies in programs:
        assert any(array.copy_of for scop in program.scops for array in scop.scop.arrays) == copies
        assert ("double (copy of B)" in render_inspection(program)) == copies


def test_a_region_for_its_own_sizes_alone_has_a_copy_or_none_in_both_readings() -> None:
    text = source(*LIKE_TRMM["a lower triangle"]).replace("#ifndef N\n#define N 600\n#endif", "")
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
    text = source(arguments.replace("double", piece["element"]), loops)
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
test_random_updates_in_place_equal_the_original = pytest.mark.long(
    settings(unhurried, max_examples=examples(20))(drawn(equals_the_original))
)
