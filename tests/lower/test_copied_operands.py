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
from eatss.program import Program
from eatss.report.inspection import render_inspection
from eatss.session.session import Session
from eatss.verify import Verification, verify
from tests.examples import examples

TRMM = data_directory("kernels") / "trmm.c"

LOWER = """for (int i = N - 1; i >= 0; i--) for (int j = 0; j < M; j++)
    for (int k = 0; k < i; k++) B[i][j] += A[i][k] * B[k][j];"""
MACROS = "#ifndef N\n#define N 600\n#endif\n#ifndef M\n#define M 500\n#endif\n"


def source(arguments: str, loops: str) -> str:
    macros = "" if arguments.startswith("int N") else MACROS
    return f"{macros}void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def verified_on_cpu(text: str, folder: Path, sizes: list[dict[str, int]]) -> Program:
    """Generate a program for C text and demand that it computes what the text does."""
    (folder / "f.c").write_text(text, encoding="utf-8")
    program = eatss.codegen(folder / "f.c", gpu="h200", output=folder / "out")
    names = {parameter.name for parameter in program.parameters}
    at = [{name: value for name, value in one.items() if name in names} for one in sizes]
    found = verify(folder / "out", device="cpu", sizes=at)
    assert (found.status, found.message) == ("ok", ""), text
    return program


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


@pytest.mark.parametrize("name", ["gemm", "lu", "trmm"])
def test_a_copy_is_where_it_frees_a_loop_only(name: str) -> None:
    scops = Session(data_directory("kernels") / f"{name}.c", code=True).scops
    copies = [array for scop in scops for array in scop.arrays if array.copy_of]
    assert bool(copies) == (name == "trmm")


def test_kernels_of_ppcg_are_of_its_own_schedule() -> None:
    programs = ((eatss.inspect(TRMM), False), (eatss.inspect(TRMM, cut="eatss"), True))
    for program, copies in programs:
        assert any(array.copy_of for scop in program.scops for array in scop.scop.arrays) == copies
        assert ("double (copy of B)" in render_inspection(program)) == copies


def test_a_region_for_its_own_sizes_alone_has_a_copy_or_none_in_both_readings() -> None:
    text = source("double A[N][N], double B[N][M]", LOWER).replace(
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
test_random_updates_in_place_equal_the_original = settings(unhurried, max_examples=examples(4))(
    drawn(equals_the_original)
)
