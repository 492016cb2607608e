"""Which meters there are, and which ones results rest on.

A meter of one's own is a function of a :class:`MeterTarget` in ``METERS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from eatss.base.extensions import Registry
from eatss.base.frozen import frozen
from eatss.base.targets import CardNumber
from eatss.base.text import Texts
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.background import CounterMeter, PowerMeter, jetson_meter
from eatss.measurement.meters.meter import Meter, MeterError
from eatss.measurement.meters.nvml import NvmlDevice

_MIG = (
    "the card is cut into instances (MIG), and the energy of one cannot be told apart"
    " from that of the others"
)
_MIG_REMEDY = "measure on a card without MIG (its administrator: `nvidia-smi -mig 0`)"


@dataclass(frozen=True, kw_only=True)
class MeterTarget:
    """The card whose energy is to be metered.

    ``device`` is its number as the driver lists it, or its UUID. ``opened`` is the card in NVML, if
    it is open already; it must stay so.
    """

    device: CardNumber = 0
    opened: NvmlDevice | None = None

    @cached_property
    def nvml(self) -> NvmlDevice:
        """The card in NVML, opened on first use for the life of the meters.

        Raises:
            MeterError: there is no NVML, or it does not know the card.
        """
        return self.opened or NvmlDevice(self.device)


@frozen
class ChosenMeters:
    """Meters that answer, the one that results rest on first, and why others do not."""

    meters: tuple[Meter, ...]
    missing: tuple[Missing, ...] = field(default=())


OpenMeters: TypeAlias = Callable[[MeterTarget], ChosenMeters]
"""Returns meters that answer for a card; raises :class:`MeterError` where none does."""


def choose_meters(
    choice: str, device: CardNumber = 0, *, nvml: NvmlDevice | None = None
) -> ChosenMeters:
    """Return the meters to use.

    ``auto`` takes the energy counter, else NVML's power, else the rail of a Jetson; counter and
    power come together, one as a check of the other.

    Args:
        choice: a name in :data:`METERS`.
        device: the card's number as the driver lists it, or its UUID.
        nvml: the card, if it is open already; the meters use it, so it must stay open. Without
            it, one is opened for the life of the meters.

    Raises:
        InputError: ``EATSS-X005``: there is no such meter.
        MeterError: the meter asked for does not work here.
    """
    return METERS.get(choice)(MeterTarget(device=device, opened=nvml))


def _sensor(name: str, target: MeterTarget) -> Meter:
    """Return the meter of a sensor, which answers.

    Raises:
        MeterError: it does not.
    """
    if name == "jetson":
        return jetson_meter()
    card = target.nvml
    if card.mig_enabled():
        raise MeterError(_MIG, _MIG_REMEDY)
    if name == "counter":
        card.total_energy_j()
        return CounterMeter(card.total_energy_j)
    card.power_w()
    return PowerMeter(card.power_w)


def _choosing(*sensors: str, others: Texts = ()) -> OpenMeters:
    """Return what opens the sensors that answer, else ``others``.

    Where there are no others, the first has to answer; the rest are checks of it.
    """

    def opened(target: MeterTarget) -> ChosenMeters:
        meters: list[Meter] = []
        reasons: dict[str, str] = {}
        for sensor in (*sensors, *others):
            if meters and sensor in others:
                break
            try:
                meters.append(_sensor(sensor, target))
            except MeterError as error:
                if not others and sensor == sensors[0]:
                    raise
                reasons.setdefault(error.whole, f"energy by {sensor}")
        missing = (Missing(what=what, reason=reason) for reason, what in reasons.items())
        return ChosenMeters(meters=tuple(meters), missing=tuple(missing))

    return opened


def _none(_: MeterTarget) -> ChosenMeters:
    reason = "no meter was asked for"
    return ChosenMeters(meters=(), missing=(Missing(what="energy", reason=reason),))


METERS: Registry[OpenMeters] = Registry(
    "eatss.meters",
    "energy meter",
    {
        "auto": _choosing("counter", "power", others=("jetson",)),
        "counter": _choosing("counter", "power"),
        "power": _choosing("power", "counter"),
        "jetson": _choosing("jetson"),
        "none": _none,
    },
)
"""What ``--meter`` and ``MeasureOptions.meter`` can name."""
