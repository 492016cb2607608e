"""Runs a job in a worker process, which may crash or hang, and says how the worker ended.

The job, a noun, goes to ``python -m MODULE`` as JSON on standard input. The worker calls
:func:`connect` and tells of events, nouns too: one JSON object a line on its standard output. It
leads a group, with the compilers and meters that it starts, and the group ends with it, and with
this process (:mod:`eatss.guard`).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import field
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal, NoReturn, TypeVar

from eatss.codec import decode, encode
from eatss.diagnostics import Diagnostic, EatssError, InputError
from eatss.frozen import frozen
from eatss.guard import guarded

J = TypeVar("J")

BETWEEN_LIMIT_S = 60.0
"""Between one stage and the next there is little to do."""

ENDING_LIMIT_S = 5.0
"""A worker that is told to end, or has told all, is given this long."""

LONGEST_WAIT_S = 3600.0
"""Selectors take no wait of months; a longer one is several."""

_LINES_SAID = 3


@frozen
class Worker:
    """A worker process to be.

    ``module`` is what Python runs, ``job`` the noun it is given, ``events`` the nouns it may emit
    of. ``start_limit_s`` bounds the seconds until its first stage. ``environment`` is set besides
    the variables of this process.
    """

    module: str
    job: object
    events: tuple[type[Any], ...]
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
    said: tuple[str, ...]

    @property
    def how(self) -> str:
        """How it ended, in words that follow its name."""
        if self.exit_code >= 0:
            return f"ended with exit code {self.exit_code}"
        try:
            return f"was ended by signal {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"was ended by signal {-self.exit_code}"


@frozen
class Refused:
    """An event of any worker: the user's mistake, or a machine on which it cannot work."""

    code: str
    message: str
    hint: str | None

    @classmethod
    def because(cls, error: EatssError) -> Refused:
        """Return the event that tells of an error."""
        first = error.diagnostics[0]
        return cls(code=first.code, message=first.message, hint=first.hint)

    def error(self) -> InputError:
        """Return the error to raise."""
        return InputError(Diagnostic(code=self.code, message=self.message, hint=self.hint))


def supervise(worker: Worker, take: Callable[[Any], float | None]) -> Outcome:
    """Run a worker to its end.

    Args:
        worker: what to run.
        take: called with each event. It returns the seconds that the stage may take which the
            event begins, or ``None`` if it begins none. What it raises ends the worker.

    Raises:
        KeyboardInterrupt: the user interrupted. The worker was asked to end, so that its driver
            frees the card, and then ended.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - our own command line
            guarded([sys.executable, "-m", worker.module]),
            stdin=_filled(given, json.dumps(encode(worker.job))),
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env=child_environment(worker.environment),
        ) as process,
    ):
        try:
            in_time = _hear_out(process, worker, take)
            if in_time:
                wait_for_end(
                    process
                )  # it may still be ending, and its exit code is what tells of it
        except KeyboardInterrupt:
            signal_group(process, signal.SIGTERM)
            wait_for_end(process)
            raise
        finally:
            signal_group(process, signal.SIGKILL)
        return outcome_of(process.wait(), said, in_time=in_time)


def outcome_of(code: int, said: IO[bytes], *, in_time: bool) -> Outcome:
    """Return how a worker ended, from its exit code and its standard error."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    last = tuple(line.strip() for line in lines[-_LINES_SAID:])
    return Outcome(in_time=in_time, exit_code=code, said=last)


def _filled(file: IO[bytes], text: str) -> IO[bytes]:
    """Return a file to read ``text`` from: unlike a pipe, it takes all of it at once."""
    file.write(text.encode())
    file.seek(0)
    return file


def child_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a child finds the same eatss."""
    root = str(Path(__file__).resolve().parents[1])
    known = os.environ.get("PYTHONPATH")
    paths = root if not known else f"{root}{os.pathsep}{known}"
    return {**os.environ, **added, "PYTHONPATH": paths}


class Hearing:
    """What a worker tells, event by event, until it closes its output.

    Args:
        output: the file descriptor that it writes to.
        events: the nouns that it tells.
        limit_s: seconds until its first stage.
    """

    def __init__(self, output: int, events: tuple[type[Any], ...], limit_s: float) -> None:
        self._output = output
        self._kinds = {kind.__name__: kind for kind in events}
        self._lines: list[bytes] = []
        self._pending = b""
        self._deadline_s = time.monotonic() + limit_s

    def allow(self, limit_s: float) -> None:
        """Give the worker so many seconds from now until it tells something."""
        self._deadline_s = time.monotonic() + limit_s

    def hear(
        self,
        take: Callable[[Any], float | None],
        until: Callable[[Any], bool] = lambda event: False,
    ) -> Literal["told", "closed", "late"]:
        """Take events.

        Args:
            take: as for :func:`supervise`.
            until: whether an event is the last to take.

        Returns:
            ``told`` after that event, ``closed`` after the last of all, ``late`` where a stage
            takes longer than its limit.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while True:
                while self._lines:
                    if self._take(self._lines.pop(0), take, until):
                        return "told"
                left_s = max(0.0, self._deadline_s - time.monotonic())
                if not selector.select(min(left_s, LONGEST_WAIT_S)):
                    if left_s <= LONGEST_WAIT_S:
                        return "late"
                    continue
                chunk = os.read(self._output, 1 << 16)
                if not chunk:
                    return "closed"
                *self._lines, self._pending = (self._pending + chunk).split(b"\n")

    def _take(
        self, line: bytes, take: Callable[[Any], float | None], until: Callable[[Any], bool]
    ) -> bool:
        document = json.loads(line)
        event = decode(self._kinds[document["event"]], document)
        limit_s = take(event)
        now_s = time.monotonic()
        if limit_s is None:
            self._deadline_s = max(self._deadline_s, now_s + BETWEEN_LIMIT_S)
        else:
            self._deadline_s = now_s + limit_s
        return until(event)


def _hear_out(
    process: subprocess.Popen[bytes], worker: Worker, take: Callable[[Any], float | None]
) -> bool:
    """Take a worker's events until it closes its output; false if a stage takes too long."""
    assert process.stdout is not None
    hearing = Hearing(process.stdout.fileno(), worker.events, worker.start_limit_s)
    return hearing.hear(take) == "closed"


def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Give a worker that is ending a little time for it."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING_LIMIT_S)


def signal_group(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Send a signal to a process that leads a group, and to what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def end_at_sigterm() -> None:
    """Let SIGTERM end this process as an exception does, so that what it started is ended too."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def connect(
    kind: type[J], *, printed_to: int, finite: bool = True
) -> tuple[J, Callable[[object], None]]:
    """Return, in a worker, its job and what tells the supervisor of events.

    Args:
        kind: the noun of the job.
        printed_to: the file that gets what compilers, libraries and foreign code print to
            standard output, which is no event.
        finite: whether numbers of events that are infinite or none are a mistake.
    """
    emit = emitter(printed_to=printed_to, finite=finite)
    return decode(kind, json.load(sys.stdin)), emit


def emitter(*, printed_to: int, finite: bool = True) -> Callable[[object], None]:
    """Return, in a worker, what tells the supervisor of events; as :func:`connect`."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(printed_to, 1)

    def emit(event: object) -> None:
        document = {"event": type(event).__name__, **encode(event)}
        output.write(json.dumps(document, allow_nan=not finite) + "\n")
        output.flush()

    return emit


O = TypeVar("O")  # noqa: E741 - an order

Take = Callable[[Any], float | None]
"""Called with each event; returns the seconds of the stage that the event begins, or ``None``."""


@frozen
class Ready:
    """An event: the worker waits for the next order."""


class LiveWorker:
    """One worker process. Start, ask and end it from one thread: it ends with that thread.

    Args:
        worker: what to run; :class:`Ready` need not be among its events.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._open = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, take: Take) -> Outcome | None:
        """Start it and wait until it is ready; return how it ended if it ended instead."""
        said = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        process = self._open.enter_context(
            subprocess.Popen(  # noqa: S603 - our own command line
                guarded([sys.executable, "-m", self._worker.module]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
                env=child_environment(self._worker.environment),
            )
        )
        assert process.stdout is not None
        self._process, self._said = process, said
        kinds = (*self._worker.events, Ready)
        self._hearing = Hearing(process.stdout.fileno(), kinds, self._worker.start_limit_s)
        return self._told(self._worker.job, self._worker.start_limit_s, take)

    def ask(self, order: object, take: Take, *, limit_s: float) -> Outcome | None:
        """Give it an order and take what it tells until it is ready for the next.

        Args:
            order: a noun.
            take: called with each event but :class:`Ready`. What it raises ends the worker.
            limit_s: seconds until the first stage begins.

        Returns:
            ``None``, or how the worker ended if it did; it has to be started again then.
        """
        return self._told(order, limit_s, take)

    def stop(self) -> None:
        """Let it end now, from another thread; who waits for it learns how it ended."""
        process = self._process
        if process is not None:
            signal_group(process, signal.SIGTERM)

    def end(self) -> None:
        """End it: by closing its input at first, then by force."""
        process = self._process
        if process is None:
            return
        self._process = None
        try:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            wait_for_end(process)
        finally:
            signal_group(process, signal.SIGKILL)
            self._open.close()

    def _told(self, noun: object, limit_s: float, take: Take) -> Outcome | None:
        assert self._process is not None
        assert self._process.stdin is not None

        def hear(event: Any) -> float | None:
            return None if isinstance(event, Ready) else take(event)

        try:
            self._hearing.allow(limit_s)
            with suppress(BrokenPipeError):  # its end is told of below
                _send(self._process.stdin.fileno(), json.dumps(encode(noun)).encode() + b"\n")
            how = self._hearing.hear(hear, lambda event: isinstance(event, Ready))
        except BaseException:
            self._kill(asking=True)
            raise
        return None if how == "told" else self._ended(in_time=how == "closed")

    def _ended(self, *, in_time: bool) -> Outcome:
        assert self._process is not None
        if in_time:
            wait_for_end(self._process)
        process = self._process
        signal_group(process, signal.SIGKILL)
        outcome = outcome_of(process.wait(), self._said, in_time=in_time)
        self._kill(asking=False)
        return outcome

    def _kill(self, *, asking: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if asking:
            signal_group(process, signal.SIGTERM)
            wait_for_end(process)
        signal_group(process, signal.SIGKILL)
        self._open.close()


def _send(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def serving(
    job: type[J], order: type[O], *, printed_to: int = 2, finite: bool = True
) -> tuple[J, Iterator[O], Callable[[object], None]]:
    """Return, in a worker, its job, its orders as they come, and what tells of events.

    The orders end when nobody is left who gives any. Asking for the next one tells that the worker
    is ready.

    Args:
        job: the noun of the job.
        order: the noun of an order.
        printed_to: as for :func:`eatss.supervisor.connect`, like ``finite``.
        finite: whether numbers of events that are infinite or none are a mistake.
    """
    emit = emitter(printed_to=printed_to, finite=finite)
    given = decode(job, json.loads(sys.stdin.readline()))

    def orders() -> Iterator[O]:
        while True:
            emit(Ready())
            line = sys.stdin.readline()
            if not line:
                return
            yield decode(order, json.loads(line))

    return given, orders(), emit
