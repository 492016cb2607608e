"""What PPCG generated, measured on a card that is scripted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eatss
from tests.end_to_end.measuring import eatss as command
from tests.ppcg_build import cases

CARD = "tests.end_to_end.scripted_for_any:AnyProgram"
GEMM = cases.KERNELS / "gemm.c"
NEEDLESS = ("islpy", "z3", "clang", "networkx", "tomlkit")

WITHOUT = """\
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {needless}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
sys.argv = ["eatss", *{words}]
from eatss.cli import main
main()
"""


@pytest.fixture
def builds(recorded: Path, tmp_path: Path) -> Path:
    """A folder with a build of selected sizes and one of PPCG's own."""
    for name, selects in (("selected", True), ("default", False)):
        cases.build(GEMM, tmp_path / name, recorded, arguments=[cases.SMALL], selects=selects)
    return tmp_path


def test_a_build_is_measured_by_the_name_of_its_folder(builds: Path) -> None:
    done = command("measure", builds / "selected", "--format", "json", card=CARD)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["measurements"]
    assert (found["program"], found["variant"], found["status"]) == ("gemm", "selected", "ok")


def test_builds_are_compared_by_turns(builds: Path) -> None:
    done = command(
        "compare", builds / "selected", builds / "default", "--format", "json", card=CARD
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["baseline"] == "default"


@pytest.mark.parametrize(
    "words",
    [["measure", "selected", "--card", CARD]],
    ids=lambda words: words[0],
)
def test_measuring_needs_nothing_that_generates(words: list[str], builds: Path) -> None:
    code = WITHOUT.format(needless=NEEDLESS, words=words)
    root = os.pathsep.join(map(str, (Path(eatss.__file__).parents[1], Path(__file__).parents[2])))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=builds, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin", "HOME": str(builds)}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
