"""The library as a JIT would use it: sources, selections, code, sessions, threads."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodeRequest
from eatss.session import analysis
from eatss.session.session import Session
from eatss.verify.run import verify

KERNELS = data_directory("kernels")

SOURCE = """
void scale(int n, double a[n][n], double b[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      b[i][j] = 2.0 * a[i][j];
#pragma endscop
}
"""


def test_a_selection_is_hashable_and_survives_json() -> None:
    selection = eatss.select(SOURCE, gpu="h200")
    again = eatss.Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    assert again == selection
    assert hash(again) == hash(selection)
    assert selection.to_dict()["schema_version"] == 5


def test_a_loop_shorter_than_the_alignment_stays_untiled() -> None:
    (kernel,) = eatss.select(
        SOURCE, gpu="h200", split=0.0, warp_fraction=1.0, parameters={"n": 20}
    ).kernels
    assert kernel.tile_sizes == (("i", 20), ("j", 20))


def test_threads_get_what_one_thread_gets() -> None:
    kernels = ["gemm", "mvt"]
    names = kernels * 2
    serial = [eatss.select(KERNELS / f"{n}.c", gpu="a100") for n in kernels] * 2
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda n: eatss.select(KERNELS / f"{n}.c", gpu="a100"), names))
    assert parallel == serial


def test_uniform_gives_all_kernels_one_vector() -> None:
    selection = eatss.select(KERNELS / "2mm.c", gpu="a100", uniform=True, model="paper")
    sizes = {tuple(size for _, size in kernel.tile_sizes) for kernel in selection.kernels}
    assert len(selection.kernels) == 2
    assert len(sizes) == 1


def test_no_solution_names_the_limits_in_conflict(tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = """
void f(double a[64][64][64], double b[64][64][64]) {
#pragma scop
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++)
      for (int k = 0; k < 64; k++)
        b[i][j][k] = a[k][j][i] + a[j][k][i];
#pragma endscop
}
"""
    with pytest.raises(eatss.NoSolutionError) as caught:
        eatss.select(source, gpu="xavier", split=0.25, warp_fraction=1.0)
    assert "shared memory: 1 reference needs at least 256 KiB, the card has 32 KiB" in str(
        caught.value
    )
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "options",
    [
        {"gpu": 3},
        {"shared_per_block": "foo"},
        {"split": "half"},
        {"warp_fraction": True},
        {"dtype": "quad"},
        {"model": "x"},
        {"split": float("nan")},
    ],
)
def test_a_wrong_option_is_an_input_error(options: dict[str, object]) -> None:
    with pytest.raises(eatss.InputError):
        eatss.select(SOURCE, **{"gpu": "h200", **options})  # type: ignore[arg-type]


SCALE = """\
void scale(int n, double a[n], double b[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = 2 * b[i];
#pragma endscop
}
"""


@pytest.mark.parametrize("first", ["import eatss.cuda.generate"])
def test_function_and_package_share_their_name_whatever_is_imported_first(first: str) -> None:
    script = (
        f"{first}\nimport eatss, inspect\nfrom eatss import codegen\n"
        f"program = eatss.codegen({SCALE!r}, gpu='h200')\n"
        f"assert program == codegen({SCALE!r}, gpu='h200')\n"
        "import eatss.lower.recipe as options\n"
        "assert options.CodegenOptions() and 'gpu' in inspect.signature(codegen).parameters\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_threads_generate_the_same_text() -> None:
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(lambda _: eatss.codegen(SCALE, gpu="h200"), range(4)))
    assert all(program == programs[0] for program in programs)


def test_an_arm_that_is_not_taken_restricts_no_size(tmp_path: Path) -> None:
    text = (
        "void f(int n, double A[n], double B[n], double C[n][n]) {\n#pragma scop\n"
        "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++)\n"
        "      C[i][j] += (i > 0 ? A[i - 1] : 0.5) * (j + 1 < n ? B[j + 1] : B[0]);\n"
        "#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    assert not any("arrays" in a.message for a in program.entries[0].assumptions)
    found = verify(tmp_path, device="cpu", sizes=({"n": 1}, {"n": 70}))
    assert [(r.status, r.compared > 0) for r in found.results] == [("ok", True)] * 2


def test_code_for_a_given_size_refuses_others(tmp_path: Path) -> None:
    text = (
        "void f(int n, int m, double A[n][m]) {\n#pragma scop\n"
        "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n"
        "      A[i][j] += 1;\n#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", parameters={"n": 40}, output=tmp_path)
    said = [one.message for one in program.entries[0].assumptions]
    assert "this code is for n = 40 only" in said
    assert not any("m =" in one for one in said)
    found = verify(tmp_path, device="cpu", sizes=({"n": 40, "m": 7}, {"n": 39, "m": 7}))
    assert [(r.status, r.refused) for r in found.results] == [("ok", False), ("ok", True)]


def test_a_temporary_that_nothing_needs_at_some_sizes_is_no_error_there(tmp_path: Path) -> None:
    text = (
        "void f(int n, int m, double B[n][6], double C[n][6]) {\n#pragma scop\n"
        "  for (int i = n - 1; i > -1; i--)\n"
        "    if (-1 == i * 3 + m * 3 + 5) {\n      double t = 0;\n"
        "      for (int c = 0; c < 6; c++) t += B[i][c];\n"
        "      for (int c = 0; c < 6; c++) C[i][c] = t * B[i][c];\n    }\n#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    assert program.entries[0].temporaries
    found = verify(tmp_path, device="cpu", sizes=({"n": 6, "m": 4}, {"n": 6, "m": -3}))
    assert [(r.status, r.compared > 0) for r in found.results] == [("ok", True)] * 2


ATAX = data_directory("kernels") / "atax.c"
H200 = load_profile("h200")


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    calls: list[object] = []
    original = getattr(module, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return original(*arguments, **named)

    monkeypatch.setattr(module, name, noted)
    return calls


def test_a_source_is_analysed_once_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed = counted(monkeypatch, analysis, "analyse")
    session = Session(ATAX, code=True)
    selection = session.select(H200, SelectOptions(target="cuda"))
    for tile in (None, {"i": 32}):
        recipe = session.recipe(selection, H200, CodeRequest(tiles=tile))
        assert session.generate(recipe, H200).kernels
    assert len(analysed) == 1


def test_reading_with_symbolic_sizes_reads_the_numbers_once() -> None:
    session = Session(ATAX, Reading(defines={"M": 200}))
    assert session.parsed_symbolic.numeric is session.parsed
