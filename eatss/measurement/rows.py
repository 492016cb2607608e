"""Measurements and comparisons as rows of a table: a row a variant, units in the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from eatss.measurement.comparison import Comparison, ComparisonRow
from eatss.measurement.estimate import Estimate, Ratio
from eatss.measurement.measurement import Measurement

Cell: TypeAlias = str | int | float | None


def measurement_rows(found: Measurement) -> list[dict[str, Cell]]:
    """Return the one row of a measurement; what was not measured is ``None``."""
    return [_measurement(found)]


def comparison_rows(comparison: Comparison) -> list[dict[str, Cell]]:
    """Return a row a variant, with its ratios to the baseline."""
    return [_row(comparison, row) for row in comparison.rows]


def _row(comparison: Comparison, row: ComparisonRow) -> dict[str, Cell]:
    return {
        **_measurement(row.measurement),
        "baseline": comparison.baseline,
        **_ratio("speedup", row.speedup),
        **_ratio("energy_ratio", row.energy_ratio),
        **_ratio("ppw_ratio", row.ppw_ratio),
    }


def _measurement(found: Measurement) -> dict[str, Cell]:
    device, method, provenance = found.device, found.method, found.provenance
    return {
        "program": found.program,
        "variant": found.variant,
        "status": found.status,
        "reason": found.reason,
        "dtype": found.dtype,
        "sizes": _pairs(found.sizes),
        "tile_sizes": " ".join(f"{kernel}:{_pairs(sizes)}" for kernel, sizes in found.tile_sizes),
        **_estimate("time_s", found.time_s, found.time_estimate),
        **_estimate("energy_j", found.energy_j, found.energy_estimate),
        "net_energy_j": found.net_energy_j,
        "power_w": found.power_w,
        "idle_power_w": found.idle_power_w,
        "flops": found.flops,
        "least_bytes": found.least_bytes,
        "gflops": found.gflops,
        "gflops_per_joule": found.gflops_per_joule,
        "windows": len(found.windows),
        "ended": method.ended,
        "meter": method.meter,
        "compiler": method.compiler,
        "launched_by": method.launched_by,
        "restoring": method.restoring,
        "data": method.data,
        "device": None if device is None else device.name,
        "device_uuid": None if device is None else device.uuid,
        "driver": None if device is None else device.driver,
        "toolkit": None if device is None else device.toolkit,
        "eatss_version": provenance.eatss_version,
        "revision": provenance.revision,
        "source_hash": provenance.source_hash,
        "text_hash": provenance.text_hash,
        "option_hash": provenance.option_hash,
        "created": provenance.created,
        "missing": "; ".join(f"{missing.what}: {missing.reason}" for missing in found.missing),
    }


def _estimate(name: str, value: float | None, estimate: Estimate | None) -> dict[str, Cell]:
    low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _ratio(name: str, ratio: Ratio | None) -> dict[str, Cell]:
    if ratio is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def _pairs(pairs: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs)
