"""Measurements in, ``Comparison`` with a baseline out."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.diagnostics import input_error
from eatss.measure.comparison import Comparison, ComparisonRow
from eatss.measure.estimate import Estimate, Ratio
from eatss.measure.measurement import Measurement
from eatss.measure.statistics import inverse, paired_ratio, ratio_of_estimates

LEAST_PAIRS = 3
"""Fewer rounds than this are not compared in pairs: their spread says too little."""


def compare(measurements: Sequence[Measurement], baseline_label: str) -> Comparison:
    """Set variants of one program beside a baseline.

    Where both variants have the same windows, n-th windows are of one round and are compared in
    pairs. Otherwise, and where what restoring takes was subtracted (an error that all windows of a
    variant share), the intervals of the means are combined.

    Args:
        measurements: of one program, in the order of the rows.
        baseline_label: the variant the others are compared with.

    Raises:
        InputError: ``EATSS-E078`` there is no such variant, ``EATSS-E079`` the measurements are
            of several programs or sizes.
    """
    labels = [measurement.variant for measurement in measurements]
    if baseline_label not in labels:
        raise input_error(
            "EATSS-E078",
            f"no measurement of the baseline '{baseline_label}' is there",
            hint=f"there are: {', '.join(labels) or 'none'}",
        )
    baseline = measurements[labels.index(baseline_label)]
    for measurement in measurements:
        _check_comparable(measurement, baseline)
    return Comparison(
        program=baseline.program,
        baseline=baseline_label,
        rows=tuple(_row(measurement, baseline) for measurement in measurements),
    )


def _check_comparable(measurement: Measurement, baseline: Measurement) -> None:
    if measurement.status == "rejected by the model" or measurement is baseline:
        return
    if baseline.status == "rejected by the model":
        return
    for what, own, other in (
        ("program", measurement.program, baseline.program),
        ("sizes", measurement.sizes, baseline.sizes),
    ):
        if own != other:
            raise input_error(
                "EATSS-E079",
                f"'{measurement.variant}' and '{baseline.variant}' differ in their {what}",
                hint="compare variants of one program at the same sizes",
            )


def _row(measurement: Measurement, baseline: Measurement) -> ComparisonRow:
    slowdown = _ratio(measurement, baseline, "time_s")
    energy = _ratio(measurement, baseline, "energy_j")
    return ComparisonRow(
        measurement=measurement,
        speedup=None if slowdown is None else inverse(slowdown),
        energy_ratio=energy,
        ppw_ratio=_ppw_ratio(measurement, baseline, energy),
    )


def _ratio(measurement: Measurement, baseline: Measurement, what: str) -> Ratio | None:
    """Return a variant's time or energy over the baseline's."""
    own, other = _estimate(measurement, what), _estimate(baseline, what)
    if own is None or other is None:
        return None
    if measurement is baseline:
        return Ratio(value=1.0, low=1.0, high=1.0)
    own_values, other_values = _values(measurement, what), _values(baseline, what)
    paired = len(own_values) == len(other_values) >= LEAST_PAIRS
    restored = "inside windows" in (measurement.method.restoring, baseline.method.restoring)
    if paired and not (restored and what == "energy_j"):
        return paired_ratio(own_values, other_values, baseline.method.confidence)
    return ratio_of_estimates(own, other)


def _estimate(measurement: Measurement, what: str) -> Estimate | None:
    if measurement.status not in ("ok", "unstable"):
        return None
    if what == "time_s":
        return measurement.time_estimate
    return measurement.energy_estimate


def _values(measurement: Measurement, what: str) -> list[float]:
    """Return the value of every window; empty where a window has none."""
    values = [getattr(window, what) for window in measurement.windows]
    return [] if None in values else values


def _ppw_ratio(
    measurement: Measurement, baseline: Measurement, energy: Ratio | None
) -> Ratio | None:
    """Return the variant's FLOP per joule over the baseline's."""
    if energy is None or measurement.flops is None or not baseline.flops:
        return None
    return inverse(energy, factor=measurement.flops / baseline.flops)
