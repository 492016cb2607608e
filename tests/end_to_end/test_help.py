"""``--help``, ``--version`` and what a shell is offered on TAB."""

from __future__ import annotations

import re

import pytest
from click.shell_completion import ShellComplete

from eatss import __version__
from eatss.cli.app import COMMANDS, Commands
from tests.end_to_end.in_process import eatss

WIDTH = 80
PATHS = [(), *((name,) for name in COMMANDS)]


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
        assert re.match(r"(eatss|ppcg) ", line), line
    assert "--help" in head


def test_what_every_command_has_comes_last() -> None:
    text = eatss("select", "--help").stdout
    assert text.index("\nOptions:") < text.index("\nOutput:")
    assert text.index("--debug") < text.index("--quiet") < text.index("--verbose")


def test_main_commands_come_first() -> None:
    text = eatss("--help").stdout
    order = [
        text.index(f"\n  {name} ") for name in ("select", "codegen", "verify", "sweep", "doctor")
    ]
    assert order == sorted(order)


def test_the_version_is_all_of_the_only_line() -> None:
    done = eatss("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"eatss {__version__}\n", "")


def test_our_own_fault_points_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("eatss.report.cards.render_profiles", broken)
    done = eatss("profiles", code=70)
    assert "eatss doctor" in done.stderr


def offered(words: str) -> list[str]:
    """Return what is offered for the last word, which is empty after a space."""
    *before, begun = words.split(" ")[1:]
    shell = ShellComplete(Commands(), {}, "eatss", "_EATSS_COMPLETE")
    found = shell.get_completions(before, begun)
    return [str(one.value) for one in found if one.type == "plain"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("eatss select --target ", ["ppcg", "cuda"]),
        ("eatss sel", ["select"]),
        ("eatss select --dty", ["--dtype"]),
    ],
)
def test_words_that_are_chosen_from_are_offered(words: str, found: list[str]) -> None:
    assert offered(words) == found
