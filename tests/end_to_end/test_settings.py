"""Defaults of options from eatss.toml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.in_process import eatss

GEMM = Path(__file__).parents[2] / "kernels" / "gemm.c"


def test_the_file_above_sets_options_and_the_command_line_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eatss.toml").write_text(
        'gpu = "h200"\ncc = "gcc"\n[select]\nobjective = "time"\nD = ["NI=100", "NJ=100"]\n'
        'format = "json"\nno-cache = true\n'
    )
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    found = json.loads(eatss("select", GEMM).stdout)
    assert (found["gpu"], found["options"]["objective"]) == ("h200", "time")
    assert found["sizes"][0] == {"name": "NI", "value": 100, "assumed": False}
    found = json.loads(eatss("select", GEMM, "--gpu", "a100").stdout)
    assert found["gpu"] == "a100-40gb"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('gup = "h200"', "did you mean gpu?"),
        ("[selct]\nD = []", "did you mean select?"),
        ("[select]\nobjectiv = 1", "did you mean objective?"),
        ("gpu = ", "cannot read the settings in "),
    ],
)
def test_a_mistake_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    (tmp_path / "eatss.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = eatss("select", GEMM)
    assert (done.returncode, "EATSS-C031" in done.stderr) == (2, True)
    assert str(tmp_path / "eatss.toml") in done.stderr
    assert said in done.stderr
