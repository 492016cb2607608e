"""Both commands print what was found and exit with what it means."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.program import Program

ORIGINAL = """
#ifndef M
#define M 100
#endif
#ifndef N
#define N 100
#endif
#ifndef K
#define K 100
#endif
void matmul(double C[M][N], double A[M][K], double B[K][N])
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < K; k++)
                C[i][j] += A[i][k] * B[k][j];
}
"""
EATSS = [sys.executable, "-c", "from eatss.cli import main; main()", "verify"]
MODULE = [sys.executable, "-m", "eatss.verify"]
SIZES = ["--device", "cpu", "--size", "M=20,N=37,K=33"]


def call(command: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.samples(1)
@pytest.mark.parametrize("command", [EATSS, MODULE], ids=["eatss", "module"])
def test_a_right_program_exits_with_0(
    command: list[str], matmul: Program, folder: Callable[..., Path]
) -> None:
    done = call(command, str(folder(matmul, ORIGINAL)), *SIZES)
    assert done.returncode == 0, done.stderr
    assert "M=20 N=37 K=33" in done.stdout
    assert "ok" in done.stdout


@pytest.mark.samples(1)
@pytest.mark.parametrize("command", [EATSS, MODULE], ids=["eatss", "module"])
def test_a_wrong_program_exits_with_1_and_says_where(
    command: list[str], matmul: Program, folder: Callable[..., Path]
) -> None:
    place = folder(matmul, ORIGINAL, ("= sum;", "= i == 2 ? 0 : sum;"))
    done = call(command, str(place), *SIZES)
    assert done.returncode == 1
    assert "wrong result" in done.stdout
    assert "C[2][0] is 0.0" in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", [EATSS, MODULE], ids=["eatss", "module"])
def test_a_folder_without_a_program_exits_with_2(command: list[str], tmp_path: Path) -> None:
    done = call(command, str(tmp_path))
    assert done.returncode == 2
    assert "EATSS-V003" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("command", "option"), [(EATSS, ["--format", "json"]), (MODULE, ["--json"])]
)
def test_json_names_sizes_status_and_difference(
    command: list[str], option: list[str], matmul: Program, folder: Callable[..., Path]
) -> None:
    place = folder(matmul, ORIGINAL, ("= sum;", "= i == 2 ? 0 : sum;"))
    done = call(command, str(place), *SIZES, *option)
    (found,) = json.loads(done.stdout)["verifications"]
    assert (found["program"], found["device"], found["status"]) == ("matmul", "cpu", "wrong result")
    (result,) = found["results"]
    assert result["sizes"] == {"M": 20, "N": 37, "K": 33}
    assert result["difference"]["array"] == "C"
    assert result["difference"]["indices"] == [2, 0]


def test_the_module_needs_no_isl_solver_or_rich() -> None:
    blocked = "islpy", "z3", "clang", "typer", "rich", "pydantic", "networkx"
    text = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); import eatss.verify.worker"
    done = call([sys.executable, "-c", text + ", eatss.verify.__main__"])
    assert done.returncode == 0, done.stderr
