"""Both commands print what was found and exit with what it means.

Compilers by name, and what a verification tells while it works.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.cli.verify import doing
from eatss.program import Program
from eatss.verify.result import Compilers, Progress, Verification, exit_code, refused
from eatss.verify.run import verify
from tests.forked_workers import python
from tests.verify.conftest import MATMUL_C

EATSS = ["-m", "eatss", "verify"]
SIZES = ["--device", "cpu", "--size", "M=20,N=37,K=33"]


def call(command: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python, forked."""
    return started(python(*command, *arguments))


def started(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_right_program_exits_with_0(matmul: Program, folder: Callable[..., Path]) -> None:
    done = started([sys.executable, *EATSS, str(folder(matmul, MATMUL_C)), *SIZES])
    assert done.returncode == 0, done.stderr
    assert "M=20 N=37 K=33" in done.stdout
    assert "ok" in done.stdout


def test_a_wrong_program_exits_with_1_and_says_where(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    place = folder(matmul, MATMUL_C, ("= sum;", "= i == 2 ? 0 : sum;"))
    done = call(EATSS, str(place), *SIZES)
    assert done.returncode == 1
    assert "wrong result" in done.stdout
    assert "C[2][0] is 0.0" in " ".join(done.stdout.split())


def test_a_folder_without_a_program_exits_with_2(tmp_path: Path) -> None:
    done = call(EATSS, str(tmp_path))
    assert done.returncode == 2
    assert "EATSS-V003" in done.stderr
    assert "Traceback" not in done.stderr


def test_folders_that_are_refused_hide_no_others(
    matmul: Program,
    folder: Callable[..., Path],
    tmp_path: Path,
) -> None:
    right = folder(matmul, MATMUL_C)
    damaged = tmp_path / "damaged"
    shutil.copytree(right, damaged)
    (damaged / "plan.json").write_text("{", encoding="utf-8")
    places = [str(tmp_path / "none"), str(right), str(damaged)]
    done = call(EATSS, *places, *SIZES, "--format", "json")
    assert done.returncode == 2
    found = json.loads(done.stdout)["verifications"]
    assert [one["status"] for one in found] == ["refused", "ok", "refused"]
    assert [one["program"] for one in found] == ["none", "matmul", "damaged"]
    assert "EATSS-V" in found[2]["message"]
    assert "EATSS-V003" in done.stderr
    table = call(EATSS, *places, *SIZES)
    assert table.returncode == 2
    assert "M=20 N=37 K=33" in table.stdout


def test_a_wrong_program_is_graver_than_a_refused_folder() -> None:
    blank = Verification(
        program="p",
        device="cpu",
        status="ok",
        message="",
        bit_equal=True,
        results=(),
    )
    wrong = replace(blank, status="wrong result")
    no_folder = input_error("EATSS-V003", "there is none", hint="")
    assert exit_code([blank, wrong, refused(Path("x"), "cpu", no_folder)], [no_folder]) == 1
    assert exit_code([blank, refused(Path("x"), "cpu", no_folder)], [no_folder]) == 2
    assert exit_code([blank], []) == 0


def test_json_names_sizes_status_and_difference(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    place = folder(matmul, MATMUL_C, ("= sum;", "= i == 2 ? 0 : sum;"))
    done = call(EATSS, str(place), *SIZES, "--format", "json")
    (found,) = json.loads(done.stdout)["verifications"]
    assert (found["program"], found["device"], found["status"]) == ("matmul", "cpu", "wrong result")
    (result,) = found["results"]
    assert result["sizes"] == {"M": 20, "N": 37, "K": 33}
    assert result["difference"]["array"] == "C"
    assert result["difference"]["indices"] == [2, 0]


def test_the_worker_needs_no_isl_solver_or_rich() -> None:
    blocked = "islpy", "z3", "clang", "click", "rich", "pydantic", "networkx"
    text = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); import eatss.verify.worker"
    done = started([sys.executable, "-c", text])
    assert done.returncode == 0, done.stderr


def wrapper(path: Path, command: str) -> Path:
    path.write_text(f'#!/bin/sh\necho called >> "{path}.log"\n{command} "$@"\n')
    path.chmod(0o755)
    return path


def test_progress_tells_each_run_and_how_many_there_are(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    told: list[Progress] = []
    names = [parameter.name for parameter in matmul.parameters]
    sizes = [dict.fromkeys(names, size) for size in (3, 5, 8)]
    found = verify(folder(matmul, MATMUL_C), device="cpu", sizes=sizes, progress=told.append)
    assert found.ok
    runs = sorted({(one.done, one.launcher, one.sizes, one.total) for one in told})
    assert runs == [
        (number, result.launcher, result.sizes, 3) for number, result in enumerate(found.results)
    ]
    assert {one.stage for one in told} >= {"compile", "original", "generated"}
    assert doing(told[0]).endswith("=3: compile")


def test_the_compilers_that_are_named_are_used(
    matmul: Program, folder: Callable[..., Path], tmp_path: Path
) -> None:
    cc, cxx = wrapper(tmp_path / "my-cc", "gcc"), wrapper(tmp_path / "my-cxx", "g++")
    sizes = [{parameter.name: 3 for parameter in matmul.parameters}]
    compilers = Compilers(cc=str(cc), cxx=str(cxx))
    place = folder(matmul, MATMUL_C)
    assert verify(place, device="cpu", sizes=sizes, compilers=compilers).ok
    assert (tmp_path / "my-cc.log").exists()
    assert (tmp_path / "my-cxx.log").exists()

    nvcc = wrapper(tmp_path / "my-nvcc", "echo 'my-nvcc: fatal error: no such card' >&2; false")
    compilers = Compilers(nvcc=str(nvcc))
    found = verify(place, device="gpu", sizes=sizes, compilers=compilers)
    assert found.status == "compile error"
    assert "my-nvcc: fatal error: no such card" in found.message
