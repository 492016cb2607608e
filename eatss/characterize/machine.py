"""What a card's coefficients say of a program: its energy roofline, and where a program stands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eatss.characterize.energy_roofline import EnergyRoofline
from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular
from eatss.gpu.profile import GpuProfile
from eatss.gpu.scaled import calibration_of
from eatss.measure.measurement import Measurement
from eatss.measure.measurement_json import measurement_from_dict
from eatss.measure.sizes import complete_sizes
from eatss.measure.work import count_work
from eatss.program import load_program

Width: TypeAlias = Literal["fp32", "fp64"]

WIDTHS: tuple[Width, ...] = ("fp64", "fp32")
WIDTH_OF_DTYPE: Mapping[str, Width] = {"float": "fp32", "double": "fp64"}

LANES = 32
FLOPS_OF_FMA = 2
LINE_BYTES = 128
_MOST_BYTES = 64 << 20
_LEAST_CLOCK = 0.02
_HALVINGS = 40

_Floats: TypeAlias = NDArray[np.float64]


def roofline_of(profile: GpuProfile, width: Width) -> EnergyRoofline:
    """Return the energy roofline of a card for multiply-adds of a width.

    A byte is one that is read from memory: its way through L2 and L1 is paid too. The power limit
    is the profile's ``tdp_w``. A card without a calibration gets scaled coefficients
    (:mod:`eatss.gpu.scaled`), which are guesses.

    Raises:
        InputError: ``EATSS-B033``, the coefficients make no machine, as where a price is zero.
    """
    found = calibration_of(profile)
    cycles_s = profile.sm_count * found["clock_mhz"] * 1e6
    try:
        return EnergyRoofline.from_rates(
            flops_s=found[f"{width}_per_cycle"] * FLOPS_OF_FMA * cycles_s,
            bytes_s=found["dram_read_gb_s"] * 1e9,
            flop_pj=found[f"{width}_pj"] / (LANES * FLOPS_OF_FMA),
            byte_pj=found["dram_read_byte_pj"]
            + found["l2_byte_pj"]
            + found["l1_wavefront_pj"] / LINE_BYTES,
            constant_w=found["constant_w"],
            power_limit_w=profile.tdp_w,
        )
    except ValueError as error:
        raise input_error(
            "EATSS-B033",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredClocks:
    """A machine that keeps to its power limit as cards do: by lower clocks of the SMs.

    With the clock their voltage falls, and what runs at it takes ``v²`` of its energy, as in
    :mod:`eatss.characterize.fit`. Choi and Vuduc leave power limits open [section 5.2]. On an H200
    the intensity sweep takes up to 16 % more time and energy than this says, most where flops and
    bytes take equally long, and up to 26 % less than at full clock (``capped_time_s``).

    ``memory_byte_j`` is the part of ``machine.byte_j`` that is memory's own: its voltage stays.
    ``voltage_floor`` is that of the fit. Methods take intensities in flop/byte, all positive.
    """

    machine: EnergyRoofline
    memory_byte_j: float
    voltage_floor: float

    def clock(self, intensity: ArrayLike) -> _Floats:
        """Return the clock as a share of the highest: 1, or what the power limit leaves."""
        values = np.asarray(intensity, dtype=np.float64)
        high = np.ones_like(values)
        limit_w = self.machine.power_limit_w
        if limit_w is None:
            return high
        low = np.full_like(values, _LEAST_CLOCK)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            allowed = self._power_w(values, middle) <= limit_w
            low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
        return np.asarray(np.where(self.machine.power_w(values) <= limit_w, 1.0, low))

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
        one = self.machine
        return np.maximum(one.flop_s / clock, one.byte_s / intensity)

    def _flop_j(self, intensity: _Floats, clock: _Floats) -> _Floats:
        from eatss.characterize.fit import voltage_share  # noqa: PLC0415 - needs SciPy

        one = self.machine
        at_voltage = one.flop_j + (one.byte_j - self.memory_byte_j) / intensity
        share = voltage_share(clock, self.voltage_floor)
        constant = one.constant_w * self._flop_s(intensity, clock)
        return np.asarray(share * at_voltage + self.memory_byte_j / intensity + constant)

    def _power_w(self, intensity: _Floats, clock: _Floats) -> _Floats:
        return self._flop_j(intensity, clock) / self._flop_s(intensity, clock)


def lowered_of(profile: GpuProfile, width: Width) -> LoweredClocks:
    """Return :func:`roofline_of` with clocks that follow the power limit.

    Raises:
        InputError: ``EATSS-B033``, the coefficients make no machine.
    """
    found = calibration_of(profile)
    return LoweredClocks(
        machine=roofline_of(profile, width),
        memory_byte_j=found["dram_read_byte_pj"] * 1e-12,
        voltage_floor=found["voltage_floor"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
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
        speed = self.speed_flops_s
        return None if speed is None else speed / self.speed_ceiling_flops_s

    @property
    def share_of_efficiency(self) -> float | None:
        """The share of the roof that was reached in energy."""
        efficiency = self.efficiency_flops_j
        return None if efficiency is None else efficiency / self.efficiency_ceiling_flops_j


def placed_of(source: Path, profile: GpuProfile) -> tuple[Placed, ...]:
    """Place what a path holds: a folder of ``eatss codegen``, or what ``eatss measure`` wrote.

    A folder stands at the sizes that are its defaults.

    Raises:
        InputError: ``EATSS-B030`` a measurement has no time or no energy, ``EATSS-B031`` the path
            is neither, ``EATSS-B032`` its flops or bytes are not known. Codes of a damaged folder
            (``EATSS-V002``, ``V003``) or measurement (``EATSS-E070``, ``E071``) stay.
    """
    if source.is_dir():
        return (_placed_folder(source, profile),)
    return tuple(_placed_measurement(one, profile, source) for one in _measurements(source))


def _placed_folder(folder: Path, profile: GpuProfile) -> Placed:
    program = load_program(folder)
    work = count_work(program, complete_sizes(program, {}))
    reason = "; ".join(sorted({one.reason for one in work.missing}))
    return _placed(
        program.name, program.dtype, work.flops, work.least_bytes, profile, folder, reason
    )


def _placed_measurement(found: Measurement, profile: GpuProfile, source: Path) -> Placed:
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
    return _placed(
        name,
        found.dtype,
        found.flops,
        found.least_bytes,
        profile,
        source,
        "; ".join(sorted({one.reason for one in found.missing})),
        time_s=found.time_s,
        energy_j=found.energy_j,
        card=None if found.device is None else found.device.name,
    )


def _placed(
    name: str,
    dtype: str,
    flops: int | None,
    least_bytes: int | None,
    profile: GpuProfile,
    source: Path,
    reason: str,
    *,
    time_s: float | None = None,
    energy_j: float | None = None,
    card: str | None = None,
) -> Placed:
    width = WIDTH_OF_DTYPE.get(dtype)
    if not flops or not least_bytes or width is None:
        if width is None:
            reason = f"it computes in {dtype}"
        elif flops == 0:
            reason = "it does no floating-point operation"
        raise input_error(
            "EATSS-B032",
            f"'{name}' in '{source}' has no intensity: {reason or 'nothing counts its work'}",
            hint="generate the program again; loops with sizes that are known are counted",
        )
    machine = roofline_of(profile, width)
    intensity = flops / least_bytes
    return Placed(
        name=name,
        width=width,
        flops=float(flops),
        least_bytes=float(least_bytes),
        speed_ceiling_flops_s=float(machine.speed_flops_s(intensity)),
        efficiency_ceiling_flops_j=float(machine.efficiency_flops_j(intensity)),
        time_s=time_s,
        energy_j=energy_j,
        card=card,
    )


def _measurements(path: Path) -> tuple[Measurement, ...]:
    try:
        document: Any = json.loads(read_regular(path, _MOST_BYTES))
    except OSError as error:
        raise _neither(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise _neither(path, "it is no JSON") from None
    if not isinstance(document, Mapping):
        raise _neither(path, "its JSON is no object")
    listed = document.get("measurements", [document] if "time_s" in document else None)
    if not isinstance(listed, list) or not listed:
        raise _neither(path, "its JSON holds no measurement")
    return tuple(measurement_from_dict(one) for one in listed)


def _neither(path: Path, why: str) -> InputError:
    return input_error(
        "EATSS-B031",
        f"'{path}' is neither a folder of a program nor a measurement: {why}",
        hint="make one with `eatss codegen FILE.c -o DIR` or `eatss measure DIR --format json`",
    )
