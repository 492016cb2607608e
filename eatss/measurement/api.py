"""Variants in, ``Measurement``s out, and their ``Comparison`` beside a baseline.

They are measured in a worker, which is ended when it hangs. A variant that brings a worker down is
not tried again; a fresh worker measures the others anew. One that ends with no variant to blame
means that the card is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from eatss.base.diagnostics import Diagnostics, EatssError, input_error
from eatss.base.frozen import frozen
from eatss.base.supervisor import LiveWorker, Outcome
from eatss.base.text import equations
from eatss.measurement.assemble import (
    assemble,
    inverse,
    paired_ratio,
    ratio_of_estimates,
    source_hash_of,
)
from eatss.measurement.counters import find_ncu, with_counters, without
from eatss.measurement.job import (
    START,
    Bench,
    CardLost,
    Entered,
    Event,
    Job,
    OnProgress,
    Record,
    Records,
    Result,
)
from eatss.measurement.measurement import (
    Comparison,
    ComparisonRow,
    Measurement,
    Ratio,
    Status,
)
from eatss.measurement.meters.choose import METERS
from eatss.measurement.options import MeasureOptions, Variant, check_labels, check_numbers
from eatss.measurement.trials import run_trials
from eatss.program import load_program
from eatss.program.plan import stack_warnings
from eatss.verify.sizes import complete_sizes

if TYPE_CHECKING:
    from eatss.measurement.cupy_card import CupyCard

_SAID_CHARACTERS = 600

CUPY_CARD = "eatss.measurement.cupy_card:CupyCard"
"""The import path of the card of this machine."""


def measure_variants(
    variants: Sequence[Variant],
    options: MeasureOptions | None = None,
    *,
    progress: OnProgress = None,
    card: str | CupyCard | None = None,
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
    METERS.get(chosen.meter)
    check_numbers(chosen)
    records = Records(options=chosen, variants=_records(variants, chosen), on_progress=progress)
    try:
        if card is None or isinstance(card, str):
            _measure_in_workers(records, card or CUPY_CARD)
        elif records.left():
            _measure_here(records, card)
    except KeyboardInterrupt:
        if not records.windows:
            raise
    return tuple(
        assemble(records, record)
        for record in records.variants
        if record.result.ended or record.result.windows
    )


@frozen
class Measured:
    """Measurements of variants; ``interrupted`` says that Ctrl-C kept them from being all."""

    measurements: tuple[Measurement, ...]
    interrupted: bool


def measured(
    variants: Sequence[Variant],
    options: MeasureOptions,
    *,
    progress: OnProgress = None,
    card: str | CupyCard | None = None,
) -> Measured:
    """Measure variants of one program, with hardware counters where they are asked for.

    Raises:
        InputError: as :func:`measure`; ``EATSS-E050``: counters are asked for and there is no
            Nsight Compute.
        KeyboardInterrupt: the user interrupted before anything was measured.
    """
    ncu = find_ncu() if options.counters else None
    found = list(measure_variants(variants, options, progress=progress, card=card))
    interrupted = len(found) < len(variants)
    interrupted |= any(one.method.ended == "interrupted" for one in found)
    folders = {variant.label: variant.directory for variant in variants}
    for place, one in enumerate(found):
        if ncu is None:
            break
        if not interrupted:
            try:
                found[place] = with_counters(one, folders[one.variant], options, ncu=ncu)
                continue
            except KeyboardInterrupt:
                interrupted = True
        found[place] = without(one, "interrupted before they were read")
    return Measured(measurements=tuple(found), interrupted=interrupted)


def stack_warnings_of(measurements: Sequence[Measurement]) -> Diagnostics:
    """Return a warning for each kernel whose threads have much stack, right or wrong."""
    return tuple(
        warning
        for one in measurements
        for warning in stack_warnings(
            ((own.kernel, own.local_bytes) for own in one.resources or ()),
            of=one.variant,
        )
    )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came before there was a result; ``measurements`` are what was measured until then."""

    def __init__(self, measurements: tuple[Measurement, ...]) -> None:
        super().__init__("interrupted before the baseline was measured")
        self.measurements = measurements


def compared(found: Measured, baseline: str) -> Comparison:
    """Set what was measured beside a baseline.

    Raises:
        Interrupted: the baseline is not among it, since the user interrupted.
    """
    if found.interrupted and baseline not in [one.variant for one in found.measurements]:
        raise Interrupted(found.measurements)
    return compare(found.measurements, baseline)


def _records(variants: Sequence[Variant], options: MeasureOptions) -> list[Record]:
    """Return a record for each variant, those that were rejected already failed."""
    if not variants:
        raise input_error("EATSS-E045", "there is nothing to measure", hint="name a program")
    check_labels([variant.label for variant in variants])
    found = []
    for task, variant in enumerate(variants):
        program = None if variant.directory is None else load_program(variant.directory)
        sizes = {} if program is None else complete_sizes(program, options.sizes)
        result = Result(task=task)
        if program is None:
            reason = variant.rejection or "it could not be generated"
            result = result.failed("rejected by the model", reason)
        found.append(Record(variant=variant, program=program, sizes=sizes, result=result))
    return found


def _measure_here(records: Records, card: CupyCard) -> None:
    """Measure on a card of this process."""

    def emit(event: Event) -> None:
        if isinstance(event, EatssError):
            raise event
        if isinstance(event, CardLost):
            records.give_up(f"the card vanished: {event.reason}")
        records.take(event)

    options = records.options
    run_trials(card, options.meter, [Job(options=options, tasks=records.left())], emit)


def _measure_in_workers(records: Records, card: str) -> None:
    """Measure what is left of all variants; their records hold what was found.

    Raises:
        InputError: the machine cannot measure, as the first worker found.
        KeyboardInterrupt: the user interrupted; the worker has been ended.
    """
    while tasks := records.left():
        reason = _run_worker(card, Job(options=records.options, tasks=tasks), records)
        if len(records.left()) == len(tasks):  # no variant is to blame
            records.give_up(reason)


def _run_worker(card: str, job: Job, records: Records) -> str:
    """Run one worker to its end, blame the variant that ran if one did, and return why it ended.

    Raises:
        InputError: the machine cannot measure, and has never measured.
    """
    records.stage, records.last = START, None
    worker = LiveWorker(Bench(card=card, options=records.options).worker())
    try:
        outcome = worker.start(records.take) or worker.ask(job, records.take, limit_s=START.limit_s)
    finally:
        worker.end()
    if outcome is None:
        return ""
    match records.last:
        case EatssError() as refused if records.opened is None:
            raise refused
        case EatssError(message=reason) | CardLost(reason=reason):
            pass
        case _:
            status, reason = what_ended(records.stage, outcome)
            records.fail_running(status, reason)
    return f"the card vanished: {reason}"


def what_ended(did: Entered, outcome: Outcome) -> tuple[Status, str]:
    """Return the status of a variant that a worker ended with, and why it ended, in words.

    Args:
        did: the stage that it was in.
        outcome: how it ended.
    """
    if not outcome.in_time:
        return "timeout", f"'{did.stage}' did not end within {did.limit_s:g} s"
    said = " | ".join(outcome.said)[-_SAID_CHARACTERS:]
    how = f"the measuring process {outcome.how}" + (f": {said}" if said else "")
    return ("compile error" if did.stage == "compile" else "launch error"), how


Traits: TypeAlias = dict[str, str]
"""What makes results of two variants comparable, in words."""


def check_measurable(variants: Sequence[Variant], options: MeasureOptions) -> dict[str, Traits]:
    """Look at all programs before any is measured; return what they are by their labels.

    One that was rejected stands beside anything.

    Raises:
        InputError: ``EATSS-V0xx`` a folder holds no program, ``EATSS-V008`` the sizes are not a
            program's.
    """
    return {
        variant.label: _traits(variant.directory, options)
        for variant in variants
        if variant.directory is not None
    }


def _traits(directory: Path, options: MeasureOptions) -> Traits:
    program = load_program(directory)
    # without the definition of the type, which dtype tells, given or not
    given = (one for one in program.original.defines if one.partition("=")[2] != program.dtype)
    return {
        "program": program.name,
        "type": program.dtype,
        "definitions (-D)": " ".join(sorted(given)),
        "sizes": equations(complete_sizes(program, options.sizes).items(), " "),
        "original source, whose hashes are": source_hash_of(program, directory)[:12],
    }


def check_comparable(variants: Sequence[Variant], options: MeasureOptions) -> None:
    """Refuse variants of which none can be said to be faster than another.

    Raises:
        InputError: as :func:`check_measurable`; ``EATSS-E079`` they differ in program, type,
            original source, definitions or sizes.
    """
    found = check_measurable(variants, options)
    for label, first in list(found.items())[:1]:
        for other_label, other in found.items():
            for what, own in first.items():
                if own != other[what]:
                    raise input_error(
                        "EATSS-E079",
                        f"'{label}' and '{other_label}' differ in their {what}: {own or 'none'} "
                        f"and {other[what] or 'none'}",
                        hint="compare variants of one C file, of one type and at the same sizes; "
                        "to measure different programs use: eatss measure",
                    )


LEAST_PAIRS = 3
"""Fewer rounds than this are not compared in pairs: their spread says too little."""


def compare(measurements: Sequence[Measurement], baseline_label: str) -> Comparison:
    """Set variants of one program beside a baseline.

    Where both variants took turns, their n-th windows are of one round and are compared in pairs,
    as far as both have some. Otherwise, and where what restoring takes was subtracted (an error
    that all windows of a variant share), the intervals of the means are combined.

    Args:
        measurements: of one program, at the same sizes, in the order of the rows.
        baseline_label: the variant the others are compared with, one of them.
    """
    baseline = next(one for one in measurements if one.variant == baseline_label)
    return Comparison(
        program=baseline.program,
        baseline=baseline_label,
        rows=tuple(_row(one, baseline) for one in measurements),
        notes=tuple(
            f"'{one.variant}' and '{baseline_label}' differ in their kind of data: "
            f"{one.method.data or 'none'} and {baseline.method.data or 'none'}"
            for one in measurements
            if one.windows and baseline.windows and one.method.data != baseline.method.data
        ),
    )


def _row(measurement: Measurement, baseline: Measurement) -> ComparisonRow:
    slowdown, energy = (_ratio(measurement, baseline, what) for what in ("time_s", "energy_j"))
    ppw: Ratio | None = None
    if energy is not None and measurement.flops is not None and baseline.flops:
        ppw = inverse(energy, factor=measurement.flops / baseline.flops)
    return ComparisonRow(
        measurement=measurement,
        speedup=None if slowdown is None else inverse(slowdown),
        energy_ratio=energy,
        ppw_ratio=ppw,
    )


def _ratio(measurement: Measurement, baseline: Measurement, what: str) -> Ratio | None:
    """Return a variant's time or energy over the baseline's."""
    own, other = (
        (one.time_estimate if what == "time_s" else one.energy_estimate)
        if one.status in ("ok", "unstable")
        else None
        for one in (measurement, baseline)
    )
    if own is None or other is None:
        return None
    if measurement is baseline:
        return Ratio(value=1.0, low=1.0, high=1.0)
    pairs = _pairs(measurement, baseline, what)
    restored = "inside windows" in (measurement.method.restoring, baseline.method.restoring)
    if len(pairs) >= LEAST_PAIRS and not (restored and what == "energy_j"):
        own_values, other_values = zip(*pairs, strict=True)
        return paired_ratio(own_values, other_values)
    return ratio_of_estimates(own, other)


def _pairs(measurement: Measurement, baseline: Measurement, what: str) -> list[tuple[float, float]]:
    """Return the values of both variants in each round where both have one."""
    rounds = zip(measurement.windows, baseline.windows, strict=False)
    values = ((getattr(own, what), getattr(other, what)) for own, other in rounds)
    return [(own, other) for own, other in values if own is not None and other is not None]
