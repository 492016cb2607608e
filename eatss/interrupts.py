"""Signals that ask a process to end, taken as Ctrl-C is, so that what it started ends too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` in the block on SIGTERM and SIGHUP.

    Only in the main thread, and only for signals that nobody handles or ignores (as ``nohup``
    does).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    taken = [s for s in wanted if s is not None and signal.getsignal(s) is signal.SIG_DFL]
    for each in taken:
        signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
