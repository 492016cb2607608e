"""Signals that ask a process to end: taken as Ctrl-C, kept back while a child is not known."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
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


ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Signals that ask a process to end."""


class HeldSignals:
    """Keeps signals back from :meth:`hold` to :meth:`let_go`.

    What Python does about a signal it does in the main thread, between any two steps of it: also
    between a fork and the note of the child's number. Elsewhere, and for signals that end the
    process at once or are ignored, there is nothing to keep back.
    """

    def __init__(self) -> None:
        self._usual: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def hold(self) -> None:
        """Keep signals back."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            handler = signal.getsignal(number)
            if callable(handler) and not isinstance(handler, signal.Handlers):
                self._usual[number] = handler
                signal.signal(number, self._note)

    def let_go(self) -> None:
        """Let signals do what they do, those that came too."""
        try:
            self._restore()
        finally:
            self._restore()
        while self._came:
            number, frame = self._came.pop(0)
            self._usual[number](number, frame)

    def _restore(self) -> None:
        for number, handler in self._usual.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))
