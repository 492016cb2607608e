"""An energy roofline under a power limit: the clock falls until the card keeps to it.

What a card's coefficients say of a program: its energy roofline, and where a program stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.cards.match import calibration_of, voltage_share
from eatss.cards.profile import GpuProfile
from eatss.measurement.arguments import complete_sizes
from eatss.measurement.assemble import CountedWork, count_work
from eatss.measurement.characterize.benchmark import LINE_BYTES, WARP, Width
from eatss.measurement.characterize.energy_roofline import EnergyRoofline
from eatss.measurement.measurement import Measurement, measurement_from_dict
from eatss.program import load_program

WIDTHS: tuple[Width, ...] = ("fp64", "fp32")

FLOPS_OF_FMA = 2
_LEAST_CLOCK = 0.02
_HALVINGS = 40

_Floats: TypeAlias = NDArray[np.float64]


def roofline_from_coefficients(
    coefficients: Mapping[str, float], width: Width, sm_count: int, limit_w: float | None
) -> EnergyRoofline:
    """Return the energy roofline that a card's coefficients give for multiply-adds of a width.

    A byte is one that is read from memory: its way through L2 and L1 is paid too.

    Args:
        coefficients: by their names in :mod:`eatss.cards.profile`.
        width: of the multiply-adds.
        sm_count: SMs of the card.
        limit_w: power limit in W, ``None`` for none.

    Raises:
        ValueError: they make no machine, as where a price is zero.
    """
    cycles_s = sm_count * coefficients["clock_mhz"] * 1e6
    return EnergyRoofline.from_rates(
        flops_s=coefficients[f"{width}_per_cycle"] * FLOPS_OF_FMA * cycles_s,
        bytes_s=coefficients["dram_read_gb_s"] * 1e9,
        flop_pj=coefficients[f"{width}_pj"] / (WARP * FLOPS_OF_FMA),
        byte_pj=coefficients["dram_read_byte_pj"]
        + coefficients["l2_byte_pj"]
        + coefficients["l1_wavefront_pj"] / LINE_BYTES,
        constant_w=coefficients["constant_w"],
        power_limit_w=limit_w,
    )


@frozen
class PowerLimitedRoofline:
    """A machine that keeps to its power limit as cards do: by lower clocks of the SMs.

    With the clock their voltage falls, and what runs at it takes ``v²`` of its energy, as in
    :mod:`eatss.measurement.characterize.fit`. Choi and Vuduc leave power limits open [section 5.2],
    and let arithmetic and memory overlap entirely [eq. (3)]. Here their times are joined by the
    exponent ``overlap``: 1 adds them, infinity takes the longer one.

    ``memory_byte_j`` is the part of ``machine.byte_j`` that is memory's own: its voltage stays.
    ``voltage_floor`` is that of the fit. Methods take intensities in flop/byte, all positive.
    """

    machine: EnergyRoofline
    memory_byte_j: float
    voltage_floor: float
    overlap: float

    @classmethod
    def of(cls, coefficients: Mapping[str, float], machine: EnergyRoofline) -> PowerLimitedRoofline:
        """Return it for what :func:`roofline_from_coefficients` made of the same coefficients."""
        return cls(
            machine=machine,
            memory_byte_j=coefficients["dram_read_byte_pj"] * 1e-12,
            voltage_floor=coefficients["voltage_floor"],
            overlap=coefficients["overlap"],
        )

    def clock(self, intensity: ArrayLike) -> _Floats:
        """Return the clock as a share of the highest: 1, or what the power limit leaves."""
        values = np.asarray(intensity, dtype=np.float64)
        high = np.ones_like(values)
        limit_w = self.machine.power_limit_w
        if limit_w is None:
            return high
        low = np.full_like(values, _LEAST_CLOCK)
        kept = self._power_w(values, high) <= limit_w
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            allowed = self._power_w(values, middle) <= limit_w
            low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
        return np.asarray(np.where(kept, 1.0, low))

    def time_s(self, work_flops: ArrayLike, intensity: ArrayLike) -> _Floats:
        """Return the time in s of so many flops."""
        values = np.asarray(intensity, dtype=np.float64)
        return np.asarray(np.asarray(work_flops) * self._flop_s(values, self.clock(values)))

    def energy_j(self, work_flops: ArrayLike, intensity: ArrayLike) -> _Floats:
        """Return the energy in J of so many flops, constant power included."""
        values = np.asarray(intensity, dtype=np.float64)
        return np.asarray(np.asarray(work_flops) * self._flop_j(values, self.clock(values)))

    def power_w(self, intensity: ArrayLike) -> _Floats:
        """Return mean power in W."""
        values = np.asarray(intensity, dtype=np.float64)
        return self._power_w(values, self.clock(values))

    def _flop_s(self, intensity: _Floats, clock: _Floats) -> _Floats:
        arithmetic_s = self.machine.flop_s / clock
        memory_s = self.machine.byte_s / intensity
        longer_s = np.maximum(arithmetic_s, memory_s)
        share = np.minimum(arithmetic_s, memory_s) / longer_s
        return np.asarray(longer_s * (1 + share**self.overlap) ** (1 / self.overlap))

    def _flop_j(self, intensity: _Floats, clock: _Floats) -> _Floats:
        one = self.machine
        at_voltage = one.flop_j + (one.byte_j - self.memory_byte_j) / intensity
        share = voltage_share(clock, self.voltage_floor)
        constant = one.constant_w * self._flop_s(intensity, clock)
        return np.asarray(share * at_voltage + self.memory_byte_j / intensity + constant)

    def _power_w(self, intensity: _Floats, clock: _Floats) -> _Floats:
        return self._flop_j(intensity, clock) / self._flop_s(intensity, clock)


WIDTH_OF_DTYPE: Mapping[str, Width] = {"float": "fp32", "double": "fp64"}

_MOST_BYTES = 64 << 20


def roofline_of(profile: GpuProfile, width: Width) -> EnergyRoofline:
    """Return the energy roofline of a card for multiply-adds of a width.

    A byte is one that is read from memory: its way through L2 and L1 is paid too. The power limit
    is the profile's ``tdp_w``. A card without a calibration gets scaled coefficients
    (:mod:`eatss.cards.match`), which are guesses.

    Raises:
        InputError: ``EATSS-B030``, the coefficients make no machine, as where a price is zero.
    """
    try:
        return roofline_from_coefficients(
            calibration_of(profile), width, profile.sm_count, profile.tdp_w
        )
    except ValueError as error:
        raise input_error(
            "EATSS-B030",
            f"the coefficients of '{profile.name}' make no roofline: {error}",
            hint="characterise the card again, or mend its profile",
        ) from None


def capped_range(machine: EnergyRoofline) -> tuple[float, float] | None:
    """Return the intensities in flop/byte between which a card would draw more than its limit.

    Power rises up to B_τ and falls beyond it [Choi and Vuduc, section 3, eq. (7)]. The first is 0
    where bytes alone draw too much, the second infinite where flops alone do. ``None``: the limit
    is not reached, or there is none.
    """
    limit_w = machine.power_limit_w
    if limit_w is None or machine.power_bounds_w[1] <= limit_w:
        return None
    left_w = limit_w - machine.constant_w
    byte_power_w = machine.byte_j / machine.byte_s
    low = machine.time_balance * (left_w - byte_power_w) / machine.flop_power_w
    beside_flops_w = left_w - machine.flop_power_w
    high = (
        machine.flop_power_w * machine.energy_balance / beside_flops_w
        if beside_flops_w > 0
        else math.inf
    )
    return max(0.0, low), high


def power_limited_roofline_of(profile: GpuProfile, width: Width) -> PowerLimitedRoofline:
    """Return :func:`roofline_of` with clocks that follow the power limit.

    Raises:
        InputError: ``EATSS-B030``, the coefficients make no machine.
    """
    return PowerLimitedRoofline.of(calibration_of(profile), roofline_of(profile, width))


@frozen
class RooflinePoint:
    """A program at its intensity under the roofs of a card.

    ``least_bytes`` is every element read once and every one written once, so the intensity is the
    highest that code without redundant traffic has. ``speed_ceiling_flops_s`` and
    ``efficiency_ceiling_flops_j`` are the roofline and the arch line there, without a power limit.
    ``time_s`` and ``energy_j`` are of a measured run on ``card``, ``None`` if nothing was measured.
    """

    name: str
    width: Width
    flops: float
    least_bytes: float
    speed_ceiling_flops_s: float
    efficiency_ceiling_flops_j: float
    time_s: float | None = None
    energy_j: float | None = None
    card: str | None = None

    @property
    def intensity(self) -> float:
        """Flops for each of the least bytes, in flop/byte."""
        return self.flops / self.least_bytes

    @property
    def speed_flops_s(self) -> float | None:
        """Flop per second that were reached."""
        return None if self.time_s is None else self.flops / self.time_s

    @property
    def efficiency_flops_j(self) -> float | None:
        """Flop per joule that were reached."""
        return None if self.energy_j is None else self.flops / self.energy_j

    @property
    def share_of_speed(self) -> float | None:
        """The share of the roof that was reached in time."""
        return _share(self.speed_flops_s, self.speed_ceiling_flops_s)

    @property
    def share_of_efficiency(self) -> float | None:
        """The share of the roof that was reached in energy."""
        return _share(self.efficiency_flops_j, self.efficiency_ceiling_flops_j)


def _share(reached: float | None, ceiling: float) -> float | None:
    return None if reached is None else reached / ceiling


def roofline_points_of(source: Path, profile: GpuProfile) -> tuple[RooflinePoint, ...]:
    """Place what a path holds: a folder of ``eatss codegen``, or what ``eatss measure`` wrote.

    A folder stands at the sizes that are its defaults.

    Raises:
        InputError: ``EATSS-B030`` a measurement has no time or no energy, the path is neither, or
            its flops or bytes are not known. Codes of a damaged folder (``EATSS-V002``, ``V003``)
            or measurement (``EATSS-E070``) stay.
    """
    if source.is_dir():
        return (_placed_folder(source, profile),)
    return tuple(_placed_measurement(one, profile, source) for one in _measurements(source))


def _placed_folder(folder: Path, profile: GpuProfile) -> RooflinePoint:
    program = load_program(folder)
    work = count_work(program, complete_sizes(program, {}))
    return _placed(program.name, program.dtype, work, profile, folder)


def _placed_measurement(found: Measurement, profile: GpuProfile, source: Path) -> RooflinePoint:
    name = found.program
    if found.variant:
        name = found.variant if found.variant.startswith(name) else f"{name} {found.variant}"
    for what, value in (("time", found.time_s), ("energy", found.energy_j)):
        if not value:
            reasons = [one.reason for one in found.missing if one.what.startswith(what)]
            why = "; ".join(reasons) or found.reason or f"its status is {found.status}"
            raise input_error(
                "EATSS-B030",
                f"'{source}' has no {what} of '{name}': {why}",
                hint="measure it again where the meter works, or give the program's folder",
            )
    return replace(
        _placed(name, found.dtype, found, profile, source),
        time_s=found.time_s,
        energy_j=found.energy_j,
        card=None if found.device is None else found.device.name,
    )


def _placed(
    name: str, dtype: str, work: CountedWork | Measurement, profile: GpuProfile, source: Path
) -> RooflinePoint:
    width, flops, least_bytes = WIDTH_OF_DTYPE.get(dtype), work.flops, work.least_bytes
    if not flops or not least_bytes or width is None:
        reason = "; ".join(sorted({one.reason for one in work.missing}))
        if width is None:
            reason = f"it computes in {dtype}"
        elif flops == 0:
            reason = "it does no floating-point operation"
        raise input_error(
            "EATSS-B030",
            f"'{name}' in '{source}' has no intensity: {reason or 'nothing counts its work'}",
            hint="generate the program again; loops with sizes that are known are counted",
        )
    machine, intensity = roofline_of(profile, width), flops / least_bytes
    return RooflinePoint(
        name=name,
        width=width,
        flops=float(flops),
        least_bytes=float(least_bytes),
        speed_ceiling_flops_s=float(machine.speed_flops_s(intensity)),
        efficiency_ceiling_flops_j=float(machine.efficiency_flops_j(intensity)),
    )


def _measurements(path: Path) -> tuple[Measurement, ...]:
    listed: object = None
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        why = "its JSON is no object"
        if isinstance(document, Mapping):
            why = "its JSON holds no measurement"
            listed = document.get("measurements", [document] if "time_s" in document else None)
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError):
        why = "it is no JSON"
    if not isinstance(listed, list) or not listed:
        raise input_error(
            "EATSS-B030",
            f"'{path}' is neither a folder of a program nor a measurement: {why}",
            hint="make one with `eatss codegen FILE.c -o DIR` or `eatss measure DIR --format json`",
        )
    return tuple(map(measurement_from_dict, listed))
