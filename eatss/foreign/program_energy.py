"""``ProgramEnergy``: what a program took on each card, how sure that is, or why it is unknown."""

from __future__ import annotations

from dataclasses import dataclass, field

from eatss.measurement.measurement import DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy
from eatss.measurement.power_trace import PowerSample

PROGRAM_ENERGY_SCHEMA = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a card or a CPU package drew while a program ran, all of it: idle power, other programs.

    The true energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right.
    ``energy_j`` is of all runs together. ``power_w`` is the mean, ``peak_power_w`` the largest
    value that the driver told, which on most cards is a mean over some time itself;
    ``idle_power_w`` the mean before the program began. ``updates`` counts the values of ``meter``.
    ``checks`` are what other sensors tell; ``contradiction`` says where one differs by more than
    both leave open. What is ``None`` stands in ``missing`` with the reason.
    """

    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    peak_power_w: float | None
    idle_power_w: float | None
    meter: str | None
    updates: int
    missing: tuple[Missing, ...]
    checks: tuple[IntervalEnergy, ...] = ()
    contradiction: str = ""
    trace: tuple[PowerSample, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEnergy(Drawn):
    """What one card drew while a program ran."""

    device: DeviceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEnergy(Drawn):
    """What one CPU package drew; ``name`` is ``CPU package 0``, ``CPU`` where none can be read."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnergy:
    """What a program took, start-up and all.

    It was run ``runs`` times, one after the other, and ``command`` is its command line. ``cards``
    are those that were metered, ``cpus`` the CPU packages if these were asked for. ``time_s`` is
    that of all runs together. ``exit_code`` is the last run's; a run that fails is the last.
    """

    command: tuple[str, ...]
    runs: int
    exit_code: int
    time_s: float
    cards: tuple[CardEnergy, ...]
    cpus: tuple[CpuEnergy, ...] = ()
    schema_version: int = PROGRAM_ENERGY_SCHEMA
