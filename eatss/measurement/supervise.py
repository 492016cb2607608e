"""Keeps a worker at work: gives it a job, hears it out, ends it when it hangs, starts another.

A variant that brings a worker down is not tried again; the windows of the others stay, and a
fresh worker goes on with them. Two fresh workers in a row that get nowhere mean that the card is
gone.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eatss.codec import encode
from eatss.diagnostics import Diagnostic, InputError
from eatss.guard import guarded
from eatss.measurement.job import (
    Broken,
    CardLost,
    Done,
    Entered,
    Event,
    Job,
    Refused,
    event_from_dict,
)
from eatss.measurement.progress import Progress
from eatss.measurement.record import Record, Records

START_LIMIT_S = 180.0
"""Until the first stage: importing libraries and opening the card."""

BETWEEN_LIMIT_S = 60.0
"""Between one stage and the next there is little to do."""

ENDING_LIMIT_S = 5.0
"""A worker that is told to end, or has told all, is given this long."""

LONGEST_WAIT_S = 3600.0
"""Selectors take no wait of months; a longer one is several."""

FRUITLESS_WORKERS = 2
"""So many workers in a row that get nowhere, and the card is taken to be gone."""

_SAID_LINES = 3
_SAID_CHARACTERS = 600


def supervise(records: Records, card: str, progress: Callable[[Progress], None] | None) -> None:
    """Measure what is left of all variants; their records hold what was found.

    Raises:
        InputError: the machine cannot measure, as the first worker found.
        KeyboardInterrupt: the user interrupted; the worker has been ended.
    """
    begin_s = time.monotonic()
    fruitless = 0
    while (tasks := records.left()) and fruitless < FRUITLESS_WORKERS:
        job = Job(
            card=card,
            options=records.options,
            tasks=tasks,
            elapsed_s=time.monotonic() - begin_s,
            meter=records.meter,
            idle_known=records.idle_asked,
        )
        windows = records.windows
        ending = _run_worker(job, records, progress)
        if ending.refused is not None and records.device is None:
            raise _input_error(ending.refused)
        records.stage = None
        stuck = len(records.left()) == len(tasks) and records.windows == windows
        fruitless = fruitless + 1 if stuck else 0
        if fruitless == FRUITLESS_WORKERS:
            why = "" if ending.broken else "the card vanished: "
            records.give_up(f"{why}{ending.reason}")


@dataclass(slots=True)
class _Ending:
    """How a worker ended."""

    done: bool = False
    refused: Refused | None = None
    broken: bool = False
    reason: str = ""


def _input_error(refused: Refused) -> InputError:
    return InputError(Diagnostic(code=refused.code, message=refused.message, hint=refused.hint))


def _run_worker(job: Job, records: Records, progress: Callable[[Progress], None] | None) -> _Ending:
    """Run one worker to its end and note whom to blame for it."""
    records.stage = None
    ending = _Ending()
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - our own command line
            guarded([sys.executable, "-m", "eatss.measurement.worker"]),
            stdin=_filled(given, json.dumps(encode(job))),
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env=_environment(),
        ) as worker,
    ):
        try:
            in_time = _converse(worker, records, ending, progress)
            if in_time:
                _wait(worker)  # it may still be ending, and its exit code is what tells of it
        except KeyboardInterrupt:
            _end(worker)
            raise
        finally:
            _kill(worker)
        code = worker.wait()
        if not ending.done:
            _note_end(records, ending, in_time=in_time, code=code, said=_tail(said))
    return ending


def _filled(file: IO[bytes], text: str) -> IO[bytes]:
    """Return a file to read ``text`` from: unlike a pipe, it takes all of it at once."""
    file.write(text.encode())
    file.seek(0)
    return file


def _environment() -> dict[str, str]:
    """Return an environment in which the worker finds the same eatss."""
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not known else f"{root}{os.pathsep}{known}"}


def _converse(
    worker: subprocess.Popen[bytes],
    records: Records,
    ending: _Ending,
    progress: Callable[[Progress], None] | None,
) -> bool:
    """Hear a worker out; false if a stage takes too long."""
    assert worker.stdout is not None
    pending = b""
    deadline_s = time.monotonic() + START_LIMIT_S
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        while True:
            left_s = max(0.0, deadline_s - time.monotonic())
            if not selector.select(min(left_s, LONGEST_WAIT_S)):
                if left_s <= LONGEST_WAIT_S:
                    return False
                continue
            chunk = os.read(worker.stdout.fileno(), 1 << 16)
            if not chunk:
                return True
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                event = event_from_dict(json.loads(line))
                _take(event, records, ending)
                deadline_s = _deadline_s(event, deadline_s)
                if progress is not None:
                    progress(records.progress())


def _deadline_s(event: Event, deadline_s: float) -> float:
    """Return when the next event is due."""
    now_s = time.monotonic()
    if isinstance(event, Entered):
        return now_s + event.limit_s
    return max(deadline_s, now_s + BETWEEN_LIMIT_S)


def _take(event: Event, records: Records, ending: _Ending) -> None:
    if isinstance(event, Done):
        ending.done = True
    elif isinstance(event, Refused):
        ending.refused, ending.reason = event, event.message
    elif isinstance(event, CardLost):
        ending.reason = event.reason
    elif isinstance(event, Broken):
        _take_fault(event, records, ending)
    else:
        records.take(event)


def _take_fault(event: Broken, records: Records, ending: _Ending) -> None:
    """Note that eatss itself failed, and fail the variant that ran, if one did."""
    stage = "start" if records.stage is None else records.stage.stage
    ending.broken = True
    ending.reason = f"eatss failed in '{stage}', please report it: {event.error}"
    running = records.running
    if running is not None and running.ended is None:
        running.fail("launch error", ending.reason)


def _note_end(records: Records, ending: _Ending, *, in_time: bool, code: int, said: str) -> None:
    """Note why a worker ended before it was done, and fail the variant that ran, if one did."""
    running = records.running
    if ending.reason:
        return  # the worker told, and told of the variant before
    if not in_time:
        limit_s = START_LIMIT_S if records.stage is None else records.stage.limit_s
        stage = "start" if records.stage is None else records.stage.stage
        ending.reason = f"'{stage}' did not end within {limit_s:g} s"
        if running is not None and running.ended is None:
            running.fail("timeout", ending.reason)
        return
    ending.reason = _how_it_ended(code, said)
    if running is not None and running.ended is None:
        _blame(records, running, ending.reason)


def _blame(records: Records, running: Record, reason: str) -> None:
    compiling = records.stage is not None and records.stage.stage == "compile"
    running.fail("compile error" if compiling else "launch error", reason)


def _how_it_ended(code: int, said: str) -> str:
    if code < 0:
        try:
            how = f"was ended by signal {signal.Signals(-code).name}"
        except ValueError:
            how = f"was ended by signal {-code}"
    else:
        how = f"ended with exit code {code}"
    return f"the measuring process {how}" + (f": {said}" if said else "")


def _tail(said: IO[bytes]) -> str:
    """Return the last lines a worker wrote to standard error."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return " | ".join(line.strip() for line in lines[-_SAID_LINES:])[-_SAID_CHARACTERS:]


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Ask a worker, and what it started, to end; its driver then frees the card."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGTERM)
    _wait(worker)


def _wait(worker: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        worker.wait(ENDING_LIMIT_S)


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """End a worker, and compilers and meters it started."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
