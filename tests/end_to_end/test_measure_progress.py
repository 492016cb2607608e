"""The progress bar: on a terminal only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import eatss as package
from eatss.cli.measure import doing, left, showing
from eatss.measurement.job import Progress
from tests.end_to_end.measuring import KERNELS, REPOSITORY
from tests.end_to_end.scripted_for_any import PATH

NOW = Progress(
    variant="selected",
    stage="window",
    window=3,
    variants_done=1,
    variants=4,
    windows_done=7,
    left_s=125.0,
)


AT_ONCE = """
import eatss.cli.talk
eatss.cli.talk.SHOWN_AFTER_S = 0.0
from eatss.cli import main
main()
"""


def test_progress_says_what_runs_now_and_what_is_left() -> None:
    assert doing(NOW) == "selected: window 3"
    assert left(NOW) == "at most 2 min 5 s left"


def test_what_is_for_all_variants_names_none() -> None:
    idle = Progress(
        variant="",
        stage="idle power",
        window=0,
        variants_done=0,
        variants=2,
        windows_done=0,
        left_s=0.0,
    )
    assert (doing(idle), left(idle)) == ("reading idle power", "")


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with showing() as tell:
        tell(NOW)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_bar_is_drawn_and_the_result_stays_clean(tmp_path: Path) -> None:
    folder = tmp_path / "gemm"
    package.codegen(KERNELS / "gemm.c", gpu="h200", output=folder)
    main, terminal = pty.openpty()
    command = [sys.executable, "-c", AT_ONCE, "measure", str(folder), "-f", "csv", "--card", PATH]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        drawn = b""
        with suppress(OSError):  # the other end of a terminal is closed
            while piece := os.read(main, 65536):
                drawn += piece
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(main)
    assert process.returncode == 0
    assert b"\x1b[" in drawn
    assert b"measuring" in drawn  # virtual windows take less than one refresh
    assert b"1/1" in drawn
    assert printed.startswith("program,variant,status")
    assert len(printed.splitlines()) == 2
