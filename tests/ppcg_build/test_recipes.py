"""The Makefile and the CMakeLists.txt of the documentation, run with the recorded PPCG."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
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


def stamps(folder: Path) -> dict[str, int]:
    """Return when the files of a build were written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*_*.cu")}


def newer(path: Path) -> None:
    """Give a file a later time than all others have."""
    later = time.time() + 2
    os.utime(path, (later, later))


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make on the Makefile of the page."""
    (folder / "Makefile").write_text(recipe("make"))
    flags = f"EATSSFLAGS={' '.join(OPTIONS)}"
    return run("make", flags, *words, cwd=folder)


@pytest.mark.long
def test_make_builds_all_at_once_and_nothing_twice(project: Path) -> None:
    done = make(project, "-j4", f"DEFINES={cases.SMALL}")
    assert done.returncode == 0, done.stderr
    first = stamps(project / "build")
    assert sorted(first) == ["atax_host.cu", "atax_kernel.cu", "gemm_host.cu", "gemm_kernel.cu"]
    again = make(project, f"DEFINES={cases.SMALL}")
    assert "Nothing to be done" in again.stdout
    newer(project / "gemm.c")
    make(project, f"DEFINES={cases.SMALL}")
    second = stamps(project / "build")
    assert {name for name in first if first[name] != second[name]} == {
        "gemm_host.cu", "gemm_kernel.cu",
    }  # fmt: skip


@pytest.mark.long
def test_make_builds_again_where_a_header_changes(project: Path) -> None:
    folder = project / "scaled"
    assert make(folder, "KERNELS=scaled").returncode == 0
    first = stamps(folder / "build")
    assert first
    assert "Nothing to be done" in make(folder, "KERNELS=scaled").stdout
    newer(folder / "size.h")
    assert make(folder, "KERNELS=scaled").returncode == 0
    assert all(first[name] != stamp for name, stamp in stamps(folder / "build").items())


@pytest.mark.samples(1)
@pytest.mark.parametrize("broken", ["source", "ppcg"])
def test_make_stops_and_leaves_no_target_where_something_fails(broken: str, project: Path) -> None:
    if broken == "source":
        (project / "gemm.c").write_text(WRONG)
    else:
        (project.parent / "bin" / "ppcg").write_text("#!/bin/sh\nexit 3\n")
    done = make(project, "KERNELS=gemm")
    assert done.returncode != 0
    assert "EATSS-" in done.stderr
    assert not (project / "build").exists()


def cmake(folder: Path, *add: str) -> subprocess.CompletedProcess[str]:
    """Configure and build with the CMakeLists.txt of the page."""
    text = recipe("cmake")
    for one in add:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("add_ppcg"))
        text += f"{one}\n"
    if not (folder / "CMakeLists.txt").exists():
        (folder / "CMakeLists.txt").write_text(text)
        flags = f"-DEATSSFLAGS={';'.join(OPTIONS)}"
        configured = run("cmake", "-S", ".", "-B", "out", flags, cwd=folder)
        assert configured.returncode == 0, configured.stderr
    return run("cmake", "--build", "out", "-j2", cwd=folder)


def test_cmake_builds_and_follows_headers(project: Path) -> None:
    folder = project / "scaled"
    done = cmake(folder, "add_ppcg(scaled)")
    assert done.returncode == 0, done.stderr
    first = stamps(folder / "out")
    assert sorted(first) == ["scaled_host.cu", "scaled_kernel.cu"]
    assert cmake(folder).returncode == 0
    assert stamps(folder / "out") == first
    newer(folder / "size.h")
    assert cmake(folder).returncode == 0
    assert all(first[name] != stamp for name, stamp in stamps(folder / "out").items())


@pytest.mark.long
def test_cmake_hands_options_on_and_stops_where_something_fails(project: Path) -> None:
    done = cmake(project, f"add_ppcg(gemm {cases.SMALL})")
    assert done.returncode == 0, done.stderr
    assert (project / "out" / "gemm.eatss" / "plan.json").exists()
    (project / "gemm.c").write_text(WRONG)
    newer(project / "gemm.c")
    assert cmake(project).returncode != 0
