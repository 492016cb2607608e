"""A program of the user's, run as a shell runs it: streams, signals and exit code are its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from eatss.diagnostics import InputError, input_error

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes, as of a shell, where a program is not there or cannot be started."""

_FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_OF_TERMINALS = (signal.SIGINT, getattr(signal, "SIGQUIT", signal.SIGINT))


_OF_PROGRAMS = tuple(
    getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
"""Those that mean what a program makes of them, and no end."""


class NotStartedError(InputError):
    """A program that cannot be started (``EATSS-E091``); ``status`` is what a shell returns."""

    status: int = NOT_FOUND


class Child:
    """Runs a program once or several times; signals to this process go to the one that runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = False
        self._late: int | None = None
        self.ended_by_signal = False

    def run(self) -> int:
        """Run it to its end and return its exit code, 128 + N where signal N ended it.

        Raises:
            NotStartedError: it cannot be started.
        """
        self._starting = True
        try:
            self._process = subprocess.Popen(self._command)  # noqa: S603
        except OSError as error:
            raise _not_started(self._command[0], error) from None
        finally:
            self._starting = False
        late, self._late = self._late, None
        if late is not None:
            self._process.send_signal(late)
        code = self._process.wait()
        self._process = None
        return code if code >= 0 else 128 - code

    @contextmanager
    def taking_signals(self) -> Iterator[None]:
        """Hand on signals in the block, in the main thread; elsewhere they stay as they are.

        One that comes while nothing runs ends this process as Ctrl-C does, but for those that a
        program gives their meaning, which are dropped. Signals that are ignored, as ``nohup``
        makes them, stay so, and so do those whose handlers are not Python's.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        kept = (signal.SIG_IGN, None)
        taken = [number for number in _FORWARDED if signal.getsignal(number) not in kept]
        before = {number: signal.signal(number, self._hand_on) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        """Send a signal on; those of a terminal have reached the program already."""
        ends = number not in _OF_PROGRAMS
        self.ended_by_signal |= ends
        process = self._process
        if self._starting:
            self._late = number
            return
        if process is None:
            if ends:
                raise KeyboardInterrupt
            return
        if number in _OF_TERMINALS and _in_foreground():
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)


def _in_foreground() -> bool:
    """Tell whether a terminal sends its signals to this process and to those that it starts."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _not_started(name: str, error: OSError) -> NotStartedError:
    found = input_error(
        "EATSS-E091",
        f"'{name}' cannot be started: {error.strerror or error}",
        hint="give the program after --, as in: eatss meter -- ./gemm 4000",
    )
    failure = NotStartedError(*found.diagnostics)
    failure.status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
    return failure
