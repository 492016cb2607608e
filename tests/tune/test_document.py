"""Documents of spaces: the right ones load and come back, the wrong ones say what and where.

``eatss space`` as a user types it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.tune.bound import bind
from eatss.tune.document import read_space, space_from_document, space_from_text, space_text
from eatss.tune.points import card_constants
from tests.end_to_end.in_process import eatss
from tests.refusals import refusing

GOOD = """
name = "dgemm"
[constants]
max_threads = "card.max_threads_per_block"
bytes = 8
[iterators]
dim_m = { start = 16, stop = "max_threads", step = 16 }
dim_n = [8, 16, 32]
blk_k = { powers = [2, 1, 64] }
blk_d = { divisors = "blk_k * 6" }
layout = ["row", "column"]
"k0.tile_i" = [true, false]
split = [0, 0.5, "auto"]
[filters]
"more threads than a block may have" = "dim_m * dim_n <= max_threads"
[variant]
tile_i = "dim_m"
"k0.threads_i" = "dim_n"
uniform = true
"""
EXAMPLES = Path(__file__).parents[2] / "examples" / "spaces"

TABLE_II = """
16 16 64 96 16 64 4 16 16
32 16 128 128 16 32 16 8 64
16 16 128 128 8 64 4 8 32
16 16 128 128 8 32 8 4 64
16 16 64 256 8 32 8 4 64
16 16 128 128 2 128 2 2 128
16 16 64 128 4 64 4 2 128
48 16 48 96 16 48 16 8 96
64 16 64 64 16 64 16 16 64
16 48 96 48 16 48 16 16 48
64 16 64 64 48 64 16 16 64
32 16 64 64 24 64 8 8 64
16 16 64 80 16 32 8 16 16
16 16 80 80 16 16 16 16 16
"""


def test_a_space_is_read_and_comes_back() -> None:
    space = space_from_text(GOOD, "good.toml")
    assert space.iterators["dim_m"] == {"start": 16, "stop": "max_threads", "step": 16}
    assert space.iterators["blk_k"] == {"powers": (2, 1, 64)}
    assert space.iterators["split"] == (0, 0.5, "auto")
    assert space_from_text(space_text(space), "again") == space
    bound = bind(space, card_constants(load_profile("h200")))
    assert bound.constants["max_threads"] == 1024
    point = next(bound.points())
    assert list(point) == list(space.iterators)
    assert bound.decisions(point)["uniform"] is True


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "words"),
    [
        ("dim_m * dim_n <=", "dim_m * dimn <=", "S007", (15, "dimn"), "did you mean dim_n?"),
        ("dim_m * dim_n <=", "dim_m dim_n <=", "S007", (15, "dim_n"), "this is no expression"),
        (
            "dim_m * dim_n <=",
            "dim_m @ dim_n <=",
            "S007",
            (15, "dim_m @ dim_n <= max_threads"),
            "cannot stand in",
        ),
        (
            'stop = "max_threads"',
            'stop = "blk_k"',
            "S007",
            (7, "blk_k"),
            "nothing is called",
        ),
        ('stop = "max_threads"', 'stop = "dim_m"', "S007", (7, "dim_m"), "nothing is called"),
        ("bytes = 8", 'bytes = "max_threads / bytes"', "S007", (5, "bytes"), "nothing is called"),
        ("bytes = 8", 'bytes = "dim_m"', "S007", (5, "dim_m"), "nothing is called"),
        ("bytes = 8", "bytes = [8]", "S004", (5, "bytes"), "write expressions or numbers"),
        ("bytes = 8", "dim_m = 8", "S004", (7, "dim_m"), "two things are called so"),
        ("bytes = 8", "min = 8", "S004", (5, "min"), "min is a function"),
        ("bytes = 8", 'bytes = "8 // 0"', "S011", (5, "8 // 0"), "division by zero"),
        ("bytes = 8", "bytes = 9007199254740993", "S011", (5, "9007199254740993"), "up to 2^53"),
        ("[filters]", "[filter]", "S004", (14, "filter"), "did you mean filters?"),
        ("step = 16", "stepp = 16", "S004", (7, "dim_m"), "write [8, 16, 32]"),
        ("step = 16", "step = 0", "S011", (7, "0"), "a step of 0"),
        ("step = 16", "step = 0.5", "S011", (7, "0.5"), "whole numbers"),
        ("dim_n = [8, 16, 32]", "dim_n = []", "S004", (8, "dim_n"), "a list has values"),
        ("dim_n = [8, 16, 32]", "dim_n = [8, 8]", "S004", (8, "dim_n"), "each once"),
        ("dim_n = [8, 16, 32]", "dim_n = 8", "S004", (8, "dim_n"), "write [8, 16, 32]"),
        ("dim_n = [8, 16, 32]", "dim_n = { start = 8 }", "S004", (8, "dim_n"), "write [8, 16, 32]"),
        (
            "powers = [2, 1, 64]",
            "powers = [2, 64]",
            "S004",
            (9, "blk_k"),
            "powers of base, first, last",
        ),
        ("powers = [2, 1, 64]", "powers = [1, 1, 64]", "S011", (9, "1"), "a base is 2 or more"),
        (
            "dim_m * dim_n <= max_threads",
            "layout",
            "S011",
            (15, "layout"),
            "is no condition",
        ),
        (
            "dim_m * dim_n <= max_threads",
            "layout * 2 > 1",
            "S011",
            (15, "layout * 2 > 1"),
            "not supported between",
        ),
        (
            '"k0.threads_i" = "dim_n"',
            'k0.threads_i = "dim_n"',
            "S004",
            (18, "k0"),
            '"k0.threads_i"',
        ),
        ('name = "dgemm"', "", "S004", None, "there is no 'name'"),
        ("[constants]", "[constants", "S001", (3, ""), "not valid TOML"),
    ],
)
def test_a_mistake_is_pointed_at(
    old: str, new: str, code: str, place: tuple[int, str] | None, words: str
) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as raised:
        bind(
            space_from_text(GOOD.replace(old, new), "own.toml"),
            card_constants(load_profile("h200")),
        ).count()
    found = raised.value.diagnostics[0]
    assert found.code == f"EATSS-{code}"
    assert words in f"{found.message} {found.hint}"
    if place is not None:
        assert found.span is not None
        assert found.span.file == "own.toml"
        assert found.source_line is not None
        part = found.source_line[found.span.column - 1 : found.span.end_column - 1]
        assert (found.span.line, part) == place


def test_names_of_decisions_are_free_in_a_space_that_is_only_counted() -> None:
    text = 'name = "boxes"\n[iterators]\nmodel = [1, 2, 3, 4]\nobjective = ["x"]\n'
    assert bind(space_from_text(text, "own.toml"), {}).count().kept == 4


def test_all_mistakes_are_told_at_once() -> None:
    wrong = GOOD.replace("dim_m * dim_n <=", "dim_m * <=").replace("bytes = 8", 'bytes = "8 +"')
    with pytest.raises(InputError) as raised:
        bind(space_from_text(wrong, "own.toml"), card_constants(load_profile("h200")))
    assert [one.span.line for one in raised.value.diagnostics if one.span] == [5, 15]


def test_a_mapping_tells_the_expression_and_the_column() -> None:
    document = {"name": "own", "iterators": {"a": [1, 2]}, "filters": {"few": "a * b < 3"}}
    with pytest.raises(InputError, match=r'filters\.few: nothing is called b \(in "a \* b < 3"'):
        bind(space_from_document(document), {})
    assert bind(space_from_document(document), {"b": 2}).count().kept == 1


def test_figures_of_a_card_need_a_card() -> None:
    with pytest.raises(InputError) as raised:
        bind(space_from_text(GOOD, "own.toml"), {})
    assert "--gpu CARD" in (raised.value.diagnostics[0].hint or "")


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    for name in ("none.toml", "latin.toml", "."):
        with refusing("EATSS-S001"):
            read_space(tmp_path / name)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    with refusing("EATSS-S001"):
        read_space(tmp_path / "deep.toml")


def test_the_space_of_beast_contains_its_table_ii() -> None:
    bound = bind(read_space(EXAMPLES / "beast-dgemm.toml"), {})
    names = bound.names[:-1]
    for line in TABLE_II.split("\n")[1:-1]:
        point = dict(zip(names, map(int, line.split()), strict=True))
        assert bound.allows({**point, "simd": 0}) is None, point
    assert bound.allows({**point, "simd": 2}) == "simd = 2 is not among its values"
    assert bound.allows({**point, "blk_k": 24, "simd": 0}) == "occupancy by shared memory"


ROOT = Path(__file__).parents[2]
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
    done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=100", "--sample", "1", code=0)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2] == ["raw", "200"]
    assert lines[3] == ["no", "larger", "than", "two", "-197", "98", "%"]
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
    done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=3", code=1)
    assert "kept" in done.stdout
    assert '"no larger than two" removes the last 6 of 6' in done.stderr


def test_a_mistake_in_a_file_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    done = eatss("space", str(tmp_path / "own.toml"), code=2)
    assert "own.toml:4:26: error: nothing is called N" in done.stderr


def test_a_derived_space_is_a_file_to_start_from(tmp_path: Path) -> None:
    gemm = str(ROOT / "kernels" / "gemm.c")
    printed = eatss("space", gemm, "--gpu", "h200", "--format", "toml").stdout
    (tmp_path / "gemm.toml").write_text(printed)
    bound = bind(read_space(tmp_path / "gemm.toml"), card_constants(load_profile("h200")))
    counted = json.loads(eatss("space", gemm, "--gpu", "h200", "--format", "json").stdout)
    assert counted["kept"] == bound.count().kept
    refused = eatss("space", gemm, code=2)
    assert "EATSS-S018" in refused.stderr


def test_what_a_file_of_a_space_has_no_use_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    for words in (["--param", "typo=4"], ["--param", "a=4"], ["-D", "X"], ["--target", "ppcg"]):
        done = eatss("space", str(tmp_path / "own.toml"), "--param", "N=4", *words)
        assert (done.returncode, "EATSS-C012" in done.stderr) == (2, True), words
