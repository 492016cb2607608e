"""What commands print of cards, findings and prose, on pages of any width."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from eatss.base.diagnostics import Diagnostic, EatssError, SourceSpan
from eatss.cards import list_profiles, load_profile, profile_from_document
from eatss.report.cards import render_profile, render_profiles
from eatss.report.pages import parts_of
from eatss.report.render import listing, render
from tests.end_to_end.in_process import eatss as command
from tests.report.measurements import measured

ALL = list_profiles()


def listed(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    return render_profiles(ALL, "table").splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_of_cards_cuts_no_name(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = listed(width, monkeypatch)
    assert max(map(len, lines)) <= width
    words = {word.rstrip(",") for line in lines[1:] for word in line.split()}
    assert {profile.name for profile in ALL} <= words
    assert {alias for profile in ALL for alias in profile.aliases} <= words
    assert ("card" in lines[0].split()) == (width == 120)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_addresses_stay_whole(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_profile(load_profile("rtx5090"), "table").splitlines()
    addresses = [f"     {one.url}" for one in load_profile("rtx5090").bibliography]
    assert set(addresses) <= set(lines)
    assert max(len(line) for line in lines if line not in addresses) <= width


def test_the_command_prints_a_profile_to_start_from() -> None:
    text = command("profiles", "a100", "--format", "toml").stdout
    assert profile_from_document(tomllib.loads(text)) == load_profile("a100")
    document = json.loads(command("profiles", "a100", "--format", "json").stdout)
    assert profile_from_document(document) == load_profile("a100")
    refused = command("profiles", "--format", "toml", code=2)
    assert "EATSS-C012" in refused.stderr


SPAN = SourceSpan(file="a.c", line=7, column=12, end_line=7, end_column=18)
FINDING = Diagnostic(
    code="EATSS-F012",
    message="subscript is not affine",
    span=SPAN,
    source_line="    A[i] = B[idx[i]];",
    hint="write it without indirection",
)


def test_a_finding_shows_place_message_line_caret_and_hint() -> None:
    assert str(EatssError(FINDING)) == (
        "a.c:7:12: error: subscript is not affine [EATSS-F012]\n"
        "    7 |     A[i] = B[idx[i]];\n"
        "      |            ^~~~~~\n"
        "  hint: write it without indirection"
    )


def test_control_characters_of_a_source_line_are_not_printed() -> None:
    finding = Diagnostic(
        code="EATSS-F001", message="m", span=SPAN, source_line="a\x1b[31m\x00\tb = 1;"
    )
    assert str(EatssError(finding)).isascii()
    assert "\x1b" not in str(EatssError(finding))


def test_control_characters_in_tables_are_spelled_out() -> None:
    table = listing(["card"], [["\x1b]0;title\x07\x9b31m×"]])
    assert render(table, Text("\x1b[1m")) == "  card\n  \\x1b]0;title\\x9b31m×\n\\x1b[1m\n"


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
        shown = render(*(" " * indent + words for indent, words in prose)).splitlines()
    assert max(map(len, shown)) <= width
    for indent, words in prose:
        own = ""
        while own != words:
            line = shown.pop(0)
            assert re.match(" *", line)[0] == " " * indent  # type: ignore[index]
            own = f"{own} {line.strip()}".strip()
            assert words.startswith(own)
    assert shown == []


@pytest.mark.parametrize("name", ["[red]a|b[/]", "a\\", "[link=x]", "{{ 1 }}"])
def test_a_name_is_no_mark_and_no_cell(name: str) -> None:
    text = render(*parts_of(measured(program=name, variant="")))
    assert text.startswith(f"{name}  ok\n")
