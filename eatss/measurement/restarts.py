"""Keeps a worker at work: gives it a job, hears it out, ends it when it hangs, starts another.

A variant that brings a worker down is not tried again; the windows of the others stay, and a
fresh worker goes on with them. Two fresh workers in a row that get nowhere mean that the card is
gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from eatss.measurement.job import EVENTS, Broken, CardLost, Done, Entered, Event, Job
from eatss.measurement.measurement import Status
from eatss.measurement.meters.choose import METERS
from eatss.measurement.progress import Progress
from eatss.measurement.record import Records
from eatss.supervisor import Outcome, Refused, Worker, supervise

START_LIMIT_S = 180.0
"""Until the first stage: importing libraries and opening the card."""

FRUITLESS_WORKERS = 2
"""So many workers in a row that get nowhere, and the card is taken to be gone."""

_SAID_CHARACTERS = 600


def measure_in_workers(
    records: Records, card: str, progress: Callable[[Progress], None] | None
) -> None:
    """Measure what is left of all variants; their records hold what was found.

    Raises:
        InputError: the machine cannot measure, as the first worker found; or a worker has no way to
            import the meter (``EATSS-X009``).
        KeyboardInterrupt: the user interrupted; the worker has been ended.
    """
    begin_s = time.monotonic()
    meter_origin = METERS.origin(records.options.meter)
    fruitless = 0
    while (tasks := records.left()) and fruitless < FRUITLESS_WORKERS:
        job = Job(
            card=card,
            options=records.options,
            tasks=tasks,
            elapsed_s=time.monotonic() - begin_s,
            meter=records.meter,
            idle_known=records.idle_asked,
            meter_origin=meter_origin,
        )
        windows = records.windows
        ending = _run_worker(job, records, progress)
        if ending.refused is not None and records.device is None:
            raise ending.refused.error()
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


def _run_worker(job: Job, records: Records, progress: Callable[[Progress], None] | None) -> _Ending:
    """Run one worker to its end and note whom to blame for it."""
    records.stage = None
    ending = _Ending()

    def take(event: Event) -> float | None:
        _take(event, records, ending)
        if progress is not None:
            progress(records.progress())
        return event.limit_s if isinstance(event, Entered) else None

    outcome = supervise(
        Worker(
            module="eatss.measurement.worker", job=job, events=EVENTS, start_limit_s=START_LIMIT_S
        ),
        take,
    )
    if not ending.done:
        _note_end(records, ending, outcome)
    return ending


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


def _note_end(records: Records, ending: _Ending, outcome: Outcome) -> None:
    """Note why a worker ended before it was done, and fail the variant that ran, if one did."""
    running = records.running
    if ending.reason:
        return  # the worker told, and told of the variant before
    status, ending.reason = what_ended(records.stage, outcome)
    if running is not None and running.ended is None:
        running.fail(status, ending.reason)


def what_ended(stage: Entered | None, outcome: Outcome) -> tuple[Status, str]:
    """Return the status of a variant that a worker ended with, and why it ended, in words.

    Args:
        stage: what it did last, ``None`` if it had only been started.
        outcome: how it ended.
    """
    if not outcome.in_time:
        limit_s = START_LIMIT_S if stage is None else stage.limit_s
        name = "start" if stage is None else stage.stage
        return "timeout", f"'{name}' did not end within {limit_s:g} s"
    compiling = stage is not None and stage.stage == "compile"
    return ("compile error" if compiling else "launch error"), _how_it_ended(outcome)


def _how_it_ended(outcome: Outcome) -> str:
    said = " | ".join(outcome.said)[-_SAID_CHARACTERS:]
    return f"the measuring process {outcome.how}" + (f": {said}" if said else "")
