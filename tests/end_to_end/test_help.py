"""``--help`` of each command, as it looks in a window of 80 columns."""

from __future__ import annotations

import re

import pytest

from eatss.cli.declared import COMMANDS
from tests.end_to_end.in_process import eatss

WIDTH = 80
PATHS = [(), ("results",), ("cache",), *COMMANDS]


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_help_fits_a_window_and_has_examples(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = eatss(*words, "--help").stdout
    assert max(map(len, text.splitlines())) <= WIDTH
    head, _, examples = text.partition("Examples:")
    commands = [line.strip() for line in examples.splitlines() if line.strip()]
    assert commands
    for line in commands:  # none goes on in a second line
        assert re.match(r"(eatss|ppcg|du) ", line), line
    assert "--help" in head


def test_what_every_command_has_comes_last() -> None:
    for words in (("select",), ("results", "show")):
        text = eatss(*words, "--help").stdout
        assert text.index("\nOptions:") < text.index("\nOutput:")
        assert text.index("--debug") < text.index("--quiet") < text.index("--verbose")


def test_main_commands_come_first() -> None:
    text = eatss("--help").stdout
    order = [
        text.index(f"\n  {name} ") for name in ("select", "codegen", "verify", "sweep", "doctor")
    ]
    assert order == sorted(order)
