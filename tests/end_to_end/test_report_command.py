"""``eatss report`` and ``eatss.sweep_report`` on stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from eatss.report import sweep_figures, sweep_page
from eatss.tune.rows import Sweep
from eatss.tune.store import Store
from tests.end_to_end.in_process import eatss
from tests.synthetic_sweeps import sweep

MADE = sweep(variants=30, cards=2, careful=3)


def kept(made: Sweep, path: Path) -> Path:
    with Store.create_or_resume(path, made.identity, made.space) as store:
        for card in made.cards:
            store.add_card(card)
        for row in made.rows:
            store.add(row)
    return path


@pytest.fixture(autouse=True)
def _few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw two figures of a sweep: drawing takes time, and has tests of its own."""
    every = sweep_figures.sweep_figures
    monkeypatch.setattr(sweep_figures, "sweep_figures", lambda one: every(one)[2:4])
    monkeypatch.setattr(sweep_page, "sweep_figures", sweep_figures.sweep_figures)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(MADE, tmp_path_factory.mktemp("stores") / "gemm.db")


def test_without_options_it_prints_a_summary(store: Path) -> None:
    done = eatss("report", str(store), code=0)
    assert done.stdout.startswith("gemm, double, cuda, on NVIDIA H200\n")
    assert "variants were measured" in done.stdout
    assert done.stderr == ""


def test_json_keeps_to_its_schema(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    shutil.copy(store, other)
    done = eatss("report", str(store), str(other), str(store), "--format", "json")
    document = json.loads(done.stdout)
    assert len(document["sweeps"]) == 2
    assert document["means"]


def test_csv_has_a_line_a_measurement(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    shutil.copy(store, other)
    eatss("report", str(store), str(other), "-o", str(tmp_path / "a.csv"), code=0)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * len(MADE.rows)
    assert (
        eatss("report", str(store), "-f", "csv").stdout.splitlines() == lines[: 1 + len(MADE.rows)]
    )


def test_a_report_never_takes_the_place_of_a_store(store: Path, tmp_path: Path) -> None:
    before = store.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(store)
    for place in (store, link):
        done = eatss("report", str(store), "-o", str(place), "--format", "csv", code=2)
        assert "EATSS-C008" in done.stderr
    assert store.read_bytes() == before


def test_the_format_follows_the_name_of_the_file(store: Path, tmp_path: Path) -> None:
    for name, start in (("a.html", "<!doctype html>"), ("a.json", "{"), ("a.txt", "gemm")):
        done = eatss("report", str(store), "-o", str(tmp_path / name), code=0)
        assert done.stdout == f"{tmp_path / name}\n"
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_figures_are_files_of_their_own(tmp_path: Path) -> None:
    small = kept(sweep(variants=8, roles=False, careful=0, references=0), tmp_path / "s.db")
    done = eatss(
        "report", str(small), "--figures", str(tmp_path / "new"), "--figures-as", "svg", code=0
    )
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"spectrum.svg", "hull.svg"}
    assert {Path(line).name for line in done.stdout.splitlines()} == names


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["missing.db"], "EATSS-D001"),
        (["STORE", "-o", "report.docx"], "EATSS-E053"),
        (["STORE", "--figures", "STORE"], "EATSS-E053"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], code: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = eatss("report", *(str(store) if one == "STORE" else one for one in arguments), code=2)
    assert code in done.stderr
    assert "Traceback" not in done.stderr
