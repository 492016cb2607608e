"""What a shell is offered on TAB, asked for as the shell's own script does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.extensions import Registry
from eatss.base.shipped import kernel_names, sweep_names
from eatss.cards import list_profiles
from eatss.choose.objectives import OBJECTIVES
from eatss.cli.completion import BUILT_IN, rejoin, rejoined
from eatss.lower.instructions import INSTRUCTIONS
from eatss.lower.transform import TRANSFORMATIONS
from eatss.measurement.meters.choose import METERS
from eatss.report.formats import FORMATS
from eatss.tune.strategies import STRATEGIES
from tests.end_to_end.in_process import eatss

SLOW = ("numpy", "islpy", "clang", "z3", "networkx", "scipy", "cupy", "eatss.session")


def offered(words: str, monkeypatch: pytest.MonkeyPatch, shell: str = "complete_bash") -> list[str]:
    """Return what is offered for the last word, which is empty after a space."""
    begun = words.split(" ")
    monkeypatch.setenv("_EATSS_COMPLETE", shell)
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(begun) - 1))
    return eatss().stdout.split()


@pytest.mark.parametrize(
    "before",
    ["select k.c --gpu", "select -g", "predict --gpu", "codegen --gpu", "space --gpu",
     "sweep --gpu", "measure --gpu", "compare -g", "ppcg --gpu", "characterize --gpu",
     "roofline", "profiles"],
)  # fmt: skip
def test_cards_are_offered_wherever_one_is_named(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(f"eatss {before} h2", monkeypatch) == ["h200", "h200-sxm", "h200-sxm5"]


def test_all_names_of_all_cards_are_offered_and_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    found = offered("eatss select --gpu ", monkeypatch)
    names = {name for one in list_profiles() for name in (one.name, *one.aliases)}
    assert set(found) == {"auto", *names}
    assert offered("eatss select --gpu nothing", monkeypatch) == []


def test_profiles_in_files_are_offered_as_they_are_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("mine.toml", "mine.c", "sub/other.toml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert offered("eatss select --gpu m", monkeypatch) == ["mine.toml"]
    assert offered("eatss select --gpu ./", monkeypatch) == ["./mine.toml"]
    assert offered("eatss select --gpu sub/o", monkeypatch) == ["sub/other.toml"]
    assert offered("eatss select --gpu nowhere/o", monkeypatch) == []


@pytest.mark.parametrize("command", ["select", "predict", "inspect", "codegen", "space", "sweep",
                                     "measure", "compare"])  # fmt: skip
def test_kernels_are_offered_wherever_a_file_goes(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(f"eatss {command} @ ge", monkeypatch) == ["@gemm", "@gemver", "@gesummv"]


@pytest.mark.parametrize(
    "before", ["report", "results ls", "results show", "results merge", "results export",
               "sweep --replay"],
)  # fmt: skip
def test_recorded_sweeps_are_offered_wherever_a_store_is_read(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(f"eatss {before} @", monkeypatch) == [f"@{name}" for name in sweep_names()]
    assert offered(f"eatss {before} ge", monkeypatch) == []


def test_all_kernels_are_offered_and_files_are_left_to_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert offered("eatss select @", monkeypatch) == [f"@{name}" for name in kernel_names()]
    assert offered("eatss select ge", monkeypatch) == []
    assert offered("eatss kernels ge", monkeypatch) == ["gemm", "gemver", "gesummv"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("eatss select --objective e", ["energy", "edp"]),
        ("eatss select --objective = e", ["energy", "edp"]),
        ("eatss select @ gemm --gpu = h20", ["h200", "h200-sxm", "h200-sxm5"]),
        ("eatss select --format ppcg", ["ppcg", "ppcg-args"]),
        ("eatss select --target ", ["ppcg", "cuda"]),
        ("eatss select --split ", ["auto"]),
        ("eatss select --shared-per-block o", ["opt-in"]),
        ("eatss codegen --instruction f", ["fma"]),
        ("eatss codegen --transform ", ["swizzle"]),
        ("eatss measure --meter n", ["nvidia-smi", "none"]),
        ("eatss sweep --strategy m", ["model"]),
        ("eatss sweep --target ", ["cuda", "ppcg"]),
        ("eatss sweep --meter a", ["auto"]),
        ("eatss meter --meter n", ["nvidia-smi", "none"]),
        ("eatss profiles --format t", ["table", "toml"]),
        ("eatss sel", ["select"]),
        ("eatss select --dty", ["--dtype"]),
    ],
)
def test_words_that_are_chosen_from_are_offered(
    words: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered(words, monkeypatch) == found


@pytest.mark.parametrize(
    "registry", [OBJECTIVES, FORMATS, METERS, STRATEGIES, TRANSFORMATIONS, INSTRUCTIONS],
    ids=lambda one: one.group,
)  # fmt: skip
def test_the_names_that_are_offered_are_those_of_the_registry(registry: Registry[object]) -> None:
    assert sorted(BUILT_IN[registry.group]) == sorted(registry.names())


word = st.text("abc-./", min_size=1, max_size=4)
typed = st.lists(word | word.map(lambda one: f"@{one}"), min_size=1, max_size=5)


@settings(max_examples=50, deadline=None)
@given(typed, st.data())
def test_words_that_bash_cuts_are_whole_again(words: list[str], data: st.DataObject) -> None:
    """Bash makes ``@`` a word of its own; what stands after the cursor does not matter."""
    words = ["eatss", *words]
    cut = [part for one in words for part in (("@", one[1:]) if one[0] == "@" else (one,))]
    last = data.draw(st.integers(0, len(words) - 1))
    place = len([p for one in words[:last] for p in (one[:1] == "@", True) if p])
    place += words[last][0] == "@"
    assert rejoined(cut, place) == (words[: last + 1], last)


def test_what_no_shell_sends_is_left_alone() -> None:
    unbalanced = {"_EATSS_COMPLETE": "complete_bash", "COMP_WORDS": "eatss 'a", "COMP_CWORD": "1"}
    other = {"_EATSS_COMPLETE": "complete_zsh", "COMP_WORDS": "eatss @ a", "COMP_CWORD": "2"}
    for environment in ({}, unbalanced, other):
        before = dict(environment)
        rejoin(environment)
        assert environment == before


def test_offering_loads_nothing_slow() -> None:
    code = (
        "import sys, os\n"
        "sys.argv = ['eatss']\n"
        "os.environ |= {'_EATSS_COMPLETE': 'complete_bash', 'COMP_WORDS': 'eatss select --gpu a',"
        " 'COMP_CWORD': '3'}\n"
        "from eatss.cli import command\n"
        "command()\n"
        f"print('loaded', [name for name in {SLOW} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "a100" in done.stdout.split()
    assert done.stdout.splitlines()[-1] == "loaded []"
