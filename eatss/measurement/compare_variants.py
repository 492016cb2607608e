"""Variants of one program beside a baseline: what has to be alike, and their ``Comparison``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.measurement.launches import complete_sizes
from eatss.measurement.measurement import Comparison, ComparisonRow, Estimate, Measurement, Ratio
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.provenance import source_hash_of
from eatss.measurement.statistics import inverse, paired_ratio, ratio_of_estimates
from eatss.program import load_program
from eatss.program.expression import SizePairs


@frozen
class Traits:
    """What makes results of two variants comparable.

    ``source_hash`` is ``None`` where the original is not there. ``defines`` are those that the
    original was generated with; measurements do not keep them.
    """

    label: str
    program: str
    dtype: str
    source_hash: str | None
    sizes: SizePairs
    defines: tuple[str, ...] = ()


def check_measurable(variants: Sequence[Variant], options: MeasureOptions) -> tuple[Traits, ...]:
    """Look at all programs before any is measured; return what they are.

    Raises:
        InputError: ``EATSS-V0xx`` a folder holds no program, ``EATSS-E072`` and ``EATSS-E073``
            the sizes are not a program's.
    """
    found: list[Traits] = []
    for variant in variants:
        if variant.directory is None:
            continue  # it was rejected, and stands beside anything
        program = load_program(variant.directory)
        # without the definition of the type, which dtype tells, given or not
        given = (one for one in program.original.defines if one.partition("=")[2] != program.dtype)
        found.append(
            Traits(
                label=variant.label,
                program=program.name,
                dtype=program.dtype,
                source_hash=source_hash_of(program, variant.directory)[0],
                sizes=tuple(complete_sizes(program, options.sizes).items()),
                defines=tuple(sorted(given)),
            )
        )
    return tuple(found)


def check_comparable(variants: Sequence[Variant], options: MeasureOptions) -> None:
    """Refuse variants that could not be compared once they were measured.

    Raises:
        InputError: as :func:`check_measurable`; ``EATSS-E079`` they differ in program, type,
            original source, definitions or sizes.
    """
    traits = check_measurable(variants, options)
    for other in traits[1:]:
        check_alike(traits[0], other)


def check_alike(one: Traits, other: Traits) -> None:
    """Refuse two variants of which one cannot be said to be faster than the other.

    Raises:
        InputError: ``EATSS-E079``.
    """
    hashes = (one.source_hash or "", other.source_hash or "")
    for what, own, others in (
        ("program", one.program, other.program),
        ("type", one.dtype, other.dtype),
        ("definitions (-D)", *(" ".join(each.defines) for each in (one, other))),
        ("sizes", *(" ".join(f"{n}={v}" for n, v in each.sizes) for each in (one, other))),
        (
            "original source, whose hashes are",
            *(each[:12] if all(hashes) else "" for each in hashes),
        ),
    ):
        if own != others:
            raise input_error(
                "EATSS-E079",
                f"'{one.label}' and '{other.label}' differ in their {what}: {own or 'none'} and "
                f"{others or 'none'}",
                hint="compare variants of one C file, of one type and at the same sizes; to "
                "measure different programs use: eatss measure",
            )


LEAST_PAIRS = 3
"""Fewer rounds than this are not compared in pairs: their spread says too little."""


def compare(measurements: Sequence[Measurement], baseline_label: str) -> Comparison:
    """Set variants of one program beside a baseline.

    Where both variants took turns, their n-th windows are of one round and are compared in pairs,
    as far as both have some. Otherwise, and where what restoring takes was subtracted (an error
    that all windows of a variant share), the intervals of the means are combined.

    Args:
        measurements: of one program, in the order of the rows.
        baseline_label: the variant the others are compared with.

    Raises:
        InputError: ``EATSS-E078`` there is no such variant, ``EATSS-E079`` the measurements are
            of several programs, sizes, types or original sources.
    """
    labels = [measurement.variant for measurement in measurements]
    if baseline_label not in labels:
        raise input_error(
            "EATSS-E078",
            f"no measurement of the baseline '{baseline_label}' is there",
            hint=f"there are: {', '.join(labels) or 'none'}",
        )
    baseline = measurements[labels.index(baseline_label)]
    for one in measurements:
        if one is not baseline and "rejected by the model" not in (one.status, baseline.status):
            check_alike(_traits(one), _traits(baseline))
    return Comparison(
        program=baseline.program,
        baseline=baseline_label,
        rows=tuple(_row(one, baseline) for one in measurements),
        notes=tuple(note for one in measurements for note in _unlike(one, baseline)),
    )


def _traits(measurement: Measurement) -> Traits:
    return Traits(
        label=measurement.variant,
        program=measurement.program,
        dtype=measurement.dtype,
        source_hash=measurement.provenance.source_hash,
        sizes=measurement.sizes,
    )


def _unlike(measurement: Measurement, baseline: Measurement) -> Iterator[str]:
    """Yield in what else a variant and the baseline were not measured alike."""
    if not measurement.windows or not baseline.windows:
        return
    own, other = measurement.device, baseline.device
    for what, mine, theirs in (
        ("card", own and (own.uuid or own.name), other and (other.uuid or other.name)),
        ("meter", measurement.method.meter, baseline.method.meter),
        ("kind of data", measurement.method.data, baseline.method.data),
    ):
        if mine != theirs:
            yield (
                f"'{measurement.variant}' and '{baseline.variant}' differ in their {what}: "
                f"{mine or 'none'} and {theirs or 'none'}"
            )


def _row(measurement: Measurement, baseline: Measurement) -> ComparisonRow:
    slowdown = _ratio(measurement, baseline, "time_s")
    energy = _ratio(measurement, baseline, "energy_j")
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
    own, other = _estimate(measurement, what), _estimate(baseline, what)
    if own is None or other is None:
        return None
    if measurement is baseline:
        return Ratio(value=1.0, low=1.0, high=1.0)
    pairs = _pairs(measurement, baseline, what)
    restored = "inside windows" in (measurement.method.restoring, baseline.method.restoring)
    if len(pairs) >= LEAST_PAIRS and not (restored and what == "energy_j"):
        own_values, other_values = zip(*pairs, strict=True)
        return paired_ratio(own_values, other_values, baseline.method.confidence)
    return ratio_of_estimates(own, other)


def _estimate(measurement: Measurement, what: str) -> Estimate | None:
    if measurement.status not in ("ok", "unstable"):
        return None
    if what == "time_s":
        return measurement.time_estimate
    return measurement.energy_estimate


def _pairs(measurement: Measurement, baseline: Measurement, what: str) -> list[tuple[float, float]]:
    """Return the values of both variants in each round where both have one.

    There are none where windows of both overlap in time: those were not measured together.
    """
    spans = [
        (window.begin_s, window.begin_s + window.duration_s)
        for window in (*measurement.windows, *baseline.windows)
    ]
    if any(begin_s < end_s for (_, end_s), (begin_s, _) in pairwise(sorted(spans))):
        return []
    rounds = zip(measurement.windows, baseline.windows, strict=False)
    values = ((getattr(own, what), getattr(other, what)) for own, other in rounds)
    return [(own, other) for own, other in values if own is not None and other is not None]
