"""``eatss.codegen`` in Python."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.verify import verify

KERNELS = data_directory("kernels")
SCALE = """\
void scale(int n, double a[n], double b[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = 2 * b[i];
#pragma endscop
}
"""


def test_text_gives_a_program_named_after_its_function() -> None:
    program = eatss.codegen(SCALE, gpu="h200")
    assert isinstance(program, eatss.Program)
    assert (program.file, program.original.file) == ("scale.cu", "scale.c")
    assert [(p.name, p.kind) for p in program.parameters] == [("n", "argument")]


def test_a_folder_is_written_on_request(tmp_path: Path) -> None:
    program = eatss.codegen(SCALE, gpu="h200", output=tmp_path)
    assert (tmp_path / "scale.cu").read_text() == program.text
    assert (tmp_path / "scale.c").read_text() == SCALE


def test_sizes_blocks_and_placements_are_mappings() -> None:
    program = eatss.codegen(
        KERNELS / "2mm.c",
        gpu="h200",
        tiles={"i": 16, "kernel1": {"j": 48}},
        block={"": (4, 8), "k1": (2, 16)},
        placements={"A": "shared"},
    )
    first, second = program.kernels
    assert dict(first.tile_sizes)["i"] == dict(second.tile_sizes)["i"] == 16
    assert dict(second.tile_sizes)["j"] == 48
    assert (first.block, second.block) == ((8, 4, 1), (16, 2, 1))


def test_a_selection_made_before_is_used() -> None:
    selection = eatss.select(SCALE, gpu="h200", split=0.25)
    program = eatss.codegen(SCALE, gpu="h200", selection=selection)
    assert program == eatss.codegen(SCALE, gpu="h200", model="eatss", split=0.25)
    with pytest.raises(eatss.InputError) as caught:
        eatss.codegen(SCALE, gpu="a100", selection=selection)
    assert caught.value.code == "EATSS-K011"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"tiles": {"i": True}}, "EATSS-K002"),
        ({"tiles": {"i": 2.0}}, "EATSS-K002"),
        ({"tiles": {"j": 2}}, "EATSS-K001"),
        ({"tiles": {"k1": {"i": 2}}}, "EATSS-K013"),
        ({"block": (1.5,)}, "EATSS-K003"),
        ({"block": (2048,)}, "EATSS-K003"),
        ({"placements": {"a": "constant"}}, "EATSS-C004"),
        ({"placements": {"z": "l1"}}, "EATSS-K005"),
        ({"index_bits": 16}, "EATSS-C004"),
        ({"volume": "much"}, "EATSS-C004"),
        ({"dtype": "float"}, "EATSS-K010"),
        ({"dtype": "half"}, "EATSS-K010"),
    ],
)
def test_a_wrong_argument_is_an_input_error(options: dict[str, object], code: str) -> None:
    with pytest.raises(eatss.InputError) as caught:
        eatss.codegen(SCALE, gpu="h200", **options)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_region_that_is_not_c_is_refused_like_everywhere() -> None:
    with pytest.raises(eatss.InputError) as caught:
        eatss.codegen(SCALE.replace("b[i]", "b[i * i]"), gpu="h200")
    assert caught.value.code.startswith("EATSS-F")


@pytest.mark.samples(1)
@pytest.mark.parametrize("first", ["import eatss.cuda.generate", ""])
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
        programs = list(pool.map(lambda _: eatss.codegen(SCALE, gpu="h200"), range(8)))
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
