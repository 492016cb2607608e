"""Prose on a narrow page."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from eatss.report.render import html_of, render, uncut

lines = st.tuples(
    st.integers(0, 8),
    st.lists(st.text("abcxyz", min_size=1, max_size=9), min_size=1, max_size=12).map(" ".join),
)


@given(st.lists(lines, min_size=1, max_size=4), st.integers(20, 60))
def test_a_line_that_is_too_wide_goes_on_below_where_it_began(
    prose: list[tuple[int, str]], width: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        shown = render("\n".join(" " * indent + words for indent, words in prose)).splitlines()
    assert max(map(len, shown)) <= width
    for indent, words in prose:
        own = ""
        while own != words:
            line = shown.pop(0)
            assert re.match(" *", line)[0] == " " * indent  # type: ignore[index]
            own = f"{own} {line.strip()}".strip()
            assert words.startswith(own)
    assert shown == []


def test_colours_and_lines_to_copy_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    address = "     https://example.org/" + "x" * 60
    assert render(uncut(address)) == address + "\n"
    head = Text("kernel0", style="bold")
    head.append("\n  expected " + "x " * 60, style="red")
    page = html_of([head])
    assert re.search(r"bold[^>]*>kernel0<", page)
    assert len(re.findall(r"^(?:<[^>]*>)* {2}(?:<[^>]*>)*(?:expected|x)", page, re.M)) == 2
