"""Variants in, ``Measurement``s out: in workers, which are started again where they end.

Keeps a worker at work: gives it a job, hears it out, ends it when it hangs, starts another.

A variant that brings a worker down is not tried again; the windows of the others stay, and a
fresh worker goes on with them. Two fresh workers in a row that get nowhere mean that the card is
gone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from eatss.base.diagnostics import input_error
from eatss.base.supervisor import Outcome, Refused, Worker, supervise
from eatss.measurement.assemble import assemble
from eatss.measurement.card import Card
from eatss.measurement.job import EVENTS, Broken, CardLost, Done, Entered, Event, Job, OnProgress
from eatss.measurement.launches import complete_sizes
from eatss.measurement.measurement import Measurement, Status
from eatss.measurement.meters.choose import METERS
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.record import START, Record, Records
from eatss.measurement.trials import run_trials
from eatss.program import load_program

FRUITLESS_WORKERS = 2
"""So many workers in a row that get nowhere, and the card is taken to be gone."""

_SAID_CHARACTERS = 600

CUPY_CARD = "eatss.measurement.cupy_card:CupyCard"
"""The import path of the card of this machine."""


def measure_variants(
    variants: Sequence[Variant],
    options: MeasureOptions | None = None,
    *,
    progress: OnProgress = None,
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
            _measure_in_workers(records, card or CUPY_CARD, progress)
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


_POSITIVE = {
    "target": "--target",
    "least_window_s": "--window",
    "budget_s": "--budget",
    "timeout_s": "--timeout",
    "least_updates": "--updates",
    "least_windows": "--windows",
}
"""Fields of the options that are above 0, with what they are called on the command line."""


def check_options(options: MeasureOptions) -> None:
    """Refuse options that make no sense.

    Raises:
        InputError: ``EATSS-E075``; ``EATSS-X005`` there is no such meter.
    """
    METERS.get(options.meter)
    infinity, device = float("inf"), options.device
    for name, option, holds, range_text in (
        ("confidence", "", 0 < options.confidence < 1, "between 0 and 1, like 0.95"),
        *(
            (name, option, 0 < getattr(options, name) < infinity, "above 0")
            for name, option in _POSITIVE.items()
        ),
        ("warm_up_s", "", 0 <= options.warm_up_s < infinity, "0 or above"),
        ("device", "--device", isinstance(device, str) or device >= 0, "0 or above"),
    ):
        if not holds:
            called = f"{name} ({option})" if option else name
            raise input_error(
                "EATSS-E075",
                f"{called} is {getattr(options, name):g}",
                hint=f"give a number that is {range_text}",
            )


def _records(variants: Sequence[Variant], options: MeasureOptions) -> list[Record]:
    """Return a record for each variant, those that were rejected already failed."""
    if not variants:
        raise input_error("EATSS-E076", "there is nothing to measure", hint="name a program")
    for label, many in Counter(variant.label for variant in variants).items():
        if many > 1:
            raise input_error(
                "EATSS-E077",
                f"two variants are called '{label}'",
                hint="results are told apart by their labels; rename one",
            )
    found: list[Record] = []
    for variant in variants:
        program = None if variant.directory is None else load_program(variant.directory)
        sizes = {} if program is None else complete_sizes(program, options.sizes)
        record = Record(variant=variant, program=program, sizes=sizes)
        if program is None:
            reason = variant.rejection or "it could not be generated"
            record.fail("rejected by the model", reason)
        found.append(record)
    return found


def _measure_here(records: Records, card: Card, progress: OnProgress) -> None:
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


def _measure_in_workers(records: Records, card: str, progress: OnProgress) -> None:
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
        reason = _run_worker(job, records, progress)
        records.stage = None
        stuck = len(records.left()) == len(tasks) and records.windows == windows
        fruitless = fruitless + 1 if stuck else 0
        if fruitless == FRUITLESS_WORKERS:
            records.give_up(reason)


def _run_worker(job: Job, records: Records, progress: OnProgress) -> str:
    """Run one worker to its end, blame the variant that ran if one did, and return why it ended.

    Raises:
        InputError: the machine cannot measure, and has never measured.
    """
    records.stage = None
    told: Event | None = None

    def take(event: Event) -> float | None:
        nonlocal told
        if isinstance(event, Done | Refused | CardLost | Broken):
            told = event
        if isinstance(event, Broken):
            records.fail_running("launch error", _fault(event, records))
        records.take(event)
        if progress is not None:
            progress(records.progress())
        return event.limit_s if isinstance(event, Entered) else None

    outcome = supervise(
        Worker(
            module="eatss.measurement.worker", job=job, events=EVENTS, start_limit_s=START.limit_s
        ),
        take,
    )
    match told:
        case Refused() if records.device is None:
            raise told.error()
        case Done():
            reason = ""
        case Refused():
            reason = told.message
        case CardLost():
            reason = told.reason
        case Broken():
            return _fault(told, records)
        case _:
            status, reason = what_ended(records.stage, outcome)
            records.fail_running(status, reason)
    return f"the card vanished: {reason}"


def _fault(event: Broken, records: Records) -> str:
    """Say that eatss itself failed."""
    stage = (records.stage or START).stage
    return f"eatss failed in '{stage}', please report it: {event.error}"


def what_ended(stage: Entered | None, outcome: Outcome) -> tuple[Status, str]:
    """Return the status of a variant that a worker ended with, and why it ended, in words.

    Args:
        stage: what it did last, ``None`` if it had only been started.
        outcome: how it ended.
    """
    did = stage or START
    if not outcome.in_time:
        return "timeout", f"'{did.stage}' did not end within {did.limit_s:g} s"
    said = " | ".join(outcome.said)[-_SAID_CHARACTERS:]
    how = f"the measuring process {outcome.how}" + (f": {said}" if said else "")
    return ("compile error" if did.stage == "compile" else "launch error"), how
