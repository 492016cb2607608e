"""What is said on stderr while a command works: on a terminal, elsewhere, and not at all."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.end_to_end.in_process import eatss

ROOT = Path(__file__).parents[2]
GEMM = ROOT / "kernels" / "gemm.c"

STEP = """
import sys, time
from eatss.cli import talk
from eatss.cli.talk import Talk, current, working
talk.SHOWN_AFTER_S = 0.3
current.set(Talk(**eval(sys.argv[2])))
with working("solving for a card") as step:
    for number in range(10):
        step.at("solving k%d\\x1b[7m" % number, number, 10, note="3 s left")
        time.sleep(float(sys.argv[1]) / 10)
print("data")
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


def test_a_step_is_drawn_after_a_while_with_its_time_and_goes_when_it_ends() -> None:
    drawn, printed, code = on_terminal(["-c", STEP, "1", "{}"])
    assert (printed, code) == ("data\n", 0)
    lines = [line for line in plain(drawn) if line]
    assert re.fullmatch(r"solving k\d.* \d of 10, 3 s left, 0\.\d s", lines[0])
    assert all(len(line) <= 80 for line in lines)
    assert "\\x1b[7m" in drawn  # names cannot steer the terminal
    assert "\x1b[7m" not in drawn
    assert drawn.rstrip().endswith("\x1b[2K")  # nothing is left of it


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
