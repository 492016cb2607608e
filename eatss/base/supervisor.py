"""Runs a job in a worker process, which may crash or hang, and says how the worker ended.

``python -m MODULE`` calls :func:`connect`: its standard input is a connection on which it gets the
job, a noun, and then orders, and tells of events: nouns, or an ``EatssError`` of the user's or the
machine's. It leads a group, with the compilers and meters that it starts, and ends with this
process (:mod:`eatss.base.guard`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn, TypeVar

from eatss.base.frozen import Names, frozen
from eatss.base.guard import end_with

J = TypeVar("J")
T = TypeVar("T")
O = TypeVar("O")  # noqa: E741 - an order

BETWEEN_LIMIT_S = 60.0
"""Between one stage and the next there is little to do."""

ENDING_LIMIT_S = 5.0
"""A worker that is told to end, or has told all, is given this long."""

_LINES_SAID = 3
_LONGEST_WAIT_S = 1e6


@frozen
class Worker:
    """A worker process to be.

    ``module`` is what Python runs, ``job`` the noun it is given. ``start_limit_s`` bounds the
    seconds until its first stage. ``environment`` is set besides the variables of this process.
    """

    module: str
    job: object
    start_limit_s: float
    environment: Mapping[str, str] = field(default_factory=dict)


@frozen
class Outcome:
    """How a worker ended.

    ``in_time`` is false where a stage took longer than its limit. ``exit_code`` is below 0 where a
    signal ended it. ``said`` are the last lines of its standard error.
    """

    in_time: bool
    exit_code: int
    said: Names

    @property
    def how(self) -> str:
        """How it ended, in words that follow its name."""
        if self.exit_code >= 0:
            return f"ended with exit code {self.exit_code}"
        known = {one.value: one.name for one in signal.Signals}
        return f"was ended by signal {known.get(-self.exit_code, -self.exit_code)}"


Take = Callable[[Any], float | None]
"""Called with each event; returns the seconds of the stage that the event begins, or ``None``."""


def supervise(worker: Worker, take: Take) -> Outcome:
    """Run a worker to its end.

    Args:
        worker: what to run.
        take: called with each event. It returns the seconds that the stage may take which the
            event begins, or ``None`` if it begins none. What it raises ends the worker.

    Raises:
        KeyboardInterrupt: the user interrupted. The worker was asked to end, so that its driver
            frees the card, and then ended.
    """
    outcome = LiveWorker(worker).start(take)
    assert outcome is not None  # it has no orders to be ready for
    return outcome


@frozen
class Ready:
    """An event: the worker waits for the next order."""


class LiveWorker:
    """One worker process, and another one where that died.

    It ends with the thread that starts it. One thread at a time starts, asks and ends it.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended, as far as was heard of it."""
        return self._process is not None

    def start(self, take: Take) -> Outcome | None:
        """Start it and wait until it is ready; return how it ended if it ended instead."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._events, given = Pipe()
        with given:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                python(self._worker.module),
                stdin=given.fileno(),
                stdout=self._said,
                stderr=self._said,
                env=child_environment(self._worker.environment),
                **_ending_with_this_one(),
            )
        return self.ask(self._worker.job, take, limit_s=self._worker.start_limit_s)

    def ask(self, order: object, take: Take, *, limit_s: float) -> Outcome | None:
        """Give it an order and take what it tells until it is ready for the next.

        Args:
            order: a noun.
            take: called with each event but :class:`Ready`. What it raises ends the worker.
            limit_s: seconds until the first stage begins.

        Returns:
            ``None``, or how the worker ended if it did; it has to be started again then.
        """
        process = self._process
        assert process is not None
        self._deadline_s = time.monotonic() + limit_s
        try:
            with suppress(OSError):  # its end is told of below
                self._events.send(order)
            how = self._hear(take)
            if how == "ready":
                return None
            if how == "closed":
                _wait_for_end(process)  # its exit code is what tells of its end
            signal_group(process, signal.SIGKILL)
            code = process.wait()
        except BaseException:
            self._kill(asking=True)
            raise
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        said = tuple(map(str.strip, lines[-_LINES_SAID:]))
        self._kill(asking=False)
        return Outcome(in_time=how == "closed", exit_code=code, said=said)

    def stop(self) -> None:
        """Let it end now, from another thread; who waits for it learns how it ended."""
        process = self._process
        if process is not None:
            signal_group(process, signal.SIGTERM)

    def end(self) -> None:
        """End it: by closing its input at first, then by force."""
        process = self._process
        if process is not None:
            self._events.close()
            try:
                _wait_for_end(process)
            finally:
                self._kill(asking=False)

    def _hear(self, take: Take) -> Literal["ready", "closed", "late"]:
        """Take events; ``late`` is where a stage takes longer than its limit."""
        while True:
            left_s = self._deadline_s - time.monotonic()
            if not self._events.poll(max(0.0, min(left_s, _LONGEST_WAIT_S))):
                return "late"
            try:
                event = self._events.recv()
            except (EOFError, OSError):
                return "closed"
            if isinstance(event, Ready):
                return "ready"
            limit_s, now_s = take(event), time.monotonic()
            between_s = max(self._deadline_s, now_s + BETWEEN_LIMIT_S)
            self._deadline_s = between_s if limit_s is None else now_s + limit_s

    def _kill(self, *, asking: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if asking:
            signal_group(process, signal.SIGTERM)
            _wait_for_end(process)
        signal_group(process, signal.SIGKILL)
        self._events.close()
        process.wait()
        self._said.close()


def python(module: str) -> list[str]:
    """Return the command line that runs a module."""
    return [sys.executable, "-m", module]


def _ending_with_this_one() -> dict[str, Any]:
    """Return how a process is started that leads a group, and ends with this one."""
    return {"start_new_session": True, "preexec_fn": partial(end_with, os.getpid())}


def child_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a child finds the same modules."""
    paths = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)])
    return {**os.environ, **added, "PYTHONPATH": paths}


def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Give a worker that is ending a little time for it."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING_LIMIT_S)


def signal_group(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Send a signal to a process that leads a group, and to what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def run_bounded(
    command: Sequence[str],
    folder: str | Path,
    limit_s: float,
    given: str = "",
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a program that ends with this process, and everything it starts with it.

    Args:
        command: what to run.
        folder: where.
        limit_s: seconds it may take.
        given: its standard input.
        environment: all its variables; by default those of this process.

    Returns:
        Its exit code and what it said, on standard output and standard error.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer, and was ended.
    """
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        **_ending_with_this_one(),
    ) as process:
        try:
            said, _ = process.communicate(given, timeout=limit_s)
        except BaseException:
            signal_group(process, signal.SIGKILL)
            raise
    return process.returncode, said


def end_at_sigterm() -> None:
    """Let SIGTERM end this process as an exception does, so that what it started is ended too."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def connect(
    job: type[J], order: type[O] | None = None
) -> tuple[J, Iterator[O], Callable[[object], None]]:
    """Return, in a worker, its job, its orders as they come, and what tells of events.

    The orders end when nobody is left who gives any. Asking for the next one tells that the worker
    is ready.

    Args:
        job: the noun of the job.
        order: the noun of an order, where there are any.
    """
    parent = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what the worker starts has nothing to read

    def taken(kind: type[T]) -> T:
        found = parent.recv()
        assert isinstance(found, kind)
        return found

    def orders() -> Iterator[O]:
        with suppress(EOFError):
            while order is not None:
                parent.send(Ready())
                yield taken(order)

    return taken(job), orders(), parent.send
