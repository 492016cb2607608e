"""Runs the commands that measure, on a card that exists in a script only."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from eatss.base.shipped import data_directory
from eatss.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
KERNELS = data_directory("kernels")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def eatss(*arguments: str | Path, card: str) -> Done:
    """Run a command in this process; the card is held by one of its own."""
    out, err = StringIO(), StringIO()
    command = ["eatss", *map(str, arguments), "--card", card]
    code: object = 0
    with (
        patch.object(sys, "argv", command),
        patch.dict(os.environ, PYTHONPATH=str(REPOSITORY), EATSS_TESTS_PID=str(os.getpid())),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return Done(int(str(code or 0)), out.getvalue(), err.getvalue())


def python(*arguments: str | Path, path: Path | None = None) -> Done:
    """Run Python in a process of its own; ``path`` is put before everything on its path."""
    roots = [str(root) for root in (path, REPOSITORY) if root is not None]
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def mistake(*arguments: str | Path, card: str) -> str:
    """Run a command that has to end with exit code 2; return what it says."""
    done = eatss(*arguments, card=card)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())
