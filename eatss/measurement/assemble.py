"""What is known of a variant in, its ``Measurement`` out: work, estimates, and what is missing.

Means, differences and ratios of windows with Student's t intervals.

Windows are taken for independent and normal. As they are repeated until the interval is narrow,
which stops early where the spread happens to look small, a 95 % interval of one quantity covers
less than 95 % where windows scatter by more than half the target: 93 % at the target of 1 % and
windows that scatter by 1 %, 91 % at 2 %; where time and energy both have to be narrow, 94 % at
either (``benchmarks/interval_coverage.py``, 3 to 22 windows).

Where a measurement comes from: hashes of source and options.
"""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from pathlib import Path

import numpy as np

from eatss.base.cache import key_of
from eatss.base.diagnostics import input_error
from eatss.base.frozen import complete, frozen
from eatss.measurement.job import Record, Records, Result
from eatss.measurement.measurement import (
    DeviceInfo,
    Estimate,
    Measurement,
    Method,
    Missing,
    OperationCount,
    Provenance,
    Ratio,
    Status,
    Window,
)
from eatss.measurement.options import MeasureOptions
from eatss.program import Program, evaluate
from eatss.program.expression import IntExpr, Sizes
from eatss.version import __version__, package_revision

NOT_REPORTED = "the driver does not tell"

COMPARISON = "comparison with the original"
"""What is missing of a program that runs and was never compared with its C."""


def _unread(device: DeviceInfo | None, windows: Sequence[Window]) -> Iterator[Missing]:
    """Yield the fields of the card, and of its state under load, that could not be read."""
    loads = [one.during for one in windows if one.during is not None and one.during.samples]
    for where, nouns in (("device", [device] if device else []), ("windows", loads)):
        for field in fields(nouns[0]) if nouns else ():
            if all(getattr(noun, field.name) is None for noun in nouns):
                yield Missing(what=f"{where}.{field.name}", reason=NOT_REPORTED)


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
    works = (complete(entry.work for entry in program.entries) if program else None) or ()
    operations = complete(work.operations for work in works)
    sides: tuple[IntExpr, ...] | None
    sides = complete(side for work in works for side in (work.read_bytes, work.written_bytes))
    counts: Counter[str] | None = None
    least_bytes: int | None = None
    if works and operations is not None:
        counts = Counter()
        for one in chain(*operations):
            counts[one.kind] += evaluate(one.count, sizes)
    if works and sides is not None:
        least_bytes = sum(evaluate(side, sizes) for side in sides)
    why = "nothing was generated"
    if program is not None:
        why = "; ".join(note for work in works for note in work.notes)
        why = why or "the launch plan does not count them; generate the program again"
    listed = (counts or {}).items()
    return CountedWork(
        operations=None
        if counts is None
        else tuple(OperationCount(kind=kind, count=n) for kind, n in listed),
        flops=None if counts is None else sum(n for kind, n in listed if kind not in NOT_FLOPS),
        least_bytes=least_bytes,
        missing=_lacking(
            ("operations", counts, why), ("flops", counts, why), ("least_bytes", least_bytes, why)
        ),
    )


def _lacking(*rows: tuple[str, object, str]) -> tuple[Missing, ...]:
    """Return what of some rows (what, its value, why it might have none) has no value."""
    return tuple(Missing(what=what, reason=why) for what, value, why in rows if value is None)


UNSTABLE_FACTOR = 5.0
"""With an interval this many times wider than asked for, a variant counts as unstable."""


def assemble(records: Records, record: Record) -> Measurement:
    """Return the measurement of a variant that ended, failed or was interrupted."""
    program, directory, found = record.program, record.variant.directory, record.result
    options, opened = records.options, records.opened
    device = None if opened is None else opened.device
    idle_w = records.idle.power_w
    notes = list(found.notes)
    time: Estimate | None = None
    energy: Estimate | None = None
    why = found.reason
    if found.status is None and found.windows:
        time = mean_estimate([window.time_s for window in found.windows])
        energy, why = _energy(records, found, notes)
    if options.least_windows == 1 and time is not None and time.count == 1:
        notes.append("one window, as asked for: there is no interval")
    time_s = None if time is None else time.mean
    energy_j = power_w = net_energy_j = None
    if time is not None and energy is not None:
        energy_j, power_w = energy.mean, energy.mean / time.mean
        net_energy_j = None if idle_w is None else energy.mean - idle_w * time.mean
    status, reason = _status(records, found, time, energy)
    work = count_work(program, record.sizes)
    gflops, no_gflops = _rate(work.flops, time_s, "time_s")
    gflops_per_joule, no_efficiency = _rate(work.flops, energy_j, "energy_j")
    revision, no_revision = package_revision()
    source_hash = source_hash_of(program, directory) if program and directory else None
    names = [one.program.name for one in (record, *records.variants) if one.program is not None]
    return Measurement(
        program=names[0] if names else "",  # one without a program is of that of the others
        variant=record.variant.label,
        status=status,
        reason=reason,
        sizes=tuple(record.sizes.items()),
        tile_sizes=tuple((one.name, one.tile_sizes) for one in program.kernels) if program else (),
        dtype="" if program is None else program.dtype,
        time_s=time_s,
        energy_j=energy_j,
        net_energy_j=net_energy_j,
        power_w=power_w,
        idle_power_w=idle_w,
        time_estimate=time,
        energy_estimate=energy,
        operations=work.operations,
        flops=work.flops,
        least_bytes=work.least_bytes,
        gflops=gflops,
        gflops_per_joule=gflops_per_joule,
        method=Method(
            meter=None if opened is None else opened.meter,
            compiler=found.compiler,
            launched_by=found.launched_by,
            restoring=found.restoring,
            target=options.target,
            least_window_s=options.least_window_s,
            least_updates=options.least_updates,
            warm_up_s=found.warm_up_s,
            seed=options.seed,
            checked=found.checked,
            ended=found.ended or "interrupted",
            data=found.data,
        ),
        windows=found.windows,
        resources=found.resources,
        device=device,
        provenance=Provenance(
            eatss_version=__version__,
            revision=revision,
            source_hash=source_hash,
            text_hash=None if program is None else sha256(program.text.encode()).hexdigest(),
            option_hash=option_hash(program, options),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            host=platform.node(),
        ),
        missing=(
            *_lacking(
                ("time_s", time, why),
                ("energy_j", energy, why),
                ("power_w", energy, why),
                ("idle_power_w", idle_w, records.idle.reason),
                ("net_energy_j", net_energy_j, records.idle.reason if energy else why),
            ),
            *work.missing,
            *_lacking(
                ("revision", revision, no_revision),
                ("source_hash", source_hash, "nothing was generated"),
                ("text_hash", program, "nothing was generated"),
                ("device", device, "no card was opened"),
                (COMPARISON, None if found.unchecked else "", found.unchecked),
                ("gflops", gflops, no_gflops),
                ("gflops_per_joule", gflops_per_joule, no_efficiency),
            ),
            *(() if opened is None else opened.missing_meters),
            *_unread(device, found.windows),
        ),
        notes=tuple(notes),
    )


def _energy(records: Records, found: Result, notes: list[str]) -> tuple[Estimate | None, str]:
    """Return the energy of a run, or ``None`` and why it is not known."""
    known = [window.energy_j for window in found.windows if window.energy_j is not None]
    reason = found.no_energy or (records.opened.no_meter if records.opened else "")
    if not known:
        return None, reason
    estimate = energy_estimate(known, found.restoring_j)
    if estimate.mean <= 0:
        return None, "restoring the inputs takes as much as can be told of the whole"
    if len(known) < len(found.windows):
        notes.append(f"energy rests on {len(known)} of {len(found.windows)} windows: {reason}")
    return estimate, ""


def _status(
    records: Records, found: Result, time: Estimate | None, energy: Estimate | None
) -> tuple[Status, str]:
    if found.status is not None:
        return found.status, found.reason
    options = records.options
    for name, estimate in (("time", time), ("energy", energy)):
        if estimate is None:
            continue
        wide = estimate.relative
        if wide is None and (options.least_windows > 1 or estimate.count > 1):
            return "unstable", f"{name} rests on one window, so nothing is known of its spread"
        cut_short = found.ended in ("budget", "cut short")
        if cut_short and wide is not None and wide > UNSTABLE_FACTOR * options.target:
            return "unstable", (
                f"after {len(found.windows)} windows {name} is known to ±{100 * wide:.1f} % only"
            )
    return "ok", ""


def _rate(flops: int | None, divisor: float | None, divisor_name: str) -> tuple[float | None, str]:
    """Return 10^9 operations a second or a joule, or ``None`` and why it is not known."""
    if flops == 0:
        return None, "no operation is of floating point"
    if flops is None or divisor is None:
        return None, f"{'flops' if flops is None else divisor_name} is not known"
    return flops / divisor / 1e9, ""


def mean_estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of at least one value and its interval, which needs two."""
    mean = float(np.mean(values))
    count = len(values)
    if count < 2:
        return Estimate(mean=mean, low=None, high=None, count=count)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    half = students_t(count - 1) * error
    return Estimate(mean=mean, low=mean - half, high=mean + half, count=count)


CONFIDENCE = 0.95
"""Of all intervals."""

_ANGLES = 100_000


@lru_cache
def students_t(freedom: int) -> float:
    """Return how many standard errors an interval reaches to either side [Student's t].

    With ``t = √ν tan θ`` the density is ``cos(θ)^(ν - 1)``, whose area is added up here.
    """
    step = math.pi / 2 / _ANGLES
    areas = np.cumsum(np.cos((np.arange(_ANGLES) + 0.5) * step) ** (freedom - 1))
    angle = np.interp(CONFIDENCE * areas[-1], areas, np.arange(1, _ANGLES + 1) * step)
    return float(math.sqrt(freedom) * np.tan(angle))


def energy_estimate(energies_j: Sequence[float], restoring_j: Sequence[float]) -> Estimate:
    """Return the mean energy of a run.

    Where restorings were subtracted, both are measured apart, so the half-widths of their intervals
    are added in quadrature. Of few values this covers the truth a little more often than it says;
    the degrees of freedom of Welch and Satterthwaite cover it less often.

    Args:
        energies_j: one value a window, the mean of ``restoring_j`` already subtracted.
        restoring_j: what was subtracted, one value a window of restoring; empty if nothing was.
    """
    found = mean_estimate(energies_j)
    if not restoring_j or found.low is None:
        return found
    other = mean_estimate(restoring_j)
    if other.low is None:
        return replace(found, low=None, high=None)
    half = math.hypot(found.mean - found.low, other.mean - other.low)
    return replace(found, low=found.mean - half, high=found.mean + half)


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Return the ratio of two variants from windows taken in the same rounds.

    The logarithm of the ratio of each round is one value; the interval is that of their mean. What
    drifts from round to round and hits both alike cancels.

    Args:
        numerators: times or energies, one a round, all positive.
        denominators: those of the other variant in the same rounds.
    """
    logs = np.log(np.asarray(numerators)) - np.log(np.asarray(denominators))
    found = mean_estimate(logs.tolist())
    if found.low is None or found.high is None:
        return Ratio(value=math.exp(found.mean), low=None, high=None)
    return Ratio(value=math.exp(found.mean), low=math.exp(found.low), high=math.exp(found.high))


def ratio_of_estimates(numerator: Estimate, denominator: Estimate) -> Ratio:
    """Return the ratio of two means that were not measured in pairs.

    To first order the relative variances add (the delta method), so the relative half-widths of
    intervals are added in quadrature.
    """
    value = numerator.mean / denominator.mean
    if numerator.relative is None or denominator.relative is None:
        return Ratio(value=value, low=None, high=None)
    half = value * math.hypot(numerator.relative, denominator.relative)
    return Ratio(value=value, low=value - half, high=value + half)


def inverse(ratio: Ratio, factor: float = 1.0) -> Ratio:
    """Return ``factor`` over a positive ratio."""
    ends = [None if end is None or end <= 0 else factor / end for end in (ratio.high, ratio.low)]
    return Ratio(value=factor / ratio.value, low=ends[0], high=ends[1])


def option_hash(program: Program | None, options: MeasureOptions) -> str:
    """Return the hash of everything chosen in measuring and compiling."""
    if program is None:
        return key_of(options)
    compiled = (program.flags, program.compute_capability, program.original.defines)
    return key_of(options, program.parameters, *compiled)


def source_hash_of(program: Program, directory: Path) -> str:
    """Return the hash of the original C file.

    Raises:
        InputError: ``EATSS-V002``: it cannot be read.
    """
    try:
        content = (directory / program.original.file).read_bytes()
    except OSError as error:
        why = f"'{program.original.file}' of '{directory}' cannot be read: {error.strerror}"
        raise input_error("EATSS-V002", why) from None
    return sha256(content).hexdigest()
