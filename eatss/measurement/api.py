"""Variants in, ``Measurement``s out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eatss.diagnostics import InputError, input_error
from eatss.measurement.assemble import assemble
from eatss.measurement.card import Card
from eatss.measurement.job import CardLost, Event, Job
from eatss.measurement.measurement import Measurement
from eatss.measurement.meters.choose import METERS
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.progress import Progress
from eatss.measurement.record import Record, Records
from eatss.measurement.restarts import measure_in_workers
from eatss.measurement.sizes import complete_sizes
from eatss.measurement.trials import run_trials
from eatss.program import load_program
from eatss.supervisor import Refused

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
