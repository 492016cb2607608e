"""Programs that compute anew what they read do what the original does; which do is predicted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import eatss
from eatss.analysis.structure import RecomputedArray
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.choose import Selection
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.program import Program, evaluate
from eatss.report.inspection import render_inspection
from eatss.session.session import Session
from eatss.session.steps import Arrays, best_recomputed
from eatss.verify import verify
from tests.examples import with_long

pytestmark = pytest.mark.usefixtures("analysed_once")

PROGRAMS = Path(__file__).resolve().parents[2] / "benchmarks" / "programs"
LOCAL = (PROGRAMS / "horizontal-diffusion-local.c").read_text(encoding="utf-8")
STORED = (PROGRAMS / "horizontal-diffusion.c").read_text(encoding="utf-8")

MACROS = "#ifndef N\n#define N 6000\n#endif\n#ifndef M\n#define M 5000\n#endif\n"
NEST = "for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) "
INNER = "for (int i = 1; i < N - 1; i++) for (int j = 1; j < M - 1; j++) "


def source(local: str, loops: str) -> str:
    arguments = "double A[N][M], double B[N][M], float F[N][M], int K[N][M]"
    return f"{MACROS}void f({arguments}) {{\n{local}\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


WRITTEN = {
    "one value or another": source(
        "double T[N][M];",
        NEST + "T[i][j] = A[i][j] > 0 ? A[i][j] : 2;\n"
        + INNER + "B[i][j] = T[i][j - 1] < 1 ? T[i][j + 1] : T[i - 1][j] * T[i][j - 1];",
    ),
    "numbers of other types": source(
        "float T[N][M]; int U[N][M]; short V[N][M];",
        NEST + "T[i][j] = A[i][j] / 3;\n"
        + NEST + "U[i][j] = T[i][j] * 100;\n"
        + NEST + "V[i][j] = U[i][j] * 999;\n"
        + INNER + "B[i][j] = U[i][j - 1] / 7 + T[i][j] * T[i - 1][j] + V[i][j + 1] * 2;",
    ),
    "values of counters": source(
        "double T[N][M];",
        NEST + "T[i][j] = A[i][j] * (i + 2 * j) + sqrt(A[i][j] + 2);\n"
        + INNER + "B[i][j] = (T[i][j - 1] - T[i][j]) * (T[i][j - 1] - T[i][j]);",
    ),
    "others see it": source(
        "",
        NEST + "F[i][j] = A[i][j] + 1;\n" + INNER + "B[i][j] = F[i - 1][j] * F[i + 1][j];",
    ),
}  # fmt: skip
QUICK = ("numbers of other types",)


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


@pytest.mark.parametrize("which", with_long(WRITTEN, set(WRITTEN).difference(QUICK)))
def test_a_program_that_computes_anew_equals_the_original(which: str, tmp_path: Path) -> None:
    program = verified(WRITTEN[which], tmp_path, N=19, M=70)
    assert any("is computed anew where it is read" in note for note in notes_of(program))
    assert not program.entries[0].temporaries
    assert len(program.kernels) == 1


@pytest.mark.parametrize("strict", with_long([False, True], [True]))
def test_a_chain_of_stencils_is_one_kernel(strict: bool, tmp_path: Path) -> None:
    program = verified(LOCAL, tmp_path, strict=strict, NK=3, NI=9, NJ=70)
    (kernel,) = program.kernels
    assert kernel.statements == ("S3",)
    assert kernel.notes[:3] == tuple(
        f"{name} is computed anew where it is read" for name in ("fli", "lap", "flj")
    )
    assert program.text.count("v0 = 4 * in") == 2  # each value once: in whole tiles, and in others


@pytest.mark.long
def test_arrays_that_others_see_are_stored_by_the_same_kernel(tmp_path: Path) -> None:
    program = verified(STORED, tmp_path, NK=3, NI=9, NJ=70)
    assert [kernel.statements for kernel in program.kernels] == [("S0", "S1", "S2", "S3")]


def test_operations_are_those_of_the_source() -> None:
    sizes = {"NK": 4, "NI": 20, "NJ": 20}
    counted = []
    for recompute in ("all", "none"):
        (entry,) = eatss.codegen(LOCAL, gpu="h200", recompute=recompute).entries
        assert entry.work is not None
        operations = entry.work.operations
        assert operations is not None
        counts = [one.count for one in operations]
        expressions = (*counts, entry.work.read_bytes, entry.work.written_bytes)
        counted.append([evaluate(one, sizes) for one in expressions if one is not None])
    assert counted[0] == counted[1]


# Which are computed anew -------------------------------------------------------------------


@pytest.mark.long
def test_the_prediction_says_what_is_computed_anew() -> None:
    session = Session(LOCAL, code=True)
    assert [one.array for one in session.recomputable] == ["lap", "fli", "flj"]
    selection = session.select("h200", SelectOptions(target="cuda"))
    assert selection.recomputed == session.recomputable
    assert Selection.from_dict(selection.to_dict()) == selection


@pytest.mark.long
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


def test_inspect_shows_what_is_computed_anew() -> None:
    shown = eatss.inspect(LOCAL, cut="eatss", recompute="all")
    assert "recomputed where read: fli, lap, flj" in render_inspection(shown)


def test_a_source_that_cannot_compute_an_array_anew_is_told() -> None:
    gemm = Session(data_directory("kernels") / "gemm.c", code=True)
    selection = gemm.select("h200", SelectOptions(target="cuda"))
    assert (gemm.recomputable, selection.recomputed) == ((), ())
    other = replace(selection, recomputed=(RecomputedArray(region=0, array="C"),))
    with pytest.raises(InputError, match="EATSS-P026"):
        gemm.of(other)


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


def costing(plain: Selection, energy_j: float, arrays: Arrays) -> Selection:
    """Return a selection of one kernel that is expected to take some energy."""
    (kernel, *_) = plain.kernels
    assert kernel.predicted is not None
    predicted = replace(kernel.predicted, energy_j=energy_j)
    return replace(plain, kernels=(replace(kernel, predicted=predicted),), recomputed=arrays)


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("energies", "best"),
    [
        ({"": 3, "ab": 2, "b": 2.5, "a": 2.5}, "ab"),
        ({"": 3, "ab": 4, "a": 2, "b": 5}, "a"),
        ({"": 3, "ab": 2, "b": 1}, "b"),
        ({"": 3, "ab": 3, "a": 3.5, "b": 3}, ""),
        ({"": 3, "b": 2, "a": 4}, "b"),  # all of them cannot be
    ],
)
def test_least_is_expected_of_what_is_chosen(energies: dict[str, float], best: str) -> None:
    arrays = tuple(RecomputedArray(region=0, array=name) for name in "ab")
    plain = eatss.select(data_directory("kernels") / "mvt.c", gpu="h200", target="cuda")

    def select(chosen: Arrays) -> Selection | None:
        energy_j = energies.get("".join(one.array for one in chosen))
        return None if energy_j is None else costing(plain, energy_j, chosen)

    found = best_recomputed(arrays, costing(plain, energies[""], ()), select)
    assert "".join(one.array for one in found.recomputed) == best
