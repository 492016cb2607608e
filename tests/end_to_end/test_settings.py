"""Defaults of options from eatss.toml and pyproject.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eatss.cli.settings import in_force
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


def test_a_file_is_named_or_left_out(folder: Path) -> None:
    sets(folder, 'gpu = "h200"')
    (folder / "other.toml").write_text('[select]\ngpu = "a100"\n')
    words = ("select", GEMM, "--format", "json")
    assert json.loads(eatss(*words).stdout)["gpu"] == "h200"
    named = eatss("--config", "other.toml", *words)
    assert json.loads(named.stdout)["gpu"] == "a100-40gb"
    assert "Missing option '--gpu'" in eatss("--no-config", *words).stderr
    done = eatss("--no-config", "--config", "other.toml", *words)
    assert (done.returncode, "EATSS-C012" in done.stderr) == (2, True)
    done = eatss("--config", "none.toml", *words)
    assert "cannot read the settings in 'none.toml': No such file" in done.stderr


# -- what it sets ------------------------------------------------------------------------


def test_the_table_of_a_command_goes_before_what_is_for_all(folder: Path) -> None:
    sets(
        folder,
        "seed = 1\nquiet = true\n[verify]\nseed = 2\n[results.show]\ntop = 3\n"
        "[ppcg]\nselect = false\n",
    )
    assert found("verify") == {"seed": "2", "quiet": True}
    assert found("measure") == {"seed": "1", "quiet": True}
    assert found("results", "show") == {"top": "3", "quiet": True}
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


# -- mistakes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ('gup = "h200"', "C031", "nothing of eatss is called 'gup'", "did you mean gpu?"),
        ("[selct]\nx = 1", "C031", "nothing of eatss is called 'selct.x'", "did you mean select?"),
        (
            "[select]\nobjectiv = 1",
            "C031",
            "nothing of eatss is called 'select.objectiv'",
            "objective?",
        ),
        ("[results]\ntop = 3", "C031", "nothing of eatss is called 'results.top'", ""),
        ("[select]\nuniform = 1", "C031", "uniform is 1", "true or false"),
        ("[select]\nsplit = [1]", "C031", "split takes one value", "without brackets"),
        ("device = 1", "C031", "'device' is not the same in every command", "table of one"),
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
