"""What is said on stderr while a command works: on a terminal, elsewhere, and not at all."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import eatss.cli.talk as shown
from eatss.cli.talk import State, Talk, current, working
from tests.end_to_end.in_process import eatss

ROOT = Path(__file__).parents[2]
GEMM = ROOT / "kernels" / "gemm.c"

STEP = """
import sys, time
from eatss.cli.talk import working
from eatss.cli.talk import Talk, current
current.set(Talk(**eval(sys.argv[2])))
with working("solving for a card") as step:
    for number in range(10):
        step.at("solving k%d\\x1b[7m" % number, number, 10, note="3 s left")
        time.sleep(float(sys.argv[1]) / 10)
print("data")
"""
FORKED = """
import sys, time
import eatss.cli.talk
from eatss.session.session import Session
eatss.cli.talk.SHOWN_AFTER_S = 0.1
parsed = Session.parsed.func
def slow(self):
    time.sleep(0.5)
    return parsed(self)
Session.parsed = property(slow)
from eatss.cli import main
main()
"""


def on_terminal(words: Sequence[str], *, stdout: int = subprocess.PIPE) -> tuple[str, str, int]:
    """Run Python with a terminal of 80 columns as stderr; return what is drawn and printed."""
    ours, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, *words], stdout=stdout, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        drawn = b""
        with suppress(OSError):  # the other end of a terminal is closed
            while piece := os.read(ours, 65536):
                drawn += piece
        printed = b"" if process.stdout is None else process.stdout.read()
    os.close(ours)
    return drawn.decode(), printed.decode(), process.returncode


def plain(drawn: str) -> list[str]:
    """Return the lines that were drawn, without colours and movements."""
    return [
        line.strip() for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn))
    ]


def test_a_step_is_drawn_after_two_seconds_with_its_time_and_goes_when_it_ends() -> None:
    drawn, printed, code = on_terminal(["-c", STEP, "2.9", "{}"])
    assert (printed, code) == ("data\n", 0)
    lines = [line for line in plain(drawn) if line]
    assert re.fullmatch(r"solving k\d.* \d/10  3 s left 2\.\d s", lines[0])
    assert all(len(line) <= 80 for line in lines)
    assert "\\x1b[7m" in drawn  # names cannot steer the terminal
    assert "\x1b[7m" not in drawn
    assert drawn.rstrip().endswith("\x1b[2K")  # nothing is left of it
    assert drawn.count("\x1b[?25h") == drawn.count("\x1b[?25l") == 1


def test_what_is_quick_is_never_drawn() -> None:
    assert on_terminal(["-c", STEP, "0.3", "{}"])[0] == ""


def test_verbose_tells_each_step_with_its_time_and_quiet_nothing() -> None:
    drawn = on_terminal(["-c", STEP, "0.2", "dict(verbose=True)"])[0]
    assert re.fullmatch(r"solving for a card: 0\.\d s\r\n", drawn)
    assert on_terminal(["-c", STEP, "2.4", "dict(quiet=True)"])[0] == ""


def test_elsewhere_a_line_is_written_now_and_then_only_if_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown, "TOLD_EVERY_S", 0.05)
    for talk, pattern in (
        (Talk(), ""),
        (Talk(quiet=True), ""),
        (Talk(verbose=True), r"(half 1 of 2, soon, 0\.\d s so far\n)+all: 0\.\d s\n"),
    ):
        before = current.set(talk)
        with working("all") as step:
            step.at("half", 1, 2, note="soon")
            time.sleep(0.15)
        current.reset(before)
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(pattern, err)


def test_a_state_is_words() -> None:
    assert str(State(what="counting")) == "counting"
    assert str(State(what="counting", done=3, total=7, note="soon")) == "counting 3 of 7, soon"


def test_a_command_in_a_process_of_its_own_shows_what_it_does() -> None:
    drawn, printed, code = on_terminal(["-c", FORKED, "inspect", str(GEMM)])
    assert code == 0
    assert "kernel_gemm" in printed
    assert any(line.startswith("reading ") for line in plain(drawn))
    assert drawn.rstrip().endswith("\x1b[2K")


def test_a_reader_that_leaves_ends_a_command_in_silence() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    drawn, _, code = on_terminal(["-c", FORKED, "inspect", str(GEMM)], stdout=writer)
    os.close(writer)
    assert code == 0
    steps = ("reading ", "analysing ")
    assert not [line for line in plain(drawn) if line and not line.startswith(steps)]


@pytest.mark.parametrize("words", [("--quiet", "inspect"), ("inspect", "--quiet")])
def test_quiet_may_stand_in_either_place(words: tuple[str, ...], tmp_path: Path) -> None:
    done = eatss(*words, GEMM)
    assert (done.returncode, done.stderr) == (0, "")
    missing = eatss(*words, tmp_path / "none.c")
    assert missing.returncode == 2
    assert "error: cannot read" in missing.stderr  # errors are told


@pytest.mark.parametrize("words", [("-v", "inspect"), ("inspect", "-v")])
def test_verbose_may_stand_in_either_place(words: tuple[str, ...]) -> None:
    done = eatss(*words, GEMM)
    assert re.search(r"^analysing .*gemm\.c: \d\.\d s$", done.stderr, re.MULTILINE)
    assert done.stdout == eatss("inspect", GEMM).stdout


def test_what_is_nearer_to_the_command_wins_and_both_at_once_is_a_mistake() -> None:
    assert "analysing" in eatss("--quiet", "inspect", "--verbose", GEMM).stderr
    assert eatss("--verbose", "inspect", "--quiet", GEMM).stderr == ""
    for words in (("inspect", "-q", "-v", GEMM), ("-q", "-v", "inspect", GEMM)):
        done = eatss(*words)
        assert done.returncode == 2
        assert "EATSS-C040" in done.stderr


def test_quiet_has_no_warnings() -> None:
    words = ("select", ROOT / "kernels" / "syrk.c", "--gpu", "a100", "--format", "ppcg")
    loud, quiet = eatss(*words), eatss(*words, "-q")
    assert loud.stdout == quiet.stdout != ""
    assert "warning: " in loud.stderr
    assert quiet.stderr == ""
