"""What a shell is offered on TAB."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from eatss.base.shipped import kernel_names, sweep_names
from eatss.cards import list_profiles
from eatss.cli.app import Commands


def offered(words: str) -> list[str]:
    """Return what is offered for the last word, which is empty after a space."""
    *before, begun = words.split(" ")[1:]
    shell = ShellComplete(Commands(()), {}, "eatss", "_EATSS_COMPLETE")
    found = shell.get_completions(before, begun)
    return [str(one.value) for one in found if one.type == "plain"]


@pytest.mark.parametrize("before", ["select k.c --gpu", "sweep -g", "roofline", "profiles"])
def test_cards_are_offered(before: str) -> None:
    assert offered(f"eatss {before} h2") == ["h200", "h200-sxm", "h200-sxm5"]
    names = {name for one in list_profiles() for name in (one.name, *one.aliases)}
    assert set(offered(f"eatss {before} ")) == {"auto", *names}


def test_kernels_and_recorded_sweeps_are_offered() -> None:
    assert offered("eatss select @") == [f"@{name}" for name in kernel_names()]
    assert offered("eatss kernels ge") == ["gemm", "gemver", "gesummv"]
    assert offered("eatss report @") == [f"@{name}" for name in sweep_names()]
    assert offered("eatss select ge") == []  # files are left to the shell


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
