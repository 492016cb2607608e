"""Defaults of options from eatss.toml and pyproject.toml."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eatss import schema
from eatss.cli.declared import COMMANDS
from eatss.cli.settings import OF_ONE_COMMAND
from eatss.cli.settings_file import find_settings
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


def found(*arguments: str) -> dict[str, Any]:
    """Return what ``eatss settings`` says: option and value by command."""
    done = eatss(*arguments, "settings", "--format", "json")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    return {f"{one['command']} {one['option']}": one["value"] for one in settings}


# -- which file --------------------------------------------------------------------------


def test_without_a_file_nothing_is_set(folder: Path) -> None:
    assert find_settings(folder) is None
    assert "No eatss.toml" in eatss("settings").stdout


def test_a_file_in_a_parent_counts_up_to_the_root_of_the_repository(folder: Path) -> None:
    inner = folder / "one" / "two"
    inner.mkdir(parents=True)
    sets(folder, 'gpu = "h200"')
    settings = find_settings(inner)
    assert settings is not None
    assert settings.path == folder / "eatss.toml"
    (folder / "one" / ".git").mkdir()
    assert find_settings(inner) is None


def test_the_home_folder_is_the_last_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "home" / "here").mkdir(parents=True)
    sets(folder, "")
    assert find_settings(folder / "home" / "here") is not None
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert find_settings(folder / "home" / "here") is None


def test_the_nearest_file_counts_alone(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    sets(folder, 'gpu = "h200"')
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_settings(inner) == find_settings(folder)
    (inner / "pyproject.toml").write_text('[tool.eatss]\nselect = {objective = "time"}\n')
    settings = find_settings(inner)
    assert settings is not None
    assert settings.table == {"select": {"objective": "time"}}
    sets(inner, "quiet = true")
    settings = find_settings(inner)
    assert settings is not None
    assert settings.table == {"quiet": True}


def test_a_pyproject_that_is_no_toml_matters_only_where_it_speaks_of_eatss(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.other\n")
    assert found() == {}
    (folder / "pyproject.toml").write_text("[tool.eatss\n")
    done = eatss("settings")
    assert done.returncode == 2
    assert "pyproject.toml:1:12: error: not valid TOML" in done.stderr


def test_a_file_is_named_or_left_out(folder: Path) -> None:
    sets(folder, 'gpu = "h200"')
    other = folder / "other.toml"
    other.write_text('[select]\ngpu = "a100"\n')
    assert found()["codegen --gpu"] == "h200"
    assert found("--config", "other.toml") == {"select --gpu": "a100"}
    assert found("--no-config") == {}
    done = eatss("--no-config", "--config", "other.toml", "settings")
    assert (done.returncode, "EATSS-C040" in done.stderr) == (2, True)
    done = eatss("--config", "none.toml", "settings")
    assert "cannot read the settings in 'none.toml': there is no such file" in done.stderr


# -- what it sets ------------------------------------------------------------------------


def test_a_setting_for_all_is_for_commands_that_have_the_option(folder: Path) -> None:
    sets(folder, 'gpu = "h200"\nquiet = true\nformat = "csv"\n')
    settings = found()
    assert "verify --gpu" not in settings
    assert settings["select --gpu"] == "h200"
    assert settings["results ls --quiet"] is True
    assert "verify --format" not in settings  # it prints no CSV
    assert settings["measure --format"] == "csv"
    assert eatss("profiles").returncode == 0


def test_the_table_of_a_command_goes_before_what_is_for_all(folder: Path) -> None:
    sets(folder, 'seed = 1\n[verify]\nseed = 2\n[results.show]\ntop = 3\nwhere = ["i>3"]\n')
    settings = found()
    assert settings["verify --seed"] == "2"
    assert settings["measure --seed"] == "1"
    assert settings["results show --top"] == "3"
    assert settings["results show --where"] == ["i>3"]


def test_a_command_may_be_verbose_where_all_are_quiet(folder: Path) -> None:
    sets(folder, "quiet = true\n[inspect]\nverbose = true\n")
    assert "analysing" in eatss("inspect", GEMM).stderr
    assert eatss("inspect", GEMM, "--quiet").stderr == ""
    assert "quiet" not in str([key for key in found() if key.startswith("inspect ")])


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


def test_flags_and_their_opposites(folder: Path) -> None:
    sets(folder, "[ppcg]\nselect = false\n[verify]\nquiet = false\n")
    assert found() == {"ppcg --select": False, "verify --quiet": False}


def test_a_path_is_that_of_the_folder_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets(folder, 'gpu = "./my.toml"\nI = ["include"]\nnvcc = "bin/nvcc"\n[sweep]\nkeep = "all"\n')
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    settings = found()
    assert settings["select --gpu"] == str(folder / "my.toml")
    assert settings["select -I"] == [str(folder / "include")]
    assert settings["measure --nvcc"] == str(folder / "bin/nvcc")
    assert settings["sweep --keep"] == str(folder / "all")


def test_a_name_is_no_path(folder: Path) -> None:
    sets(folder, 'gpu = "h200"\nnvcc = "nvcc-12"\n')
    assert (found()["select --gpu"], found()["verify --nvcc"]) == ("h200", "nvcc-12")


def test_what_settings_prints_has_its_schema(folder: Path) -> None:
    sets(folder, 'gpu = "h200"\nquiet = false\n[select]\nD = ["N=3"]\n')
    done = eatss("settings", "--format", "json")
    jsonschema.Draft202012Validator(schema("settings")).validate(json.loads(done.stdout))
    text = eatss("settings").stdout
    assert str(folder / "eatss.toml") in text
    assert "select.D" in text


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
    assert "eatss.toml sets --gpu" in note["message"]


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
    ("text", "place", "message", "hint"),
    [
        ('gup = "h200"', "1:1", "eatss has no option 'gup'", "did you mean gpu?"),
        ("[selct]\nx = 1", "1:2", "eatss has no command 'selct'", "did you mean select?"),
        ("[select]\nobjectiv = 1", "2:1", "eatss select has no option 'objectiv'", "objective?"),
        ("[results]\ntop = 3", "2:1", "results has commands, and 'top'", "[results.show]"),
        ("[results.shw]\ntop = 3", "1:2", "eatss has no command 'shw'", "did you mean show?"),
        ('schema = "x"', "1:1", "eatss has no option 'schema'", "[schema] is a table"),
        ("[select]\ntimeout = 'x'", "2:1", "--timeout: ", "SECONDS"),
        ("[select]\nuniform = 1", "2:1", "--uniform is on or off", "true or false"),
        ("[select]\nsplit = [1]", "2:1", "--split takes one value", "without brackets"),
        ("[select]\nD = [true]", "2:1", "-D takes no true or false", "NAME[=VALUE]"),
        ("[select]\nscop = -1", "2:1", "--scop: ", "N"),
        ("[verify]\ndevice = 'tpu'", "2:1", "--device: 'tpu' is not one of", ""),
        ("device = 1", "1:1", "'device' is not the same in every command", "[measure]"),
        ("[verify]\nseed = 2026-01-01", "2:1", "--seed takes no date", "N"),
        ("[tool.eatss]\ngpu = 'x'", "1:2", "do not stand below 'tool' here", "pyproject.toml"),
        ("gpu = {a = 1}", "1:1", "eatss has no command 'gpu'", ""),
        ("gpu = 3", "1:1", "--gpu takes no number", "CARD"),
        ("[select]\nobjective = 3", "2:1", "--objective takes no number", "NAME"),
        ("D = [3]", "1:1", "-D takes no number", "NAME[=VALUE]"),
        ("select = 3", "1:1", "--select is on or off", "[select] is a table with the options"),
        ("quiet = true\nverbose = true", "1:1", "exclude each other", "leave one of them out"),
        ("quiet = true\nverbose = true", "2:1", "exclude each other", "leave one of them out"),
        ("[sweep]\nquiet = true\nverbose = true", "3:1", "exclude each other", "leave one"),
    ],
)
def test_a_mistake_is_shown_where_it_stands(
    folder: Path, text: str, place: str, message: str, hint: str
) -> None:
    file = sets(folder, text)
    done = eatss("profiles")
    assert done.returncode == 2
    assert f"{file}:{place}: error: " in done.stderr
    assert message in done.stderr
    assert hint in done.stderr
    assert text.splitlines()[int(place[0]) - 1] in done.stderr


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    sets(folder, "a1 = 1\nb2 = 2\n[select]\nc3 = 3\n")
    done = eatss("profiles", "--diagnostics", "json")
    codes = [one["code"] for one in json.loads(done.stderr)["diagnostics"]]
    assert codes == ["EATSS-C032"] * 3


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ('gpu = "./x.toml"', (), "EATSS-G002", "--gpu (line 1)"),
        ("[select]\nscop = 3", ("--gpu", "h200"), "EATSS-F010", "--scop (line 2)"),
        ('param = ["Q=3"]', ("--gpu", "h200"), "EATSS-F049", "--param (line 1)"),
        ('quiet = true\nD = ["9x"]', ("--gpu", "h200"), "EATSS-F049", "-D (line 2)"),
        ('gpu = "h200"\n[select]\nobjective = "x"', (), "EATSS-X005",
         "--gpu (line 1), --objective (line 3)"),
    ],
)  # fmt: skip
def test_an_error_names_the_settings_that_the_command_has(
    folder: Path, text: str, options: tuple[str, ...], code: str, said: str
) -> None:
    file = sets(folder, text)
    done = eatss("select", GEMM, *options)
    assert (done.returncode, code in done.stderr) == (2, True), done.stderr
    assert f"note: {file} sets {said} [EATSS-C034]" in done.stderr


def test_what_is_typed_is_no_setting_in_an_error(folder: Path) -> None:
    sets(folder, 'gpu = "h200"\nverbose = true\n[codegen]\nobjective = "time"')
    done = eatss("--quiet", "select", GEMM, "--gpu", "nope")
    assert (done.returncode, "EATSS-G001" in done.stderr) == (2, True)
    assert "EATSS-C034" not in done.stderr


def test_macros_of_settings_that_change_nothing_are_told_with_their_place(folder: Path) -> None:
    file = sets(folder, '[inspect]\nD = ["NSS=30"]')
    done = eatss("inspect", GEMM)
    assert "-D NSS changes nothing" in done.stderr
    assert f"note: {file} sets -D (line 2) [EATSS-C034]" in done.stderr
    typed = eatss("inspect", GEMM, "-D", "NSS=30")
    assert "-D NSS changes nothing" in typed.stderr
    assert "EATSS-C034" not in typed.stderr


def test_options_that_differ_among_commands_are_not_for_all() -> None:
    """Options of one name that take another kind of value somewhere are in the list."""
    kinds: dict[str, set[tuple[bool, bool]]] = {}
    for command in COMMANDS.values():
        for one in command.parameters():
            if one.is_settable:
                kind = (one.type is bool, one.several)
                kinds.setdefault(one.shown.lstrip("-"), set()).add(kind)
    differing = {word for word, found in kinds.items() if len(found) > 1}
    assert differing <= OF_ONE_COMMAND
    assert set(kinds) >= OF_ONE_COMMAND
