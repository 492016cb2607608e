"""Runs a command that ends when the one who started it does: ``python guard.py PARENT COMMAND…``.

A process that is killed takes none of its children along, and a signal to a terminal's foreground
does not reach those in sessions of their own. This one stands between: it leads a group (start it
with ``start_new_session``), asks the kernel for SIGTERM when its parent ends, and then ends its
group: by SIGTERM first, by SIGKILL after ``ENDING_S``. Otherwise it ends as the command does, also
by the same signal. Only Linux tells of the end of a parent; elsewhere it waits and no more.

It imports nothing but the standard library, and runs without ``site``, so it starts in some ten
milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

ENDING_S = 3.0
NOT_STARTED = 127
"""Exit code, as of a shell, where the command does not start."""

_PR_SET_PDEATHSIG = 1


def guarded(command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command for this process and no longer.

    The thread that starts it has to wait for it, since the kernel takes the end of that thread for
    the end of the parent.
    """
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def main(words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    parent, command = int(words[0]), list(words[1:])
    signal.signal(signal.SIGTERM, _end_group)
    if not ends_with(parent):
        return NOT_STARTED
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGTERM])
    except OSError as error:
        sys.stderr.write(f"{command[0]} does not start: {error.strerror}\n")
        return NOT_STARTED
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        _end_by(-code)
    return code


def ends_with(parent: int) -> bool:
    """Ask the kernel for SIGTERM when the thread that started this process ends.

    Returns:
        Whether the parent is there still.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - takes longer than all the rest

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    return os.getppid() == parent


def _end_group(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    deadline_s = time.monotonic() + ENDING_S
    try:
        while os.waitpid(-1, os.WNOHANG) == (0, 0) and time.monotonic() < deadline_s:
            time.sleep(0.01)
    except ChildProcessError:
        pass  # it has ended
    os.killpg(0, signal.SIGKILL)  # what the command started, and this process


def _end_by(number: int) -> None:
    import resource  # noqa: PLC0415 - rarely needed

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
