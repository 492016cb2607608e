"""What the site is made of: the picture of results, the Python API, the navigation."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

import eatss
from benchmarks import polybench_card, ppcg_record
from benchmarks.recorded import geometric_mean

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
ANNOTATIONS = {"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}


def test_the_picture_shows_what_the_stores_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "scripts"), *sys.path])
    described = import_module("results_picture").description()
    drawn = ElementTree.parse(DOCS / "images" / "sweeps.svg")
    texts = [text.strip() for text in drawn.getroot().itertext()]
    assert described in texts
    assert "the EATSS paper's model 34.9 ms and 9.49 J" in described


def test_the_api_page_has_every_public_name() -> None:
    page = (DOCS / "api.md").read_text()
    shown = set(re.findall(r"^::: eatss\.(\w+)$", page, re.MULTILINE))
    assert shown == set(eatss.__all__) - ANNOTATIONS - {"__version__"}
    assert all(f"`{name}`" in page for name in ANNOTATIONS)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (REPOSITORY / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in DOCS.glob("*.md")} <= listed
    made = {"commands.md", "profiles.md", "schemas.md"}
    for name in listed - made:
        assert (DOCS / name).is_file() or (REPOSITORY / name).is_file(), name


def test_the_home_page_and_the_readme_show_the_same_picture() -> None:
    texts = [(REPOSITORY / "README.md").read_text(), (DOCS / "index.md").read_text()]
    first, second = (re.findall(r"!\[(.*?)\]\((?:docs/)?(.*?)\)", text) for text in texts)
    assert first == second
    assert len(first) == 1


def test_tables_of_results_are_those_of_the_records() -> None:
    renewed = import_module("benchmarks.tables").renewed
    pages = sorted(DOCS.glob("measured-*.md"))
    texts = [page.read_text() for page in pages]
    assert sum("<!-- table: " in text for text in texts) >= 4
    for page, text in zip(pages, texts, strict=True):
        assert renewed(text) == text, f"{page.name}: run python benchmarks/tables.py"


def test_the_page_beside_the_paper_is_current() -> None:
    compare = import_module("benchmarks.paper.compare")
    text = compare.PAGE.read_text()
    assert text.count("<!-- table: ") == len(compare.TABLES)
    assert compare.renewed(text, compare.TABLES) == text, "run python benchmarks/paper/compare.py"


def test_a_table_without_pairs_has_no_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.jsonl").touch()
    polybench_card.report([], tmp_path / "none.jsonl")
    assert "0 programs: nan, nan" in capsys.readouterr().out


def test_no_record_is_lost_where_no_ppcg_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "store.json").touch()
    monkeypatch.setattr(ppcg_record, "STORE", tmp_path / "store.json")
    monkeypatch.setattr(sys, "argv", ["ppcg_record.py", "--help"])
    with pytest.raises(SystemExit, match="path/to/ppcg"):
        ppcg_record.main()
    assert (tmp_path / "store.json").exists()


def test_printed_means_of_figure_7_are_those_of_its_rows() -> None:
    """Its rows have as few as one digit, so means of rows are some percent off."""
    selections = import_module("benchmarks.paper.selections")
    for card, printed in selections.published()["figure7"]["ppw_means"].items():
        rows = [row for row in selections.figure7() if row["card"] == card]
        assert len(rows) == 21
        for who, mean in zip(("median", "default", "best", "ours"), printed, strict=True):
            found = geometric_mean([float(row[f"{who}_ppw"]) for row in rows])
            assert found == pytest.approx(mean, rel=0.04), (card, who)


def test_files_and_functions_that_pages_name_are_there() -> None:
    pages = [page.read_text() for page in [REPOSITORY / "README.md", *DOCS.glob("*.md")]]
    files = {path for page in pages for path in re.findall(r"`((?:eatss|tests)/[\w/]+\.py)`", page)}
    assert [path for path in sorted(files) if not (REPOSITORY / path).exists()] == []
    page = (DOCS / "architecture.md").read_text()
    for path, names in re.findall(r"`(eatss/[\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", page):
        text = (REPOSITORY / path).read_text()
        for name in re.findall(r"\w+", names):
            assert re.search(rf"\b(def|class) {name}\b", text), f"{path} has no {name}"
    folders = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    named = {name for cell in folders for name in re.findall(r"\w+", cell)}
    packages = {path.parent.name for path in (REPOSITORY / "eatss").glob("*/__init__.py")}
    assert named == packages
