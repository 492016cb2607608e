"""Which meters there are on this machine, and which one results rest on.

Code: E060 a meter of that name does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from eatss.diagnostics import input_error
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.counter import CounterMeter
from eatss.measurement.meters.jetson import jetson_meter
from eatss.measurement.meters.meter import Meter, MeterError
from eatss.measurement.meters.nvml import NvmlDevice
from eatss.measurement.meters.power import PowerMeter
from eatss.measurement.meters.smi import SmiMeter
from eatss.measurement.options import MeterChoice

_MIG = (
    "the card is cut into instances (MIG), and the energy of one cannot be told apart"
    " from that of the others"
)
_MIG_REMEDY = "measure on a card without MIG (its administrator: `nvidia-smi -mig 0`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMeters:
    """Meters that answer, the one that results rest on first, and why others do not."""

    meters: tuple[Meter, ...]
    missing: tuple[Missing, ...] = field(default=())


def choose_meters(
    choice: str, device: int | str = 0, *, nvml: NvmlDevice | None = None, root: Path = Path("/")
) -> ChosenMeters:
    """Return the meters to use.

    ``auto`` takes the energy counter, else NVML's power, else ``nvidia-smi``, else the rails of
    a Jetson; counter and power come together, one as a check of the other.

    Args:
        choice: one of :data:`eatss.measurement.options.MeterChoice`.
        device: the card's number as the driver lists it, or its UUID.
        nvml: the card, if it is open already; the meters use it, so it must stay open. Without
            it, one is opened for the life of the meters.
        root: where ``/sys`` is looked for.

    Raises:
        InputError: ``EATSS-E060``: there is no such choice.
        MeterError: the meter asked for does not work here.
    """
    choices = get_args(MeterChoice)
    if choice not in choices:
        raise input_error(
            "EATSS-E060",
            f"there is no energy meter '{choice}'",
            hint=f"choose one of {', '.join(choices)}",
        )
    if choice == "none":
        return ChosenMeters(
            meters=(), missing=(Missing(what="energy", reason="no meter was asked for"),)
        )
    found = _Found(device=device, root=root, nvml=nvml)
    if choice == "auto":
        return found.best()
    return found.named(choice)


class _Found:
    """Tries one kind of meter after the other; each returns a meter or raises MeterError."""

    def __init__(self, *, device: int | str, root: Path, nvml: NvmlDevice | None) -> None:
        self._device = device
        self._root = root
        self._nvml = nvml
        self._kinds: dict[str, Callable[[], Meter]] = {
            "counter": self._counter,
            "power": self._power,
            "nvidia-smi": self._smi,
            "jetson": lambda: jetson_meter(root=root),
        }

    def best(self) -> ChosenMeters:
        missing: list[Missing] = []
        meters = [m for kind in ("counter", "power") if (m := self._try(kind, missing))]
        for kind in ("nvidia-smi", "jetson"):
            if not meters and (meter := self._try(kind, missing)):
                meters.append(meter)
        return ChosenMeters(meters=tuple(meters), missing=tuple(missing))

    def named(self, kind: str) -> ChosenMeters:
        meters = [self._kinds[kind]()]
        missing: list[Missing] = []
        check = {"counter": "power", "power": "counter"}.get(kind)
        if check is not None and (meter := self._try(check, missing)):
            meters.append(meter)
        return ChosenMeters(meters=tuple(meters), missing=tuple(missing))

    def _try(self, kind: str, missing: list[Missing]) -> Meter | None:
        try:
            return self._kinds[kind]()
        except MeterError as error:
            reason = f"{error} ({error.remedy})" if error.remedy else str(error)
            if all(reason != known.reason for known in missing):
                missing.append(Missing(what=f"energy by {kind}", reason=reason))
            return None

    def _card(self) -> NvmlDevice:
        if self._nvml is None:
            self._nvml = NvmlDevice(self._device)
        if self._nvml.mig_enabled():
            raise MeterError(_MIG, _MIG_REMEDY)
        return self._nvml

    def _counter(self) -> Meter:
        card = self._card()
        card.total_energy_j()
        return CounterMeter(card)

    def _power(self) -> Meter:
        card = self._card()
        card.power_w()
        return PowerMeter(card)

    def _smi(self) -> Meter:
        if self._nvml is not None and self._nvml.mig_enabled():
            raise MeterError(_MIG, _MIG_REMEDY)
        meter = SmiMeter(self._device if self._nvml is None else self._nvml.uuid)
        meter.probe()
        return meter
