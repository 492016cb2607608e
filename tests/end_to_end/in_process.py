"""The command line in the process of the tests: a process of its own takes most of a second."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from eatss.cli import command


def eatss(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as :func:`eatss.cli.command` does; streams and exit code are a process's."""
    words = ["eatss", *map(str, arguments)]
    before, threshold = sys.argv, gc.get_threshold()
    out, talk = io.StringIO(), io.StringIO()
    try:
        sys.argv = words
        with redirect_stdout(out), redirect_stderr(talk):
            code = command()
    finally:
        sys.argv = before
        gc.set_threshold(*threshold)
    return subprocess.CompletedProcess(words, code, out.getvalue(), talk.getvalue())
