"""``EnergyMeasurement``: what a block of code took, how sure that is, or why it is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eatss.codec import encode
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy

ENERGY_SCHEMA = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyMeasurement:
    """Time and energy of one block of code.

    Energy is gross: all that the card drew, idle power and other programs' work included. The true
    energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right: one that moves
    every 100 ms says little of a short block. ``updates`` counts the values it gave during the
    block, ``checks`` holds what other sensors said. ``error`` names the exception that ended the
    block, if one did. What is ``None`` stands in ``missing`` with the reason.
    """

    time_s: float
    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    meter: str | None
    updates: int
    checks: tuple[IntervalEnergy, ...]
    device: DeviceInfo | None
    before: CardState | None
    after: CardState | None
    error: str
    missing: tuple[Missing, ...]
    schema_version: int = ENERGY_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        plain: dict[str, Any] = encode(self)
        return plain

    def __str__(self) -> str:
        if self.energy_j is None or self.uncertainty_j is None or self.power_w is None:
            why = next((m.reason for m in self.missing if m.what.startswith("energy")), "")
            return f"{self.time_s:.4g} s, energy unknown: {why}"
        return (
            f"{self.time_s:.4g} s, {self.energy_j:.4g} ± {self.uncertainty_j:.2g} J,"
            f" {self.power_w:.4g} W ({self.meter}, {self.updates} updates)"
        )
