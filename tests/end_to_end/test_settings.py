"""Defaults of options from eatss.toml and pyproject.toml."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eatss.cli.declared import COMMANDS
from eatss.cli.settings import OF_ONE_COMMAND, in_force
from tests.end_to_end.in_process import eatss

KERNELS = Path(__file__).parents[2] / "kernels"
GEMM = KERNELS / "gemm.c"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: the root of a repository."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sets(folder: Path, text: str) -> Path:
    file = folder / "eatss.toml"
    file.write_text(text, encoding="utf-8")
    return file


def found(*command: str) -> dict[str, Any]:
    """Return the defaults of a command."""
    settings = in_force()
    table: dict[str, Any] = {} if settings is None else settings.default_map()
    for word in command:
        table = table.get(word, {})
    return table


# -- which file --------------------------------------------------------------------------


def test_the_nearest_file_counts_alone_up_to_the_root_of_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found("select") == {}
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    sets(folder, 'gpu = "h200"')
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert found("select") == {"gpu": "h200"}
    (inner / "pyproject.toml").write_text('[tool.eatss]\nselect = {objective = "time"}\n')
    assert found("select") == {"objective": "time"}
    sets(inner, "quiet = true")
    assert found("select") == {"quiet": True}
    (inner / "eatss.toml").unlink()
    (inner / "pyproject.toml").unlink()
    (inner / ".git").mkdir()
    assert found("select") == {}


def test_a_pyproject_that_is_no_toml_matters_only_where_it_speaks_of_eatss(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.other\n")
    assert eatss("profiles").returncode == 0
    (folder / "pyproject.toml").write_text("[tool.eatss\n")
    done = eatss("profiles")
    assert done.returncode == 2
    assert "line 1, column 12" in done.stderr
    assert "EATSS-C031" in done.stderr


def test_a_file_is_named_or_left_out(folder: Path) -> None:
    sets(folder, 'gpu = "h200"')
    (folder / "other.toml").write_text('[select]\ngpu = "a100"\n')
    words = ("select", GEMM, "--format", "json")
    assert json.loads(eatss(*words).stdout)["gpu"] == "h200"
    named = eatss("--config", "other.toml", *words)
    assert json.loads(named.stdout)["gpu"] == "a100-40gb"
    assert "Missing option '--gpu'" in eatss("--no-config", *words).stderr
    done = eatss("--no-config", "--config", "other.toml", *words)
    assert (done.returncode, "EATSS-C040" in done.stderr) == (2, True)
    done = eatss("--config", "none.toml", *words)
    assert "cannot read the settings in 'none.toml': No such file" in done.stderr


# -- what it sets ------------------------------------------------------------------------


def test_the_table_of_a_command_goes_before_what_is_for_all(folder: Path) -> None:
    sets(
        folder,
        'seed = 1\nquiet = true\n[verify]\nseed = 2\n[results.show]\ntop = 3\nwhere = ["i>3"]\n'
        "[ppcg]\nselect = false\n",
    )
    assert found("verify") == {"seed": "2", "quiet": True}
    assert found("measure") == {"seed": "1", "quiet": True}
    assert found("results", "show") == {"top": "3", "where": ["i>3"], "quiet": True}
    assert sorted(found("ppcg").values()) == [False, True]


def test_options_of_a_group_get_their_defaults_and_the_command_line_wins(folder: Path) -> None:
    sets(
        folder,
        'gpu = "h200"\n[select]\nobjective = "paper"\nmodel = "paper"\nsplit = 0.5\n'
        'warp-fraction = 0.5\nD = ["NI=100", "NJ=100"]\nno_cache = true\nformat = "json"\n',
    )
    done = eatss("select", GEMM)
    assert done.returncode == 0, done.stderr
    selection = json.loads(done.stdout)
    assert selection["gpu"] == "h200"
    options = selection["options"]
    assert (options["objective"], options["model"]) == ("paper", "paper")
    assert (options["split"], options["warp_fraction"]) == (0.5, 0.5)
    other = eatss("select", GEMM, "--gpu", "a100", "--objective", "paper", "--model", "eatss")
    assert json.loads(other.stdout)["gpu"] == "a100-40gb"
    assert json.loads(other.stdout)["options"]["model"] == "eatss"


def test_a_path_is_that_of_the_folder_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets(folder, 'gpu = "./my.toml"\nI = ["include"]\nnvcc = "nvcc-12"\n[sweep]\nkeep = "all"\n')
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert found("select") == {
        "gpu": str(folder / "my.toml"),
        "include_dirs": [f"{folder}/include"],
    }
    assert found("verify") == {"nvcc": "nvcc-12"}
    assert found("sweep")["keep"] == str(folder / "all")


def test_a_forked_command_and_its_json_errors_obey(folder: Path) -> None:
    sets(folder, 'gpu = "nope"\ndiagnostics = "json"\n')
    done = subprocess.run(
        [sys.executable, "-m", "eatss", "select", str(GEMM)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(KERNELS.parent), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2
    error, note = json.loads(done.stderr)["diagnostics"]
    assert error["code"] == "EATSS-G001"
    assert (note["code"], note["severity"]) == ("EATSS-C034", "note")
    assert "eatss.toml sets options" in note["message"]


def test_help_is_there_whatever_a_file_says(folder: Path) -> None:
    sets(folder, "nonsense = 1")
    assert eatss("select", "nope.c").returncode == 2
    assert eatss("select", "--help").returncode == 0


def test_what_nobody_typed_is_no_reason_to_refuse(folder: Path) -> None:
    file = folder / "add.c"
    file.write_text(
        "void add(double A[100]) {\n#pragma scop\n  for (int i = 0; i < 100; i++)\n"
        "    A[i] = A[i] + 1;\n#pragma endscop\n}\n"
    )
    words = ("codegen", file, "--gpu", "h200")
    made = eatss(*words, "--save-recipe", folder / "recipe.json")
    assert made.returncode == 0, made.stderr
    sets(folder, '[codegen]\nobjective = "time"\nformat = "json"\n[sweep]\ncounters = 3\n')
    done = eatss(*words, "--recipe", folder / "recipe.json")
    assert done.returncode == 0, done.stderr
    typed = eatss(*words, "--recipe", folder / "recipe.json", "--objective", "edp")
    assert "EATSS-C015" in typed.stderr
    prepared = eatss("sweep", folder / "none.c", "--prepare", folder / "variants")
    assert "has no use for" not in prepared.stderr


# -- mistakes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ('gup = "h200"', "C032", "eatss has no option 'gup'", "did you mean gpu?"),
        ("[selct]\nx = 1", "C032", "eatss has no command 'selct'", "did you mean select?"),
        ("[select]\nobjectiv = 1", "C032", "eatss select has no option 'objectiv'", "objective?"),
        ("[results]\ntop = 3", "C032", "eatss results has no option 'top'", ""),
        ("[select]\nuniform = 1", "C033", "uniform is 1", "true or false"),
        ("[select]\nsplit = [1]", "C033", "split takes one value", "without brackets"),
        ("device = 1", "C033", "'device' is not the same in every command", "table of one"),
    ],
)
def test_a_mistake_is_told_with_the_file(
    folder: Path, text: str, code: str, message: str, hint: str
) -> None:
    file = sets(folder, text)
    done = eatss("profiles")
    assert done.returncode == 2
    assert f"{file}: {message}" in done.stderr
    assert f"EATSS-{code}" in done.stderr
    assert hint in done.stderr


def test_an_error_names_the_file_that_the_command_has_options_of(folder: Path) -> None:
    file = sets(folder, 'gpu = "./x.toml"')
    note = f"note: {file} sets options of this command [EATSS-C034]"
    assert note in eatss("select", GEMM).stderr
    assert note not in eatss("select", GEMM, "--gpu", "nope").stderr


def test_options_that_differ_among_commands_are_not_for_all() -> None:
    """Options of one name that take another kind of value somewhere are in the list."""
    kinds: dict[str, set[tuple[bool, bool]]] = {}
    for command in COMMANDS.values():
        for one in command.parameters():
            if not one.option.is_argument and not one.option.hidden:
                word = max(one.spellings, key=len).lstrip("-")
                kinds.setdefault(word, set()).add((one.type is bool, one.several))
    differing = {word for word, found in kinds.items() if len(found) > 1}
    assert differing <= OF_ONE_COMMAND
    assert set(kinds) >= OF_ONE_COMMAND
