"""Standard output and error that may be closed, full, or unread; signals that ask to end."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType
from typing import TextIO

from eatss.base.diagnostics import ExitCode, input_error

_WIDTH_OF_A_FILE = 120
_LEAST_WIDTH = 20


def page_width() -> int:
    """Return how many columns a line has: ``COLUMNS``, else those of the window, in a file 120."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((_WIDTH_OF_A_FILE, 0)).columns)


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, or bytes, at once; what cannot be told on standard error is lost.

    Raises:
        InputError: ``EATSS-C014``, standard output cannot be written.
        SystemExit: its reader has gone (``| head -1``): the process ends quietly and well.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        if isinstance(text, bytes):
            stream.flush()
            stream.buffer.write(text)
        else:
            stream.write(f"{text}\n" if nl else str(text))
        stream.flush()
    except OSError as error:
        _discard(stream)
        if err:
            return
        if isinstance(error, BrokenPipeError):
            sys.exit(ExitCode.OK)
        raise input_error(
            "EATSS-C014",
            f"standard output cannot be written: {error.strerror or error}",
            hint="write it to a file on a disk with room, or into a pipe",
        ) from None


@contextmanager
def telling() -> Iterator[TextIO]:
    """Yield standard error to write to; what cannot be told is lost."""
    try:
        yield sys.stderr
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let what is left go nowhere, else Python tries once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Have standard streams in the block also where they are closed; they cannot be written then.

    They take the lowest descriptors, so that no file is opened in their place.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be any bytes
    with redirect_stdout(sys.stdout or _closed()), redirect_stderr(sys.stderr or _closed()):
        yield


def _closed() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8", closefd=False)


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
