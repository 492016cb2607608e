"""What the documentation tells the user to type works."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import chdir, closing
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import eatss
from eatss.session.steps import ppcg_schedule_of
from eatss.store.store import Store
from tests.end_to_end.in_process import eatss as in_process
from tests.ppcg_build.recorded_ppcg import wrapper
from tests.report.measurements import measured
from tests.store.sweeps import sweep

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTED = "tests.end_to_end.scripted_for_any:AnyProgram"
ON_A_SCRIPTED_CARD = f"""\
from functools import partial
import eatss, eatss.measuring
card = dict(card={SCRIPTED!r}, reading=eatss.SourceOptions(gpu="h200"))
eatss.measuring.measure = partial(eatss.measuring.measure, **card)
eatss.measuring.compare = partial(eatss.measuring.compare, **card)
"""
VERIFYING = r"eatss verify \S+"
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def _code_blocks(page: Path, language: str) -> list[str]:
    tokens = MarkdownIt().parse(page.read_text())
    return [t.content for t in tokens if t.type == "fence" and t.info == language]


def _commands() -> list[tuple[str, str]]:
    lines = [
        (page.name, line)
        for page in PAGES
        for block in _code_blocks(page, "sh")
        for line in block.splitlines()
    ]
    found = [(page, line) for page, line in lines if re.search(r"\beatss \w", line)]
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the kernels, an ``eatss`` and a ``ppcg`` that shows its arguments.

    ``recorded-ppcg`` answers what was recorded, and ``./gemm`` is a program.
    """
    folder = tmp_path_factory.mktemp("workshop")
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels")
    for name in ("gemm", "atax"):
        shutil.copy(REPOSITORY / "kernels" / f"{name}.c", folder)
    shutil.copy(REPOSITORY / "gpu_profiles" / "h200.toml", folder / "mycard.toml")
    matmul, *_ = _code_blocks(REPOSITORY / "docs" / "python-loops.md", "python")
    (folder / "matmul.py").write_text(matmul)
    for name in ("gemm", "ours", "theirs"):
        eatss.codegen("kernels/gemm.c", gpu="h200", output=folder / "build" / name)
    for name in ("2mm", "gemm"):
        Store.write_new(folder / f"{name}.db", sweep(measured()))
    tools = folder / "bin"
    tools.mkdir()
    _script(tools / "eatss", f'exec "{sys.executable}" -m eatss "$@"')
    _script(tools / "ppcg", 'printf "%s\\n" "$@"')
    wrapper(tools / "recorded-ppcg")
    for name in ("gemm", "short"):
        _script(folder / name, "sleep 0.1")
    program = eatss.inspect("kernels/gemm.c")
    (folder / "gemm.schedule").write_text(ppcg_schedule_of(program))
    return folder


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def _measures(example: str) -> bool:
    """Tell whether a command or a piece of Python needs a card."""
    return re.search(r"\beatss[ .](measure|compare)\b", example) is not None


def _python_path(example: str) -> str:
    """Return where Python looks first; what measures needs the scripted cards of the tests."""
    scripted = _measures(example) or "eatss meter" in example
    return str(REPOSITORY) if scripted else os.environ.get("PYTHONPATH", "")


def _with_stand_ins(command: str) -> str:
    """Return a command that runs PPCG or meters with what stands in for PPCG and the card.

    PPCG was recorded for sizes of the paper's model, which stay as they are.
    """
    stand_ins = "--ppcg bin/recorded-ppcg --objective paper --model paper"
    if command.startswith("eatss ppcg"):
        small = command.removesuffix(" -DMINI_DATASET") + " -DMINI_DATASET"
        return small.replace("eatss ppcg", f"eatss ppcg {stand_ins}")
    nvml = "eatss meter --nvml tests.foreign.steady_nvml:CARDS"
    return command.replace("eatss meter", nvml)


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": _python_path(command)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_documentation_shows_commands() -> None:
    assert len(_commands()) >= 8


def _left_for_long() -> set[tuple[str, str]]:
    """Return commands that the README shows too, and verification at sizes of its own twice."""
    readme = [command for page, command in _commands() if page == "README.md"]
    shown = {(page, command) for page, command in _commands() if page != "README.md"}
    verifying = [(page, line) for page, line in _commands() if re.fullmatch(VERIFYING, line)]
    return {one for one in shown if one[1] in readme} | {*verifying[1:]}


@pytest.mark.parametrize(
    "left_out", [_left_for_long(), pytest.param(set(), marks=pytest.mark.long)], ids=["new", "all"]
)
@pytest.mark.parametrize("page", sorted({page for page, _ in _commands()}))
def test_every_command_of_a_page_works_in_its_turn(
    page: str, left_out: set[tuple[str, str]], workshop: Path
) -> None:
    for own, command in _commands():
        if own != page or ".venv" in command or command.startswith("nvcc"):
            continue  # the CI script runs the installation
        if (own, command) in left_out:
            continue
        talks = command.startswith(("eatss ppcg", "eatss meter"))
        if talks:
            done = _run(_with_stand_ins(command), workshop)
        elif _measures(command):
            done = _run(f"{command} --gpu h200 --card {SCRIPTED}", workshop)
        elif re.fullmatch(r"eatss [^|<>$;&*#]*", command):
            with chdir(workshop):
                done = in_process(*shlex.split(command)[1:])
        else:
            done = _run(command, workshop)
        assert done.returncode == 0, f"{page}: {command}\n{done.stderr}"
        assert done.stdout or talks or ">" in command


def test_python_examples_of_the_documentation_work(workshop: Path) -> None:
    pages = [page for page in PAGES if page.name != "extending.md"]  # files, see test_extending
    examples = [block for page in pages for block in _code_blocks(page, "python")]
    assert examples
    for example in dict.fromkeys(examples):
        file = workshop / "example.py"  # a file, so that functions have a source
        file.write_text((ON_A_SCRIPTED_CARD if _measures(example) else "") + example)
        done = subprocess.run(
            [sys.executable, str(file)],
            cwd=workshop,
            env={**os.environ, "PYTHONPATH": _python_path(example)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{example}\n{done.stderr}"


def test_queries_of_the_documentation_work(workshop: Path) -> None:
    (queries,) = _code_blocks(REPOSITORY / "docs" / "results.md", "sql")
    with closing(sqlite3.connect(workshop / "2mm.db")) as store:
        found = [store.execute(query).fetchall() for query in queries.split(";") if query.strip()]
    assert found == [
        [(32, 3.0, 1), (16, 4.8, 2)],
        [("compile error", "too many registers", 1)],
        [("card", "NVIDIA H200"), ("driver", "580.159"), ("program", "2mm")],
    ]


def test_the_page_of_results_has_all_tables_and_columns(workshop: Path) -> None:
    page = (REPOSITORY / "docs" / "results.md").read_text()
    with closing(sqlite3.connect(workshop / "2mm.db")) as store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        columns = store.execute("SELECT name FROM pragma_table_info('rows')").fetchall()
    assert all(f"`{name}`" in page for (name,) in [*tables, *columns])


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (command,) = [
        line
        for block in _code_blocks(REPOSITORY / "README.md", "sh")
        for line in block.splitlines()
        if "pytest" in line
    ]
    assert command in (REPOSITORY / ".ci" / "run").read_text()


def test_every_finding_of_the_front_end_is_documented() -> None:
    from eatss.frontend import Code  # noqa: PLC0415

    page = (REPOSITORY / "docs" / "c-subset.md").read_text()
    for code in Code:
        assert f"| {code.value} | {code.title} |" in page
    assert page.count("| EATSS-F") == len(Code)


def _without_times(table: str) -> str:
    """Leave out what the solver took: no two runs take as long."""
    return re.sub(r", \d+ ms\)", ", N ms)", table)


def test_the_model_s_page_shows_what_the_command_prints(workshop: Path) -> None:
    (shown,) = [
        block
        for block in _code_blocks(REPOSITORY / "docs" / "model.md", "")
        if block.startswith("kernel0  S0")
    ]
    table = _run("eatss select kernels/trmm.c --gpu h200 --target cuda", workshop).stdout
    assert _without_times(shown).rstrip() in _without_times(table)


def test_outputs_in_the_readme_are_what_the_commands_print(workshop: Path) -> None:
    first, program, second = _code_blocks(REPOSITORY / "README.md", "")
    table = _run("eatss select kernels/gemm.c --gpu a100", workshop).stdout
    assert _without_times(first) == _without_times(table)
    (command,) = [line for _, line in _commands() if "--tile" in line and "A=shared" in line]
    assert program == _run(command, workshop).stdout
    source = _code_blocks(REPOSITORY / "README.md", "c")[0]
    (workshop / "histogram.c").write_text(source)
    findings = _run("eatss select histogram.c --gpu a100", workshop)
    assert findings.returncode == 2
    assert second == findings.stderr
