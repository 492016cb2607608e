"""Variants in, measurements out, with hardware counters where they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eatss.base.diagnostics import Diagnostic
from eatss.base.frozen import frozen
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program.plan import stack_warnings

if TYPE_CHECKING:
    from eatss.measurement.card import Card
    from eatss.measurement.job import Progress
    from eatss.measurement.measurement import Comparison


@frozen
class Measured:
    """Measurements of variants; ``interrupted`` says that Ctrl-C kept them from being all."""

    measurements: tuple[Measurement, ...]
    interrupted: bool


def measured(
    variants: Sequence[Variant],
    options: MeasureOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    card: str | Card | None = None,
) -> Measured:
    """Measure variants of one program, with hardware counters where they are asked for.

    Raises:
        InputError: as :func:`measure`; ``EATSS-E050``: counters are asked for and there is no
            Nsight Compute.
        KeyboardInterrupt: the user interrupted before anything was measured.
    """
    from eatss.measurement.api import measure_variants  # noqa: PLC0415 - needs SciPy
    from eatss.measurement.counters import find_ncu, with_counters, without  # noqa: PLC0415

    ncu = find_ncu() if options.counters else None
    all_found = measure_variants(variants, options, progress=progress, card=card)
    cut_short = any(one.method.ended == "interrupted" for one in all_found)
    found = Measured(
        measurements=all_found, interrupted=cut_short or len(all_found) < len(variants)
    )
    if ncu is None:
        return found
    folders = {variant.label: variant.directory for variant in variants}
    interrupted = found.interrupted
    counted: list[Measurement] = []
    for one in found.measurements:
        if not interrupted:
            try:
                counted.append(with_counters(one, folders[one.variant], options, ncu=ncu))
                continue
            except KeyboardInterrupt:
                interrupted = True
        counted.append(without(one, "interrupted before they were read"))
    return Measured(measurements=tuple(counted), interrupted=interrupted)


def stack_warnings_of(measurements: Sequence[Measurement]) -> tuple[Diagnostic, ...]:
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
    from eatss.measurement.api import compare  # noqa: PLC0415 - needs SciPy

    if found.interrupted and baseline not in [one.variant for one in found.measurements]:
        raise Interrupted(found.measurements)
    return compare(found.measurements, baseline)
