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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from eatss.codec import decode, encode
from eatss.diagnostics import Diagnostic, EatssError, InputError
from eatss.guard import guarded

J = TypeVar("J")

BETWEEN_LIMIT_S = 60.0
"""Between one stage and the next there is little to do."""

ENDING_LIMIT_S = 5.0
"""A worker that is told to end, or has told all, is given this long."""

LONGEST_WAIT_S = 3600.0
"""Selectors take no wait of months; a longer one is several."""

_LINES_SAID = 3


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
