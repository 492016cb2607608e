"""The list of cards and one card's figures, on pages of any width."""

from __future__ import annotations

import json
import tomllib

import pytest

from eatss.base.streams import page_width
from eatss.cards import list_profiles, load_profile, profile_from_document
from eatss.report.cards import render_profile, render_profiles
from eatss.report.render import render
from tests.end_to_end.in_process import eatss as command

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


@pytest.mark.parametrize(
    ("columns", "width"),
    [("80", 80), ("7", 20), ("", 120), ("0", 120), ("-3", 120), ("many", 120), ("300", 300)],
)
def test_a_file_is_as_wide_as_columns_says(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width
    lines = render("word " * 200).splitlines()
    assert width - 5 <= max(map(len, lines)) <= width


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
    refused = command("profiles", "--format", "toml")
    assert refused.returncode == 2
    assert "EATSS-C012" in refused.stderr
