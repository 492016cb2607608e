"""What is known of a variant in, its ``Measurement`` out: work, estimates, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from eatss.frozen import frozen
from eatss.measurement.measurement import (
    CardState,
    DeviceInfo,
    Estimate,
    Measurement,
    Method,
    Missing,
    OperationCount,
    Status,
    Window,
)
from eatss.measurement.meters.interval_energy import power_contradiction
from eatss.measurement.provenance import make_provenance, package_revision, source_hash_of
from eatss.measurement.record import Record, Records
from eatss.measurement.statistics import energy_estimate, mean_estimate
from eatss.program import IntExpr, Program, Work, evaluate
from eatss.program.expression import Sizes

NOT_REPORTED = "the driver does not tell"

COMPARISON = "comparison with the original"
"""What is missing of a program that runs and was never compared with its C."""


def missing_values(records: Records, record: Record) -> tuple[Missing, ...]:
    """Return what has no value besides figures: meters, fields of the card, the comparison."""
    unchecked = "" if record.prepared is None else record.prepared.unchecked
    return (
        *([Missing(what=COMPARISON, reason=unchecked)] if unchecked else ()),
        *records.missing_meters,
        *missing_device_fields(records.device),
        *missing_state_fields(record.windows),
    )


def missing_device_fields(device: DeviceInfo | None) -> Iterator[Missing]:
    """Yield the fields of a card that could not be read."""
    if device is None:
        return
    for field in fields(device):
        if getattr(device, field.name) is None:
            yield Missing(what=f"device.{field.name}", reason=NOT_REPORTED)


def missing_state_fields(windows: Sequence[Window]) -> Iterator[Missing]:
    """Yield the fields of the card's state that some window lacks, each once."""
    states = [state for window in windows for state in (window.before, window.after)]
    for field in fields(CardState):
        lacking = sum(getattr(state, field.name) is None for state in states)
        if lacking:
            where = "" if lacking == len(states) else f" in {lacking} of {len(states)} readings"
            yield Missing(what=f"windows.{field.name}", reason=f"{NOT_REPORTED}{where}")


NOT_FLOPS = ("compare",)
"""Kinds of operations that are listed but, as is usual, not counted as FLOP."""


@frozen
class CountedWork:
    """Operations and bytes of one run, the sums over all entries; ``missing`` says what is not
    known and why. ``flops`` leaves out :data:`NOT_FLOPS`.
    """  # noqa: D205

    operations: tuple[OperationCount, ...] | None
    flops: int | None
    least_bytes: int | None
    missing: tuple[Missing, ...]


def count_work(program: Program | None, sizes: Sizes) -> CountedWork:
    """Return the work of one run of a program; of ``None``, one that could not be generated."""
    if program is None:
        return _unknown("nothing was generated")
    works = [entry.work for entry in program.entries]
    known = [work for work in works if work is not None]
    if len(known) < len(works) or not works:
        return _unknown("the launch plan does not count them; generate the program again")
    operations = _operations(known, sizes)
    least_bytes = _least_bytes(known, sizes)
    reason = "; ".join(note for work in known for note in work.notes)
    reason = reason or "the launch plan does not count them"
    missing = []
    if operations is None:
        missing = [Missing(what=what, reason=reason) for what in ("operations", "flops")]
    if least_bytes is None:
        missing.append(Missing(what="least_bytes", reason=reason))
    return CountedWork(
        operations=operations,
        flops=None if operations is None else _flops(operations),
        least_bytes=least_bytes,
        missing=tuple(missing),
    )


def _operations(works: Iterable[Work], sizes: Sizes) -> tuple[OperationCount, ...] | None:
    counts: dict[str, int] = {}
    for work in works:
        if work.operations is None:
            return None
        for operation in work.operations:
            count = evaluate(operation.count, sizes)
            counts[operation.kind] = counts.get(operation.kind, 0) + count
    return tuple(OperationCount(kind=kind, count=count) for kind, count in counts.items())


def _flops(operations: Iterable[OperationCount]) -> int:
    return sum(operation.count for operation in operations if operation.kind not in NOT_FLOPS)


def _least_bytes(works: Iterable[Work], sizes: Sizes) -> int | None:
    total = 0
    for work in works:
        expressions: tuple[IntExpr | None, ...] = (work.read_bytes, work.written_bytes)
        for expression in expressions:
            if expression is None:
                return None
            total += evaluate(expression, sizes)
    return total


def _unknown(reason: str) -> CountedWork:
    return CountedWork(
        operations=None,
        flops=None,
        least_bytes=None,
        missing=tuple(
            Missing(what=what, reason=reason) for what in ("operations", "flops", "least_bytes")
        ),
    )


UNSTABLE_FACTOR = 5.0
"""With an interval this many times wider than asked for, a variant counts as unstable."""

IDLE_DIFFERENCE = 0.1
"""Idle powers before and after that differ by this share of the first are worth a remark."""


def assemble(records: Records, record: Record) -> Measurement:
    """Return the measurement of a variant that ended, failed or was interrupted."""
    program, variant = record.program, record.variant
    missing = _Missing()
    values = _values(records, record, missing)
    status, reason = _status(records, record, values)
    work = count_work(program, record.sizes)
    missing.found.extend(work.missing)
    provenance = make_provenance(program, variant.directory, records.options)
    missing.add("revision", provenance.revision, package_revision()[1])
    missing.add(
        "source_hash", provenance.source_hash, source_hash_of(program, variant.directory)[1]
    )
    missing.add("text_hash", provenance.text_hash, "nothing was generated")
    missing.add("device", records.device, "no card was opened")
    missing.found.extend(missing_values(records, record))
    return Measurement(
        program=_program_name(records, record),
        variant=variant.label,
        status=status,
        reason=reason,
        sizes=tuple(record.sizes.items()),
        tile_sizes=()
        if program is None
        else tuple((kernel.name, kernel.tile_sizes) for kernel in program.kernels),
        dtype="" if program is None else program.dtype,
        time_s=values.time_s,
        energy_j=values.energy_j,
        net_energy_j=values.net_energy_j,
        power_w=values.power_w,
        idle_power_w=values.idle_power_w,
        idle_power_after_w=records.warm_idle_w,
        time_estimate=values.time,
        energy_estimate=values.energy,
        operations=work.operations,
        flops=work.flops,
        least_bytes=work.least_bytes,
        gflops=_rate(work.flops, values.time_s, "gflops", "time_s", missing),
        gflops_per_joule=_rate(
            work.flops, values.energy_j, "gflops_per_joule", "energy_j", missing
        ),
        method=_method(records, record),
        windows=tuple(record.windows),
        resources=record.resources,
        device=records.device,
        provenance=provenance,
        missing=tuple(missing.found),
        notes=tuple(record.notes) + values.notes,
    )


class _Missing:
    """Collects what has no value and why."""

    def __init__(self) -> None:
        self.found: list[Missing] = []

    def add(self, what: str, value: object, reason: str) -> None:
        """Note ``what`` if it has no value."""
        if value is None:
            self.found.append(Missing(what=what, reason=reason))


@frozen
class _Values:
    """What was measured of one run."""

    time: Estimate | None
    energy: Estimate | None
    idle_power_w: float | None
    notes: tuple[str, ...]

    @property
    def time_s(self) -> float | None:
        return None if self.time is None else self.time.mean

    @property
    def energy_j(self) -> float | None:
        return None if self.energy is None else self.energy.mean

    @property
    def power_w(self) -> float | None:
        """Power of the load: mean energy over mean time."""
        if self.time is None or self.energy is None:
            return None
        return self.energy.mean / self.time.mean

    @property
    def net_energy_j(self) -> float | None:
        if self.time is None or self.energy is None or self.idle_power_w is None:
            return None
        return self.energy.mean - self.idle_power_w * self.time.mean


def _powers(windows: Sequence[Window]) -> list[tuple[str, float]]:
    """Return the mean power that each meter tells of all windows together."""
    names = dict.fromkeys(one.meter for window in windows for one in window.readings)
    found = []
    for name in names:
        own = [one for window in windows for one in window.readings if one.meter == name]
        time_s = sum(one.span_s for one in own)
        if time_s > 0:
            found.append((name, sum(one.energy_j for one in own) / time_s))
    return found


def _values(records: Records, record: Record, missing: _Missing) -> _Values:
    notes: list[str] = []
    time, energy, why = None, None, record.reason
    if record.status is None and record.windows:
        confidence = records.options.confidence
        time = mean_estimate([window.time_s for window in record.windows], confidence)
        energy, why = _energy(records, record, notes)
        found = power_contradiction(_powers(record.windows))
        notes += [found] if found else []
    idle_w = records.warm_idle_w if records.idle_w is None else records.idle_w
    notes.extend(_idle_notes(records))
    if time is not None and _one_is_enough(records, time):
        notes.append("one window, as asked for: there is no interval")
    values = _Values(time=time, energy=energy, idle_power_w=idle_w, notes=tuple(notes))
    missing.add("time_s", time, why)
    missing.add("energy_j", energy, why)
    missing.add("power_w", energy, why)
    missing.add("idle_power_w", idle_w, records.no_idle)
    missing.add("idle_power_after_w", records.warm_idle_w, records.no_warm_idle)
    missing.add("net_energy_j", values.net_energy_j, why if energy is None else records.no_idle)
    return values


def _idle_notes(records: Records) -> Iterator[str]:
    cold_w, warm_w = records.idle_w, records.warm_idle_w
    if warm_w is None:
        return
    if cold_w is None:
        yield (
            f"the idle card was read only after the windows, warm, which net energy rests on "
            f"({records.no_idle})"
        )
    elif abs(warm_w - cold_w) > IDLE_DIFFERENCE * cold_w:
        yield (
            f"the idle card drew {cold_w:.4g} W before the windows and {warm_w:.4g} W after them; "
            "net energy rests on the first"
        )


def _energy(records: Records, record: Record, notes: list[str]) -> tuple[Estimate | None, str]:
    """Return the energy of a run, or ``None`` and why it is not known."""
    known = [window.energy_j for window in record.windows if window.energy_j is not None]
    reason = next((said for said in record.no_energy if said), records.no_meter)
    if not known:
        return None, reason
    estimate = energy_estimate(known, record.restoring_j, records.options.confidence)
    if estimate.mean <= 0:
        return None, "restoring the inputs takes as much as can be told of the whole"
    if len(known) < len(record.windows):
        notes.append(f"energy rests on {len(known)} of {len(record.windows)} windows: {reason}")
    return estimate, ""


def _status(records: Records, record: Record, values: _Values) -> tuple[Status, str]:
    if record.status is not None:
        return record.status, record.reason
    limit = UNSTABLE_FACTOR * records.options.target
    for name, estimate in (("time", values.time), ("energy", values.energy)):
        if estimate is None:
            continue
        wide = estimate.relative
        if wide is None and not _one_is_enough(records, estimate):
            return "unstable", f"{name} rests on one window, so nothing is known of its spread"
        if record.ended in ("budget", "cut short") and wide is not None and wide > limit:
            return "unstable", (
                f"after {len(record.windows)} windows {name} is known to ±{100 * wide:.1f} % only"
            )
    return "ok", ""


def _one_is_enough(records: Records, estimate: Estimate) -> bool:
    """Return whether the user asked for one window, which gives no interval."""
    return records.options.least_windows == 1 and estimate.count == 1


def _method(records: Records, record: Record) -> Method:
    options, prepared = records.options, record.prepared
    return Method(
        meter=records.meter,
        compiler=None if prepared is None else prepared.compiler,
        launched_by=None if prepared is None else prepared.launched_by,
        restoring="none" if prepared is None else prepared.restoring,
        confidence=options.confidence,
        target=options.target,
        least_window_s=options.least_window_s,
        least_updates=options.least_updates,
        warm_up_s=record.warm_up_s,
        seed=options.seed,
        checked=() if prepared is None else prepared.checked,
        ended=record.ended or "interrupted",
        data=None if prepared is None else prepared.data,
    )


def _rate(
    flops: int | None, divisor: float | None, what: str, divisor_name: str, missing: _Missing
) -> float | None:
    """Return 10^9 operations a second or a joule."""
    if not flops or divisor is None:
        unknown = f"{divisor_name if flops else 'flops'} is not known"
        missing.add(what, None, "no operation is of floating point" if flops == 0 else unknown)
        return None
    return flops / divisor / 1e9


def _program_name(records: Records, record: Record) -> str:
    """Return the program's name; of a variant without a program that of the others."""
    known = [r.program.name for r in (record, *records.variants) if r.program is not None]
    return known[0] if known else ""
