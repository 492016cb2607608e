"""``eatss space`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

from eatss.cards import load_profile
from eatss.tune.bound import bind
from eatss.tune.document import read_space
from eatss.tune.points import card_constants
from tests.end_to_end.in_process import eatss

ROOT = Path(__file__).parents[3]
OWN = """
name = "own"
[iterators]
a = { start = 1, stop = "N" }
b = [1, 2]
[filters]
"no larger than two" = "a * b <= 2"
"""


def test_the_table_has_what_each_filter_removes(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=100", "--sample", "1")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2] == ["raw", "200"]
    assert lines[3] == ["no", "larger", "than", "two", "−197", "98.5", "%"]
    assert lines[4] == ["kept", "3", "1.5", "%"]
    assert lines[5] in (["1", "a=1", "b=1"], ["1", "a=1", "b=2"], ["1", "a=2", "b=1"])
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_json_carries_the_count_and_the_sample(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    options = ("--param", "N=4", "--sample", "9", "--format", "json")
    done = eatss("space", str(tmp_path / "own.toml"), *options)
    found = json.loads(done.stdout)
    assert (found["raw"], found["kept"]) == (8, 3)
    assert sorted(map(str, found["sample"])) == [
        "{'a': 1, 'b': 1}",
        "{'a': 1, 'b': 2}",
        "{'a': 2, 'b': 1}",
    ]


def test_an_empty_space_is_counted_and_then_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN.replace("<= 2", "<= 0"))
    done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=3")
    assert done.returncode == 1
    assert "kept" in done.stdout
    assert '"no larger than two" removes the last 6 of 6' in done.stderr


def test_a_mistake_in_a_file_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    done = eatss("space", str(tmp_path / "own.toml"))
    assert done.returncode == 2
    assert "own.toml:4:26: error: nothing is called N" in done.stderr


def test_a_derived_space_is_a_file_to_start_from(tmp_path: Path) -> None:
    gemm = str(ROOT / "kernels" / "gemm.c")
    printed = eatss("space", gemm, "--gpu", "h200", "--format", "toml").stdout
    (tmp_path / "gemm.toml").write_text(printed)
    bound = bind(read_space(tmp_path / "gemm.toml"), card_constants(load_profile("h200")))
    counted = json.loads(eatss("space", gemm, "--gpu", "h200", "--format", "json").stdout)
    assert counted["kept"] == bound.count().kept
    refused = eatss("space", gemm)
    assert refused.returncode == 2
    assert "EATSS-S018" in refused.stderr


def test_what_a_file_of_a_space_has_no_use_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    for words in (["--param", "typo=4"], ["--param", "a=4"], ["-D", "X"], ["--target", "ppcg"]):
        done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=4", *words)
        assert (done.returncode, "EATSS-C012" in done.stderr) == (2, True), words
