"""What the documentation tells the user to type works, and prints what it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tomllib
from contextlib import chdir, closing
from importlib.util import find_spec
from pathlib import Path

import pytest

import eatss
from tests.end_to_end.documentation_blocks import (
    DIFFERS,
    FIRST,
    NOT_RUN,
    PAGES,
    REPOSITORY,
    Block,
    all_blocks,
    blocks,
    difference,
)
from tests.end_to_end.in_process import eatss as in_process
from tests.forked_workers import python
from tests.ppcg_build.recorded_ppcg import wrapper
from tests.report.measurements import measured
from tests.tune.sweeps import sweep, write

pytestmark = pytest.mark.usefixtures("kept")

SCRIPTED = "tests.end_to_end.scripted_for_any:AnyProgram"
PRICED = "tests.tune.priced_card:PricedCard"
ON_A_SCRIPTED_CARD = f"""\
from functools import partial
import eatss, eatss.measuring
card = dict(card={SCRIPTED!r}, reading=eatss.SourceOptions(gpu="h200"))
eatss.measuring.measure = partial(eatss.measuring.measure, **card)
eatss.measuring.compare = partial(eatss.measuring.compare, **card)
"""
SWEEPS = "sweep.md"
"""The page whose sweeps run: each takes seconds."""
EXTENDING = "extending.md"
"""Its files are those of a package, which test_extending installs."""


def _page(name: str) -> Path:
    return next(page for page in PAGES if page.name == name)


def _shown_before(page: str) -> set[str]:
    """Return the commands of pages before this one: each runs once."""
    names = [one.name for one in PAGES]
    return {
        command
        for one in PAGES[: names.index(page)]
        for block in blocks(one)
        if block.language == "sh" and "not run" not in block.marks
        for command in block.commands
    }


SAVED_SCHEDULE = """\
domain: "{ S_2[i, j] : 0 <= i, j <= 3999; S_4[i, j, k] : 0 <= i, j, k <= 3999 }"
child:
  schedule: "[{ S_2[i, j] -> [(i)]; S_4[i, j, k] -> [(i)] }, \\
    { S_2[i, j] -> [(j)]; S_4[i, j, k] -> [(j)] }, \\
    { S_2[i, j] -> [(0)]; S_4[i, j, k] -> [(k)] }]"
  permutable: 1
  coincident: [ 1, 1, 0 ]
  child:
    sequence:
    - filter: "{ S_2[i, j] }"
    - filter: "{ S_4[i, j, k] }"
"""
"""What PPCG saves for gemm."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, kept: None) -> Path:
    """Return a folder with the kernels, an ``eatss`` and a ``ppcg`` that shows its arguments.

    ``recorded-ppcg`` answers what was recorded, and ``./gemm`` is a program.
    """
    folder = tmp_path_factory.mktemp("workshop")
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels")
    for name in ("gemm", "atax"):
        shutil.copy(REPOSITORY / "kernels" / f"{name}.c", folder)
    shutil.copy(REPOSITORY / "gpu_profiles" / "h200.toml", folder / "mycard.toml")
    for block in (block for page in PAGES for block in blocks(page) if "file" in block.marks):
        (folder / block.marks["file"]).write_text(block.text)
    for name in ("gemm", "ours", "theirs"):
        eatss.codegen("kernels/gemm.c", gpu="h200", output=folder / "build" / name)
    for name in ("2mm", "gemm"):
        write(folder / f"{name}.db", sweep(measured()))
    tools = folder / "bin"
    tools.mkdir()
    _script(tools / "eatss", f'exec {shlex.join(python("-m", "eatss"))} "$@"')
    _script(tools / "ppcg", 'printf "%s\\n" "$@"')
    wrapper(tools / "recorded-ppcg")
    for name in ("gemm", "short"):
        _script(folder / name, "sleep 0.1")
    (folder / "gemm.schedule").write_text(SAVED_SCHEDULE)
    return folder


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def _measures(example: str) -> bool:
    """Tell whether a command or a piece of Python needs a card."""
    return re.search(r"\beatss[ .](measure|compare)\b", example) is not None


def _python_path(example: str) -> str:
    """Return where Python looks first; what measures needs the scripted cards of the tests."""
    scripted = _measures(example) or _sweeps(example) or "eatss meter" in example
    return str(REPOSITORY) if scripted else os.environ.get("PYTHONPATH", "")


def _with_stand_ins(command: str) -> str:
    """Return a command that runs PPCG or meters with what stands in for PPCG and the card.

    PPCG was recorded for sizes of the paper's model, which stay as they are.
    """
    stand_ins = "--ppcg bin/recorded-ppcg --objective paper --model paper"
    if command.startswith("eatss ppcg"):
        small = command.removesuffix(" -DMINI_DATASET") + " -DMINI_DATASET"
        return small.replace("eatss ppcg", f"eatss ppcg {stand_ins}")
    nvml = "eatss meter --nvml tests.measurement.meters.steady_nvml:CARDS"
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
    assert sum(len(block.commands) for block in all_blocks("sh")) > 100


def test_marks_of_blocks_are_known() -> None:
    for block in [block for page in PAGES for block in blocks(page)]:
        assert block.marks.get("not run", "installs") in NOT_RUN, block
        assert block.language != "console" or "not run" in block.marks, block
        for one in (block, block.shown):
            assert one is None or set(one.differs) <= set(DIFFERS), block


def _sweeps(command: str) -> bool:
    """Tell whether a command generates variants, which takes seconds."""
    return command.startswith("eatss sweep") and "--replay" not in command


def _with_few_variants(command: str) -> str:
    """Return a sweep of one variant, on a card that stands in where it measures."""
    small = re.sub(r" --budget \S+", "", command) + " --budget 1"
    small = re.sub(r"-o (\S+)\.db", r"-o swept-\1.db", small)
    generated = (
        " --gpu h200 --contenders 0 --makers 1" if "kernels/" in small or "@" in small else ""
    )
    return f"{small} --card {PRICED}{generated}"


def _done(command: str, workshop: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with what stands in for PPCG and a card."""
    if command.startswith(("eatss ppcg", "eatss meter")):
        return _run(_with_stand_ins(command), workshop)
    if _sweeps(command):
        return _run(_with_few_variants(command), workshop)
    if _measures(command):
        return _run(f"{command} --gpu h200 --card {SCRIPTED}", workshop)
    if re.fullmatch(r"eatss [^|<>$;&*#]*", command):
        with chdir(workshop):
            return in_process(*shlex.split(command)[1:])
    return _run(command, workshop)


@pytest.mark.parametrize("page", [page.name for page in PAGES if page.name != EXTENDING])
def test_every_command_of_a_page_works_in_its_turn(
    page: str, workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    left_out = _shown_before(page)
    for block in blocks(_page(page)):
        if block.language != "sh" or "not run" in block.marks:
            continue
        done = None
        for command in block.commands:
            elsewhere = _sweeps(command) and page != SWEEPS
            done = None if elsewhere or command in left_out else _check(block, command, workshop)
        if done is not None and block.shown is not None and not _of_another_machine(block.shown):
            printed = done.stderr if "exit code" in block.marks else done.stdout
            assert difference(block.shown, printed) == "", f"{page}: {command}"


def _of_another_machine(shown: Block) -> bool:
    return "this machine" in shown.differs and find_spec("cupy") is not None


def _check(block: Block, command: str, workshop: Path) -> subprocess.CompletedProcess[str]:
    if "exit code" in block.marks:
        done = _run(command, workshop)
        other = block.shown is not None and _of_another_machine(block.shown)
        assert other or done.returncode == int(block.marks["exit code"]), command
        return done
    done = _done(command, workshop)
    assert done.returncode == 0, f"{block.page}: {command}\n{done.stderr}"
    assert done.stdout or ">" in command or command.startswith(("eatss ppcg", "eatss meter"))
    return done


def _python_pages() -> list[str]:
    return sorted({block.page for block in all_blocks("python")} - {EXTENDING})


@pytest.mark.parametrize("page", _python_pages())
def test_python_examples_of_a_page_work(page: str, workshop: Path) -> None:
    before = {
        block.text
        for name in (FIRST[: FIRST.index(page)] if page in FIRST else FIRST)
        for block in blocks(_page(name))
    }
    for block in blocks(_page(page)):
        if block.language != "python" or block.text in before:
            continue
        file = workshop / "example.py"  # a file, so that functions have a source
        file.write_text((ON_A_SCRIPTED_CARD if _measures(block.text) else "") + block.text)
        done = subprocess.run(
            python(file),
            cwd=workshop,
            env={**os.environ, "PYTHONPATH": _python_path(block.text)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stderr}"
        if block.shown is not None:
            assert difference(block.shown, done.stdout) == "", block.text


def test_outputs_stand_after_what_prints_them() -> None:
    assert not all_blocks("text")


def test_other_blocks_are_what_they_are_for(workshop: Path) -> None:
    for block in all_blocks("toml"):
        document = tomllib.loads(block.text)
        if "iterators" in document:
            (workshop / "shown.toml").write_text(block.text)
            with chdir(workshop):
                done = in_process("space", "shown.toml", "--gpu", "h200")
            assert done.returncode == 0, done.stderr
    for block in all_blocks("json"):
        json.loads(block.text)
    for block in all_blocks("bash"):
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    for block in all_blocks("c"):
        if "excerpt" in block.marks:
            assert block.text in (REPOSITORY / block.marks["excerpt"]).read_text()
        elif not {"file", "not run"} & block.marks.keys():
            eatss.inspect(block.text)
    checked = {"sh", "python", "text", "toml", "json", "bash", "c", "sql", "make", "cmake"}
    shown = {"", "c++", "console"}  # diagrams and formulas, a fragment, sessions that are not run
    assert {block.language for page in PAGES for block in blocks(page)} <= checked | shown


def test_queries_of_the_documentation_work(workshop: Path) -> None:
    (queries,) = [block.text for block in all_blocks("sql")]
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


def test_ci_runs_the_test_commands_of_the_readme() -> None:
    (commands,) = [
        block.commands
        for block in blocks(REPOSITORY / "README.md")
        if any("pytest" in line for line in block.commands)
    ]
    script = (REPOSITORY / ".ci" / "run").read_text()
    assert all(f"{line}\n" in script for line in commands)


def test_every_finding_of_the_front_end_is_documented() -> None:
    page = (REPOSITORY / "docs" / "c-subset.md").read_text()
    files = (REPOSITORY / "eatss" / "frontend").glob("*.[pt]*")
    sources = (path.read_text() for path in files if path.is_file())
    used = {code for text in sources for code in re.findall(r"EATSS-F\d{3}", text)}
    listed = re.findall(r"\| (EATSS-F\d+) \| [^|]", page)
    assert sorted(listed) == sorted(used)


def test_every_code_is_listed() -> None:
    files = sorted((REPOSITORY / "eatss").rglob("*.[pt]*"))
    texts = (path.read_text() for path in files if path.suffix in (".py", ".toml"))
    used = {code for text in texts for code in re.findall(r"\bEATSS-([A-Z]\d{3})\b", text)}
    listed: set[str] = set()
    for page in ("findings.md", "c-subset.md", "python-loops.md"):
        for cell in re.findall(r"^\| (EATSS-[^|]*) \|", _page(page).read_text(), re.MULTILINE):
            for part in cell.removeprefix("EATSS-").split(", "):
                first, _, last = part.partition(" to ")
                numbers = range(int(first[1:]), int((last or first)[1:]) + 1)
                listed |= {f"{first[0]}{number:03d}" for number in numbers}
    assert len(used) > 100
    assert used <= listed, sorted(used - listed)
