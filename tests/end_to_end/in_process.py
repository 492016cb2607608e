"""The command line in the process of the tests: a process of its own takes most of a second."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from eatss.cli import command


def eatss(*arguments: str | Path, code: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as :func:`eatss.cli.command` does; streams and exit code are a process's.

    It has to end with ``code``, where one is given.
    """
    words = ["eatss", *map(str, arguments)]
    before, threshold = sys.argv, gc.get_threshold()
    out, talk = io.StringIO(), io.StringIO()
    try:
        sys.argv = words
        with redirect_stdout(out), redirect_stderr(talk):
            ended = command()
    finally:
        sys.argv = before
        gc.set_threshold(*threshold)
    assert code in (None, ended), talk.getvalue()
    return subprocess.CompletedProcess(words, ended, out.getvalue(), talk.getvalue())
