"""``eatss results``, as users call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.tune.rows import Sweep
from tests.end_to_end.in_process import eatss as command
from tests.report.measurements import measured
from tests.tune.sweeps import SPACE, card, identity, refused, row, write

ROWS = (
    row(16, time_s=7e-3, role="default"),
    row(32, time_s=5e-3, energy_j=3.0, role="ours", measurement=measured()),
    row(64, time_s=4e-3, energy_j=6.0, status="unstable", reason="clocks changed"),
    refused(128),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, rows in (("a.db", ROWS), ("b.db", (row(16, card="GPU-1"),))):
        cards = (card("GPU-0" if name == "a.db" else "GPU-1"),)
        write(name, Sweep(identity=identity(), space=SPACE, cards=cards, rows=rows))
    return tmp_path


def said(*words: str) -> str:
    done = command("results", *words, code=0)
    return done.stdout


def refusal(*words: str) -> str:
    done = command("results", *words, code=2)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_show_lists_the_best_first(folder: Path) -> None:
    lines = said("show", "a.db").splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["5.000", "7.000", "4.000", "-"]
    assert "tile_i=128" in lines[-1]
    assert "compile error" in lines[-1]
    lines = said("show", "a.db", "--by", "time", "--top", "2").splitlines()
    assert [line.split()[1] for line in lines[2:-1]] == ["4.000", "5.000"]
    assert lines[-1] == "and 2 more: --top 4"


def test_cards_are_named_and_each_variant_has_its_most_careful_measurement(folder: Path) -> None:
    rows = (
        row(),
        row(time_s=6.0e-3, stage="careful"),
        row(card="GPU-1"),
        row(64, stage="reference", role="default"),
    )
    cards = (card(), card("GPU-1"))
    write("c.db", Sweep(identity=identity(), space=SPACE, cards=cards, rows=rows))
    text = said("show", "c.db", "--by", "time")
    listed = [line.split()[1:3] for line in text.splitlines() if "tile_i" in line]
    assert listed == [["GPU-0", "6.000"], ["GPU-1", "7.000"]]
    assert "reference" not in text
    every = said("show", "c.db", "--every")
    assert "reference" in every
    assert every.count("7.000") == 3


def test_export(folder: Path) -> None:
    said("export", "a.db", "-o", "a.csv")
    assert len(Path("a.csv").read_text().splitlines()) == 5
    assert said("export", "a.db", "-o", "-") == Path("a.csv").read_text()
    assert "EATSS-C008" in refusal("export", "a.db", "-o", "missing/a.csv")


def test_export_never_takes_the_place_of_a_store(folder: Path) -> None:
    before = (folder / "b.db").read_bytes()
    (folder / "link.csv").symlink_to("a.db")
    for name in ("a.db", "b.db", "link.csv"):
        assert "EATSS-C008" in refusal("export", "a.db", "-o", name)
    done = command("report", "a.db", "-o", "b.db", "--format", "text")
    assert (done.returncode, "EATSS-C008" in done.stderr) == (2, True)
    assert (folder / "b.db").read_bytes() == before
