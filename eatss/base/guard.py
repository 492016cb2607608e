"""Processes that end when the one that started them does.

A process that is killed takes none of its children along, and a signal to a terminal's foreground
does not reach those in sessions of their own. Only Linux tells of the end of a parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the thread of ``parent`` that started this process ends.

    It runs between fork and exec too: the thread that starts a process has to wait for it.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
