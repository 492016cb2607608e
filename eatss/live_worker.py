"""A worker process that takes one order after another, which it may crash or hang at.

Where :mod:`eatss.supervisor` runs one job to its end, this keeps a worker: what takes seconds to
set up, a card that is opened or a program that is analysed, is there for the next order. The
worker runs ``python -m MODULE``, calls :func:`serving`, and tells :class:`Ready` when it has
started and after each order.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from eatss.codec import decode, encode
from eatss.guard import guarded
from eatss.supervisor import (
    Hearing,
    Outcome,
    Worker,
    child_environment,
    emitter,
    outcome_of,
    signal_group,
    wait_for_end,
)

J = TypeVar("J")
O = TypeVar("O")  # noqa: E741 - an order

Take = Callable[[Any], float | None]
"""Called with each event; returns the seconds of the stage that the event begins, or ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
