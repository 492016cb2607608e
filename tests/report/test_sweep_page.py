"""The page as text: nothing from outside, everything escaped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from eatss.report import sweep_page as pages
from eatss.report.sweep_figures import sweep_figures
from eatss.report.sweep_page import html_page
from eatss.report.sweep_tables import (
    report_text,
    sentences,
)
from eatss.tune.evaluation import evaluate, summed_up
from eatss.tune.rows import Sweep
from tests.synthetic_sweeps import of_rows, programs, row, sweep

PAGE = files("eatss.report").joinpath("sweep_page.html").read_text(encoding="utf-8")
SCRIPT = PAGE.partition("<script>\n{% raw %}")[2].partition("{% endraw %}")[0]
NODE = shutil.which("node")
VOID = {"meta", "link", "img", "br"}


def page_of(*sweeps: Sweep) -> str:
    found = [evaluate(one) for one in sweeps]
    return html_page(found, summed_up(found))


@pytest.fixture(autouse=True, scope="module")
def _few_figures() -> Iterator[None]:
    """Draw one figure a page: each is drawn by a test of its own, and takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "sweep_figures", lambda one: sweep_figures(one)[:1])
        yield


@pytest.fixture(scope="module")
def page(_few_figures: None) -> str:
    return page_of(sweep(variants=25, careful=2, metrics=False))


class Reader(HTMLParser):
    """Tags, attributes and text of a page; refuses tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_asks_for_nothing_from_outside(page: str) -> None:
    tags = Reader(page).tags
    for _, attributes in tags:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
    assert not [tag for tag, _ in tags if tag in ("iframe", "object", "embed", "base", "form")]
    policy = next(a["content"] for _, a in tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"https?://", re.sub(r'(href|src)="data:[^"]*"', "", page))


def test_ids_are_unique_and_labels_lead_somewhere(page: str) -> None:
    tags = Reader(page).tags
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(set(ids)) == len(ids)
    for _, attributes in tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
    assert all(a.get("alt") for tag, a in tags if tag == "img")


def test_names_from_a_store_are_text() -> None:
    made = sweep(variants=4, roles=False, careful=0, references=0, program="<b>&\"'<script>x()")
    failing = row(1, None, status="timeout", reason="</td><script>alert(1)</script>")
    made = replace(made, rows=(failing,))
    text = page_of(made)
    reader = Reader(text)
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert "<b>&\"'<script>x(), double" in "".join(reader.text)
    assert "</td><script>alert(1)</script>" in "".join(reader.text)


def test_several_sweeps_have_a_table_over_all_and_a_section_each() -> None:
    found = [of_rows([row(1, 2.0, 2.0, role="default"), row(2, 1.0, 3.0, role="ours")])] * 2
    reader = Reader(page_of(*found))
    text = "".join(reader.text)
    assert text.count("Geometric means over sweeps") == 1
    assert [tag for tag, _ in reader.tags].count("article") == 2
    ids = [a["id"] for _, a in reader.tags if "id" in a]
    assert len(set(ids)) == len(ids)


def test_a_sweep_without_anything_measured_says_so() -> None:
    made = of_rows([row(1, None, status="timeout", reason="no result after 30 s")])
    text = "".join(Reader(page_of(made)).text)
    assert "Nothing was measured" in text
    assert "no result after 30 s" in text


def test_sentences_say_the_numbers_of_a_small_sweep() -> None:
    made = of_rows(
        [
            row(1, 4e-3, 4.0, role="default"),
            row(2, 2e-3, 3.0, role="ours"),
            row(3, 3e-3, 1.0),
            row(4, None, status="timeout", reason="too long"),
        ]
    )
    text = " ".join(sentences(evaluate(made).evaluation))
    assert "3 of 4 variants were measured; 1 failed" in text
    assert "wastes 200 % of energy" in text
    assert "loses 50 % of time" in text


def test_the_text_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = report_text(summed_up([evaluate(one) for one in programs(2, 40)]))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert re.search(r"ours +default", text)


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_script_orders_numbers_texts_and_nothing() -> None:
    program = f"""
const module = {{ exports: {{}} }};
{SCRIPT}
const {{ keyOf, ordered }} = module.exports;
const cells = [
  {{ dataset: {{ value: "10" }}, textContent: "10.00" }},
  {{ dataset: {{ value: "9e-1" }}, textContent: "0.9000" }},
  {{ dataset: {{}}, textContent: " " }},
  {{ dataset: {{}}, textContent: "tile_i=9" }},
  {{ dataset: {{}}, textContent: "tile_i=10" }},
  {{ dataset: {{ value: "10" }}, textContent: "10.00" }},
];
const keys = cells.map(keyOf);
console.log(JSON.stringify([keys, ordered(keys, false), ordered(keys, true)]));
"""
    assert NODE is not None
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True)
    keys, rising, falling = json.loads(done.stdout)
    assert keys == [10, 0.9, None, "tile_i=9", "tile_i=10", 10]
    assert rising == [1, 0, 5, 3, 4, 2]
    assert falling == [4, 3, 0, 5, 1, 2]
