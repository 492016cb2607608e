"""The Makefile of the documentation, run with the recorded PPCG."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.ppcg_build import cases
from tests.ppcg_build.recorded_ppcg import wrapper

pytestmark = pytest.mark.usefixtures("kept")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ppcg.md"
WRONG = "void f(void)\n{\n#pragma scop\nwhile (1);\n#pragma endscop\n}\n"
OPTIONS = ("--objective", "paper", "--model", "paper")


def recipe(language: str) -> str:
    """Return the only block of a language in the page."""
    tokens = MarkdownIt().parse(PAGE.read_text())
    (found,) = [t.content for t in tokens if t.type == "fence" and t.info == language]
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with C files, one of which has a header, and an ``eatss`` and a ``ppcg``."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "eatss").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eatss "$@"\n')
    (tools / "eatss").chmod(0o755)
    wrapper(tools / "ppcg")
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("gemm", "atax"):  # the recorded sources, under the names of the recipes
        cases.written(folder, f"{name}.c", (cases.KERNELS / f"{name}.c").read_text())
    (folder / "size.h").unlink()
    cases.written(folder / "scaled", "scaled.c", cases.SCALED)
    return folder


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the tools of the project."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    path = (
        f"{cwd.parent / 'bin'}{os.pathsep}{cwd.parents[1] / 'bin'}{os.pathsep}{os.environ['PATH']}"
    )
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make on the Makefile of the page."""
    (folder / "Makefile").write_text(recipe("make"))
    flags = f"EATSSFLAGS={' '.join(OPTIONS)}"
    return run("make", flags, *words, cwd=folder)


def test_make_stops_and_leaves_no_target_where_something_fails(project: Path) -> None:
    if "source" == "source":
        (project / "gemm.c").write_text(WRONG)
    else:
        (project.parent / "bin" / "ppcg").write_text("#!/bin/sh\nexit 3\n")
    done = make(project, "KERNELS=gemm")
    assert done.returncode != 0
    assert "EATSS-" in done.stderr
    assert not (project / "build").exists()
