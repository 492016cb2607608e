"""``--help`` of each command, as it looks in a window of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from eatss.cli.typer_app import app

WIDTH = 80


def paths(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from paths(inner, (*words, name))


COMMANDS = list(paths(get_command(app)))


@cache
def shown(words: tuple[str, ...]) -> str:
    return str(CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(WIDTH)}).output)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_fits_a_window_and_has_examples(words: tuple[str, ...]) -> None:
    text = shown(words)
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    head, _, examples = text.partition("Examples:")
    commands = [line.strip() for line in examples.splitlines() if line.strip()]
    assert commands
    for line in commands:  # none goes on in a second line
        assert re.match(r"(eatss|ppcg|du) ", line), line
    assert "<bool>" not in head
    assert "<list" not in head
    assert "--help" in head


def test_what_every_command_has_comes_last() -> None:
    for words in (("select",), ("results", "show")):
        text = shown(words)
        assert text.index("─ Options ─") < text.index("─ Output ─")
        assert text.rindex("╭─") == text.index("╭─ Output ─")
        assert text.index("--debug") < text.index("--quiet") < text.index("--verbose")


def test_main_commands_come_first() -> None:
    text = shown(())
    order = [
        text.index(f"│ {name} ") for name in ("select", "codegen", "verify", "sweep", "doctor")
    ]
    assert order == sorted(order)
