"""Variants in, ``Measurement``s out: in workers, which are started again where they end.

Keeps a worker at work: gives it a job, hears it out, ends it when it hangs, starts another.

A variant that brings a worker down is not tried again; the windows of the others stay, and a
fresh worker goes on with them. Two fresh workers in a row that get nowhere mean that the card is
gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eatss.diagnostics import InputError, input_error
from eatss.measurement.assemble import assemble
from eatss.measurement.card import Card
from eatss.measurement.job import EVENTS, Broken, CardLost, Done, Entered, Event, Job, Progress
from eatss.measurement.launches import complete_sizes
from eatss.measurement.measurement import Measurement, Status
from eatss.measurement.meters.choose import METERS
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.record import Record, Records
from eatss.measurement.trials import run_trials
from eatss.program import load_program
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


CUPY_CARD = "eatss.measurement.cupy_card:CupyCard"
"""The import path of the card of this machine."""

_OPTIONS = {
    "target": "--target",
    "least_window_s": "--window",
    "budget_s": "--budget",
    "timeout_s": "--timeout",
    "least_updates": "--updates",
    "least_windows": "--windows",
    "device": "--device",
}
"""What the fields of the options are called on the command line."""


def measure_variants(
    variants: Sequence[Variant],
    options: MeasureOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    card: str | Card | None = None,
) -> tuple[Measurement, ...]:
    """Measure time and energy of variants by turns, so that drift of the card hits all alike.

    Ctrl-C keeps what is done: variants that have windows, or failed, are returned, with
    ``method.ended`` of those it cut short ``interrupted``.

    Args:
        variants: generated programs, each with a label of its own.
        options: how to measure.
        progress: called with what runs now, in the caller's thread.
        card: import path of what makes the card, ``package.module:name``; by default the card of
            this machine. It is held by a process of its own, which may crash or hang. A card
            itself is used in this process, without that protection.

    Returns:
        One measurement a variant, in their order; failures of a variant are statuses.

    Raises:
        InputError: the variants, sizes or options make no sense, or the machine cannot measure.
        KeyboardInterrupt: the user interrupted before anything was measured.
    """
    chosen = options or MeasureOptions()
    check_options(chosen)
    records = Records(options=chosen, variants=_records(variants, chosen))
    interrupted = False
    try:
        if card is None or isinstance(card, str):
            measure_in_workers(records, card or CUPY_CARD, progress)
        elif records.left():
            _measure_here(records, card, progress)
    except KeyboardInterrupt:
        if not records.windows:
            raise
        interrupted = True
    for record in records.variants:
        if interrupted and record.ended is None and record.windows:
            record.ended = "interrupted"
    return tuple(assemble(records, record) for record in records.variants if record.ended)


def check_options(options: MeasureOptions) -> None:
    """Refuse options that make no sense.

    Raises:
        InputError: ``EATSS-E075``; ``EATSS-X005`` there is no such meter.
    """
    METERS.get(options.meter)
    if not 0 < options.confidence < 1:
        raise _bad_option("confidence", options.confidence, "between 0 and 1, like 0.95")
    for name, value in (
        ("target", options.target),
        ("least_window_s", options.least_window_s),
        ("budget_s", options.budget_s),
        ("timeout_s", options.timeout_s),
        ("least_updates", options.least_updates),
        ("least_windows", options.least_windows),
    ):
        if not 0 < value < float("inf"):
            raise _bad_option(name, value, "above 0")
    if not 0 <= options.warm_up_s < float("inf"):
        raise _bad_option("warm_up_s", options.warm_up_s, "0 or above")
    if isinstance(options.device, int) and options.device < 0:
        raise _bad_option("device", options.device, "0 or above")


def _bad_option(name: str, value: float, range_text: str) -> InputError:
    option = f" ({_OPTIONS[name]})" if name in _OPTIONS else ""
    return input_error(
        "EATSS-E075", f"{name}{option} is {value:g}", hint=f"give a number that is {range_text}"
    )


def _records(variants: Sequence[Variant], options: MeasureOptions) -> list[Record]:
    """Return a record for each variant, those that were rejected already failed."""
    if not variants:
        raise input_error("EATSS-E076", "there is nothing to measure", hint="name a program")
    labels = [variant.label for variant in variants]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise input_error(
            "EATSS-E077",
            f"two variants are called '{twice}'",
            hint="results are told apart by their labels; rename one",
        )
    return [_record(variant, options) for variant in variants]


def _record(variant: Variant, options: MeasureOptions) -> Record:
    if variant.directory is None:
        record = Record(variant=variant, program=None, sizes={})
        record.fail("rejected by the model", variant.rejection or "it could not be generated")
        return record
    program = load_program(variant.directory)
    sizes = complete_sizes(program, options.sizes)
    return Record(variant=variant, program=program, sizes=sizes)


def _measure_here(
    records: Records, card: Card, progress: Callable[[Progress], None] | None
) -> None:
    """Measure on a card of this process."""

    def emit(event: Event) -> None:
        if isinstance(event, Refused):
            raise event.error()
        if isinstance(event, CardLost):
            records.give_up(f"the card vanished: {event.reason}")
        records.take(event)
        if progress is not None:
            progress(records.progress())

    run_trials(card, Job(card="", options=records.options, tasks=records.left()), emit)
