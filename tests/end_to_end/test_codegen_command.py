"""``eatss codegen`` as scripts use it: options, errors, files, determinism."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.program import Program, load_program
from tests.end_to_end.in_process import eatss as command_line
from tests.forked_workers import python

pytestmark = pytest.mark.usefixtures("kept", "analysed_once")

KERNELS = data_directory("kernels")
TWO_REGIONS = """\
#ifndef N
#define N 500
#endif
void two(double a[N][N], double b[N][N], double c[N]) {
#pragma scop
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) a[i][j] = 2 * b[i][j];
#pragma endscop
#pragma scop
  for (int k = 0; k < N; k++) c[k] = a[k][0];
#pragma endscop
}
"""

QUICK = ("--split", "0", "--warp-fraction", "0.125")
"""One cell of the grid: these tests are not about the solving."""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in this process."""
    return command_line("codegen", *arguments)


def generate(folder: Path, *arguments: str | Path) -> Program:
    """Run the command and load the program it wrote."""
    done = run(*QUICK, *arguments, "--gpu", "h200", "-o", folder)
    assert done.returncode == 0, done.stderr
    return load_program(folder)


def code_of(*arguments: str | Path) -> str:
    """Return the code of the error that the command ends with."""
    done = run(*arguments)
    assert "hint: " in done.stderr
    found = re.search(r"EATSS-\w+", done.stderr)
    assert found is not None
    return found[0]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- what is written and printed ------------------------------------------------------------


def test_the_command_writes_a_folder_and_says_what_to_do_next(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "gemm"
    arguments = ["codegen", str(KERNELS / "gemm.c"), "--gpu", "h200", "-o", str(folder)]
    done = subprocess.run(
        python("-m", "eatss", *arguments), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(files_of(folder)) == {"gemm.cu", "plan.json", "gemm.c"}
    assert (folder / "gemm.c").read_bytes() == (KERNELS / "gemm.c").read_bytes()
    for word in ("kernel_gemm_k0", "S0, S1", "tiles", "block", "shared"):
        assert word in done.stdout
    assert f"eatss verify {folder}" in done.stderr
    assert "nvcc -O3 -arch=sm_90" in done.stderr


def test_json_on_stdout_is_the_launch_plan(tmp_path: Path) -> None:
    done = run(KERNELS / "gemm.c", "--gpu", "h200", "-o", tmp_path, "--format", "json")
    plan = json.loads((tmp_path / "plan.json").read_text())
    del plan["checksums"]
    printed = json.loads(done.stdout)
    expected = printed.pop("expected")
    assert printed.pop("warnings") == []
    assert printed == plan
    assert expected["time_s"] > expected["least_time_s"] > 0
    assert expected["sizes"][0] == {"name": "NI", "value": 4000, "assumed": False}


# -- options ------------------------------------------------------------------------------------


def test_sizes_of_one_kernel_win_over_those_of_all(tmp_path: Path) -> None:
    source = KERNELS / "2mm.c"
    own = ("--tile", "k1:j=48", "--tile", "i=16,j=24", "--block", "4,8", "--block", "k1:2,16")
    first, second = generate(tmp_path, source, *own).kernels
    assert (dict(first.tile_sizes)["j"], dict(second.tile_sizes)["j"]) == (24, 48)
    assert dict(first.tile_sizes)["i"] == dict(second.tile_sizes)["i"] == 16
    assert (first.block, second.block) == ((8, 4, 1), (16, 2, 1))


def test_a_recipe_makes_the_same_folder_again(tmp_path: Path) -> None:
    saved, first = tmp_path / "recipe.json", tmp_path / "first"
    own = ("--tile", "i=32", "--place", "A=l1", "--index", "64")
    generate(first, KERNELS / "gemm.c", *own, "--save-recipe", saved)
    for number, recipe in enumerate((saved, first)):
        again = tmp_path / f"again{number}"
        done = run(KERNELS / "gemm.c", "--gpu", "h200", "-o", again, "--recipe", recipe)
        assert done.returncode == 0, done.stderr
        assert files_of(again) == files_of(first)


def test_a_saved_selection_takes_the_place_of_solving(tmp_path: Path) -> None:
    saved = tmp_path / "selection.json"
    done = command_line("select", KERNELS / "gemm.c", "--gpu", "h200", "--format", "json")
    document = json.loads(done.stdout)
    sizes = document["kernels"][0]["tile_sizes"]
    sizes["k"] += 7  # no solver would
    saved.write_text(json.dumps(document))
    program = generate(tmp_path / "out", KERNELS / "gemm.c", "--selection", saved)
    assert dict(program.kernels[0].tile_sizes) == sizes
    assert code_of(
        KERNELS / "gemm.c", "-g", "a100", "-o", tmp_path / "o", "--selection", saved
    ) == ("EATSS-K011")
    for other in ("atax.c", "2mm.c"):
        options = ("--gpu", "h200", "-o", tmp_path / "o", "--selection", saved)
        assert code_of(KERNELS / other, *options) == "EATSS-K011"


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--tile", "i"], "EATSS-C004"),
        (["--tile", "i=-8"], "EATSS-K001"),
        (["--tile", "q=8"], "EATSS-K001"),
        (["--tile", "k7:i=8"], "EATSS-K001"),
        (["--block", "a"], "EATSS-C004"),
        (["--block", "0,8"], "EATSS-K001"),
        (["--block", "2,2,2"], "EATSS-K001"),
        (["--block", "k7:8"], "EATSS-K001"),
        (["--place", "A=texture"], "EATSS-C004"),
        (["--place", "Q=shared"], "EATSS-K001"),
        (["--stream", "k=6", "--share", "k=3"], "EATSS-C004"),
        (["--strict-fp", "--stream", "k=6"], "EATSS-K019"),
        (["--split", "2"], "EATSS-C004"),
        (["--shared-per-block", "much"], "EATSS-C004"),
        (["--selection", "missing.json"], "EATSS-C008"),
        (["--save-recipe", "missing/recipe.json"], "EATSS-C008"),
    ],
)
def test_a_wrong_option_is_the_users_error(
    options: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert code_of(*QUICK, KERNELS / "gemm.c", "--gpu", "h200", "-o", "out", *options) == code
    assert not Path("out").exists()


def test_a_type_that_is_spelled_out_cannot_be_changed(tmp_path: Path) -> None:
    source = tmp_path / "two.c"
    source.write_text(TWO_REGIONS)
    arguments = (source, "--gpu", "h200", "-o", tmp_path / "o", "--dtype")
    assert code_of(*arguments, "float") == "EATSS-K010"
    assert code_of(*arguments, "half") == "EATSS-K010"
    assert run(*arguments, "double").returncode == 0
    source.write_text(TWO_REGIONS.replace("double", "int"))
    assert code_of(*arguments, "float") == "EATSS-K010"


def test_a_card_that_lacks_atomics_on_doubles_is_refused(tmp_path: Path) -> None:
    profile = (data_directory("gpu_profiles") / "v100.toml").read_text()
    card = tmp_path / "old.toml"
    card.write_text(profile.replace('compute_capability = "7.0"', 'compute_capability = "5.2"'))
    assert load_profile(card).compute_capability == (5, 2)
    arguments = (*QUICK, KERNELS / "atax.c", "--gpu", card, "-o", tmp_path / "out")
    assert code_of(*arguments) == "EATSS-K012"
    assert run(*arguments, "--strict-fp").returncode == 0
    assert run(*arguments, "--dtype", "float").returncode == 0


# -- folders ------------------------------------------------------------------------------------


def test_foreign_files_are_not_replaced(tmp_path: Path) -> None:
    arguments = (KERNELS / "gemm.c", "--gpu", "h200", "-o", tmp_path)
    (tmp_path / "gemm.cu").write_text("mine")
    (tmp_path / "other").write_text("mine")
    assert code_of(*arguments) == "EATSS-C008"
    assert files_of(tmp_path) == {"gemm.cu": b"mine", "other": b"mine"}
    assert run(*arguments, "--force").returncode == 0
    assert (tmp_path / "gemm.cu").read_text() != "mine"
    assert (tmp_path / "other").read_text() == "mine"


def test_a_program_of_ours_is_replaced(tmp_path: Path) -> None:
    generate(tmp_path, KERNELS / "gemm.c", "--tile", "i=32")
    program = generate(tmp_path, KERNELS / "gemm.c", "--tile", "i=16")
    assert dict(program.kernels[0].tile_sizes)["i"] == 16
    other = (KERNELS / "gemver.c", "--gpu", "h200", "-o", tmp_path)
    assert code_of(*other) == "EATSS-C008"
    assert load_program(tmp_path).name == "gemm"
    assert run(*other, "--force").returncode == 0


@pytest.mark.parametrize("beside", [True, False])
def test_a_folder_with_its_headers_can_be_moved(beside: bool, tmp_path: Path) -> None:
    home = tmp_path / "src"
    above, searched = (home, home / "more") if beside else (tmp_path / "inc", tmp_path / "more")
    for folder in (home, above / "deep", searched):
        folder.mkdir(exist_ok=True, parents=True)
    types = "deep/types.h" if beside else "../inc/deep/types.h"
    (home / "scale.c").write_text(
        f'#include "{types}"\n#include <size.h>\n#include <math.h>\n'
        "void scale(real a[N], real b[N]) {\n#pragma scop\n"
        "  for (int i = 0; i < N; i++) a[i] = 2 * b[i];\n#pragma endscop\n}\n"
    )
    (above / "deep" / "types.h").write_text('#include "real.h"\n')
    (above / "deep" / "real.h").write_text("typedef double real;\n")
    (searched / "size.h").write_text("#ifndef N\n#define N 100\n#endif\n")
    program = generate(tmp_path / "out", home / "scale.c", "-I", searched)
    assert [p.name for p in program.parameters] == ["N"]
    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(tmp_path / "out", moved)
    for folder in (home, above, searched, tmp_path / "out"):
        shutil.rmtree(folder, ignore_errors=True)
    program = load_program(moved)
    assert not any(Path(place).is_absolute() for place in program.original.include_dirs)
    search = [f"-I{place}" for place in program.original.include_dirs]
    done = subprocess.run(
        ["gcc", "-fsyntax-only", *search, program.original.file],
        cwd=moved,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# -- determinism ----------------------------------------------------------------------------------


GENERATING = """\
import sys, eatss
eatss.codegen(sys.argv[1], gpu='h200', output=sys.argv[2])
"""


def test_equal_input_gives_equal_bytes_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EATSS_CACHE_DIR", os.devnull)
    seeds = ("1", "271")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", GENERATING, KERNELS / "gemm.c", tmp_path / seed],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in seeds
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    runs = [files_of(tmp_path / seed) for seed in seeds]
    assert len(runs[0]) == 3
    assert runs[0] == runs[1]
    eatss.codegen(KERNELS / "gemm.c", gpu="h200", output=tmp_path / "again")
    assert files_of(tmp_path / "again") == runs[0]
