"""Programs that compute anew what they read do what the original does; which do is predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.program import Program
from eatss.report.inspection import render_inspection
from eatss.session.session import Session
from eatss.verify import verify

pytestmark = pytest.mark.usefixtures("analysed_once")

PROGRAMS = Path(__file__).resolve().parents[2] / "benchmarks" / "programs"
LOCAL = (PROGRAMS / "horizontal-diffusion-local.c").read_text(encoding="utf-8")

MACROS = "#ifndef N\n#define N 6000\n#endif\n#ifndef M\n#define M 5000\n#endif\n"
NEST = "for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) "
INNER = "for (int i = 1; i < N - 1; i++) for (int j = 1; j < M - 1; j++) "


def source(local: str, loops: str) -> str:
    arguments = "double A[N][M], double B[N][M], float F[N][M], int K[N][M]"
    return f"{MACROS}void f({arguments}) {{\n{local}\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


WRITTEN = {
    "numbers of other types": source(
        "float T[N][M]; int U[N][M]; short V[N][M];",
        NEST + "T[i][j] = A[i][j] / 3;\n"
        + NEST + "U[i][j] = T[i][j] * 100;\n"
        + NEST + "V[i][j] = U[i][j] * 999;\n"
        + INNER + "B[i][j] = U[i][j - 1] / 7 + T[i][j] * T[i - 1][j] + V[i][j + 1] * 2;",
    ),
    "others see it": source(
        "",
        NEST + "F[i][j] = A[i][j] + 1;\n" + INNER + "B[i][j] = F[i - 1][j] * F[i + 1][j];",
    ),
}  # fmt: skip


def notes_of(program: Program) -> list[str]:
    return [note for kernel in program.kernels for note in kernel.notes]


def verified(text: str, folder: Path, *, strict: bool = False, **sizes: int) -> Program:
    """Generate code that computes anew all it can, and demand that it does what the text does."""
    (folder / "f.c").write_text(text, encoding="utf-8")
    program = eatss.codegen(
        folder / "f.c", gpu="h200", output=folder / "out", recompute="all", strict_fp=strict
    )
    found = verify(folder / "out", device="cpu", sizes=[sizes])
    assert (found.status, found.message) == ("ok", "")
    assert found.bit_equal
    return program


@pytest.mark.parametrize("which", ["numbers of other types", "others see it"])
def test_a_program_that_computes_anew_equals_the_original(which: str, tmp_path: Path) -> None:
    program = verified(WRITTEN[which], tmp_path, N=19, M=70)
    assert any("is computed anew where it is read" in note for note in notes_of(program))
    assert not program.entries[0].temporaries
    assert len(program.kernels) == 1


def test_a_chain_of_stencils_is_one_kernel(tmp_path: Path) -> None:
    program = verified(LOCAL, tmp_path, strict=False, NK=3, NI=9, NJ=70)
    (kernel,) = program.kernels
    assert kernel.statements == ("S3",)
    assert kernel.notes[:3] == tuple(
        f"{name} is computed anew where it is read" for name in ("fli", "lap", "flj")
    )
    assert program.text.count("v0 = 4 * in") == 2  # each value once: in whole tiles, and in others


# Which are computed anew -------------------------------------------------------------------


def test_a_selection_and_a_recipe_say_what_is_computed_anew() -> None:
    program = eatss.codegen(LOCAL, gpu="h200")
    selection = eatss.select(LOCAL, gpu="h200", target="cuda")
    assert program.recipe is not None
    assert program.recipe["recomputed"] == [
        {"region": 0, "array": name} for name in ("lap", "fli", "flj")
    ]
    assert eatss.codegen(LOCAL, gpu="h200", selection=selection).text == program.text


def test_nothing_is_computed_anew_where_nobody_wants_it() -> None:
    plain = eatss.codegen(LOCAL, gpu="h200", recompute="none")
    assert not any("anew" in note for note in notes_of(plain))
    shown = eatss.inspect(LOCAL)
    assert "recomputed" not in render_inspection(shown)
    with pytest.raises(InputError, match="EATSS-C013"):
        eatss.select(LOCAL, gpu="h200", recompute="all")
    with pytest.raises(InputError, match="EATSS-C004"):
        Reading(recompute="some")  # type: ignore[arg-type]


IN_PLACE = """
void steps(int n, double A[n + 1]) {
    double next[n];
#pragma scop
    for (int t = 0; t < 6; t++) {
        for (int i = 0; i < n; i++) next[i] = A[i] + 2 * A[i + 1];
        for (int i = 0; i < n; i++) A[i] = next[i];
    }
#pragma endscop
}
"""


def test_loops_that_are_parallel_stay_so() -> None:
    session = Session(IN_PLACE, code=True)
    assert [one.array for one in session.recomputable] == ["next"]
    assert session.select("h200", SelectOptions(target="cuda")).recomputed == ()
