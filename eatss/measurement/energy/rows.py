"""What ``energy_meter`` found as rows: a row for each source, of the block and of each window."""

from __future__ import annotations

from typing import TypeAlias

from eatss.measurement.energy.measurement import EnergyMeasurement

Cell: TypeAlias = str | int | float | None


def energy_rows(found: EnergyMeasurement) -> list[dict[str, Cell]]:
    """Return a row a source, first of the block (``window`` is ``None``), then of each window."""
    rows = [
        _row(None, 1, found.time_s, one.name, one.kind, one.energy_j, one.uncertainty_j)
        for one in found.sources
    ]
    rows += [
        _row(
            window.name, window.count, window.time_s,
            share.source, share.kind, share.energy_j, share.uncertainty_j,
        )
        for window in found.windows
        for share in window.sources
    ]  # fmt: skip
    return rows


def _row(
    window: str | None,
    count: int,
    time_s: float,
    source: str,
    kind: str,
    energy_j: float | None,
    uncertainty_j: float | None,
) -> dict[str, Cell]:
    return {
        "window": window,
        "count": count,
        "source": source,
        "kind": kind,
        "time_s": time_s,
        "energy_j": energy_j,
        "uncertainty_j": uncertainty_j,
        "power_w": energy_j / time_s if energy_j is not None and time_s > 0 else None,
    }
