"""Standard output and error that may be closed, full, or unread; signals that ask to end."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType
from typing import Any, NoReturn, TextIO

from eatss.base.diagnostics import ExitCode, input_error

_WIDTH_OF_A_FILE = 120
_LEAST_WIDTH = 20
_COLOURS = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "UNICODE_VERSION")
"""Variables that say what a terminal shows."""


def page_width() -> int:
    """Return how many columns a line has: ``COLUMNS``, else those of the window, in a file 120."""
    try:
        width = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        width = 0
    if width <= 0:
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else _WIDTH_OF_A_FILE
    return max(_LEAST_WIDTH, width)


def shown_on() -> tuple[object, ...]:
    """Return all that decides how a text is laid out and coloured on standard output."""
    return (page_width(), sys.stdout.isatty(), *map(os.environ.get, _COLOURS))


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, or bytes, at once."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(text, bytes):
        stream.flush()
        stream = stream.buffer
    else:
        text = f"{text}\n" if nl else str(text)
    stream.write(text)  # type: ignore[arg-type]
    stream.flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Say in words in the block that standard output cannot be written.

    That is ``EATSS-C014``; where its reader has gone (``| head -1``), the process ends quietly and
    well. What cannot be told on standard error is lost, and the exit code stays what it is.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be any bytes
    output = _Watched(sys.stdout or _closed(), _refuse)
    talk = _Watched(sys.stderr or _closed(), lambda error: None)
    with redirect_stdout(output), redirect_stderr(talk):
        try:
            yield
        finally:
            talk.finish()
            output.finish()


def _closed() -> TextIO:
    """Return a stream for one that was closed, which cannot be written either.

    It takes the lowest descriptor, so that no file is opened in its place.
    """
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8", closefd=False)


class _Watched:
    """A text stream that hands the failure to write to a function of its own."""

    def __init__(self, stream: TextIO, failed: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._failed = failed
        self._error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        self._watched(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        self._watched(self._stream.flush)

    def finish(self) -> None:
        """Hand on what was written, unless that has failed: a process may end without doing so."""
        if self._error is None:
            self.flush()

    def _watched(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            self._error = self._error or error
            self._discard()
        if self._error is not None:  # also later: who tries a stream out tells nobody
            self._failed(self._error)

    def _discard(self) -> None:
        """Let what is left go nowhere, else Python tries once more when it ends."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def _refuse(error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        sys.exit(ExitCode.OK)
    raise input_error(
        "EATSS-C014",
        f"standard output cannot be written: {error.strerror or error}",
        hint="write it to a file on a disk with room, or into a pipe",
    )


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
