"""Sensors of one source that cannot both be right: what each tells, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.measurement.meters.interval_energy import IntervalEnergy

TOLERANCE = 0.05
"""What a sensor may be off as it is built: NVML's power is specified to 5 %."""


def contradiction(told: Sequence[IntervalEnergy], time_s: float) -> str:
    """Return that sensors contradict the first one, beyond what both leave open; "" if none does.

    Args:
        told: what each tells of the same time.
        time_s: how long that is.
    """
    for other in told[1:]:
        first = told[0]
        open_j = first.uncertainty_j + other.uncertainty_j
        open_j += TOLERANCE * max(first.energy_j, other.energy_j)
        if abs(first.energy_j - other.energy_j) > open_j:
            return _sentence(
                (first.meter, f"{first.energy_j:.4g} J ({first.energy_j / time_s:.4g} W)"),
                (other.meter, f"{other.energy_j:.4g} J ({other.energy_j / time_s:.4g} W)"),
            )
    return ""


def power_contradiction(told: Sequence[tuple[str, float]]) -> str:
    """Return the same of sensors that each tell a mean power of steady loads, in watts."""
    for name, power_w in told[1:]:
        if abs(power_w - told[0][1]) > 2 * TOLERANCE * max(power_w, told[0][1]):
            return _sentence((told[0][0], f"{told[0][1]:.4g} W"), (name, f"{power_w:.4g} W"))
    return ""


def _sentence(one: tuple[str, str], other: tuple[str, str]) -> str:
    return (
        f"sensors contradict each other: {one[0]} tells {one[1]}, {other[0]} {other[1]}; at least "
        "one of them is wrong, or they cover different parts of the board"
    )
