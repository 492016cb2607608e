"""``EnergyMeasurement``: what a block of code took, how sure that is, or why it is not known."""

from __future__ import annotations

from typing import Any

from eatss.base.codec import JsonForm, encode
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy
from eatss.measurement.meters.meter import PowerSample

ENERGY_SCHEMA = 2
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class CardEnergy:
    """What one card drew during a block.

    Attributes:
        name: ``"card 0"`` as CUDA counts.
        energy_j: Joules, gross; ``None`` with a reason in ``missing``.
        uncertainty_j: Joules that ``energy_j`` may be off, as far as the sensor is right.
        power_w: Mean watts.
        peak_power_w: Largest watts that the sensor told, itself a mean over some time.
        idle_power_w: Mean watts before the block.
        meter: The sensor that ``energy_j`` rests on.
        updates: How many values it gave during the block.
        checks: What other sensors of the card said.
        device: Which card it is.
        before: Its clocks and temperature before the block.
        after: The same after it.
        missing: What is not known, and why.
        trace: Power over time, from before the block to its end.
    """

    json_layout = JsonForm(apart=("trace",))

    name: str
    energy_j: float | None = None
    uncertainty_j: float | None = None
    power_w: float | None = None
    peak_power_w: float | None = None
    idle_power_w: float | None = None
    meter: str | None = None
    updates: int = 0
    checks: tuple[IntervalEnergy, ...] = ()
    device: DeviceInfo | None = None
    before: CardState | None = None
    after: CardState | None = None
    missing: tuple[Missing, ...] = ()
    trace: tuple[PowerSample, ...] = ()

    def __repr__(self) -> str:
        return f"<CardEnergy {self.name}: {_joules(self.energy_j, self.uncertainty_j)}>"


@frozen
class EnergyMeasurement(Shown):
    """Time and energy of one block of code.

    Energy is gross: all that was drawn, idle power and other programs' work included. The true
    energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right: one that moves
    every 100 ms says nothing of a shorter block. What is ``None`` stands in ``missing`` with the
    reason; it is never 0.

    Attributes:
        time_s: Seconds that the block took.
        energy_j: Joules of all cards together; ``None`` if one of them is not known.
        uncertainty_j: Joules that ``energy_j`` may be off, of all cards together.
        power_w: Mean watts of all cards together.
        cards: Each card by itself: sensors, clocks, temperature, power over time.
        error: Names the exception that ended the block, ``""`` if none did.
        missing: What is not known, and why.
        waited_for: What was waited for before time began and ended, in words.
        schema_version: Of the JSON form.
    """

    shown_by = "eatss.report.measurement:energy_parts"

    time_s: float
    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    cards: tuple[CardEnergy, ...]
    error: str = ""
    missing: tuple[Missing, ...] = ()
    waited_for: tuple[str, ...] = ()
    schema_version: int = ENERGY_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, without the traces of power."""
        plain: dict[str, Any] = encode(self)
        return plain

    def __repr__(self) -> str:
        return f"<EnergyMeasurement {self}>"

    def __str__(self) -> str:
        told = f"{self.time_s:.4g} s, {_joules(self.energy_j, self.uncertainty_j)}"
        if self.power_w is not None:
            by = self.cards[0].meter if len(self.cards) == 1 else f"{len(self.cards)} cards"
            return f"{told}, {self.power_w:.4g} W ({by})"
        reasons = (one.reason for one in self.missing if one.what.startswith("energy"))
        return ": ".join((told, *list(reasons)[:1]))


def _joules(energy_j: float | None, uncertainty_j: float | None) -> str:
    if energy_j is None or uncertainty_j is None:
        return "energy unknown"
    return f"{energy_j:.4g} ± {uncertainty_j:.2g} J"
