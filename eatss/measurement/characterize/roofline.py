"""Time, energy and power of an algorithm, from what a flop and a byte cost on a card.

The model is that of Choi and Vuduc, *A roofline model of energy* (GT-CSE-2012-01). An algorithm
does ``W`` flops and moves ``Q`` bytes; ``I = W / Q`` is its intensity in flop/byte. Flops and bytes
overlap in time, so the slower of the two sets the time. Their energies add up, and constant power
is drawn for as long as the algorithm runs.

Brackets in docstrings name the paper's section and equation. Where a printed formula does not hold,
the docstring says so and what stands here instead. Methods that take an intensity take one or an
array of them, and return an array of the same shape; one intensity gives an array without axes,
which ``float`` reads. An infinite intensity stands for no bytes at all. Intensities are positive.

:class:`PowerLimitedRoofline` is one under a power limit: the clock falls until the card keeps to
it. At the end stands what a card's coefficients say of a program: its energy roofline, and where a
program stands.
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
from eatss.cards.match import calibration_of, clock_within, voltage_share
from eatss.cards.profile import Coefficients, GpuProfile
from eatss.measurement.assemble import CountedWork, count_work
from eatss.measurement.characterize.benchmark import LINE_BYTES, WARP, Width
from eatss.measurement.measurement import Measurement, measurement_from_dict
from eatss.program import load_program
from eatss.verify.sizes import complete_sizes

_PICO = 1e-12

_Floats: TypeAlias = NDArray[np.float64]


class Lines:
    """What a flop takes over intensities in flop/byte, all positive, and what follows of it.

    Methods take numbers or arrays and return ``float64``: roofline, arch line, power line.
    """

    __slots__ = ()

    def each(self, intensity: _Floats) -> tuple[_Floats, _Floats]:
        """Return the seconds and the joules of one flop, constant power included."""
        raise NotImplementedError

    def time_s(self, work_flops: ArrayLike, intensity: ArrayLike) -> _Floats:
        """Return the time T in s of so many flops at an intensity [2.2, eq. (3)]."""
        return _array(work_flops) * self.each(_array(intensity))[0]

    def energy_j(self, work_flops: ArrayLike, intensity: ArrayLike) -> _Floats:
        """Return the energy E in J of so many flops at an intensity [2.2, eq. (4)]."""
        return _array(work_flops) * self.each(_array(intensity))[1]

    def speed_flops_s(self, intensity: ArrayLike) -> _Floats:
        """Return the roofline: flop per second at an intensity [2.3]."""
        return 1 / self.time_s(1.0, intensity)

    def efficiency_flops_j(self, intensity: ArrayLike) -> _Floats:
        """Return the arch line: flop per joule, which is performance per watt [2.3]."""
        return 1 / self.energy_j(1.0, intensity)

    def power_w(self, intensity: ArrayLike) -> _Floats:
        """Return the powerline: mean power P in W at an intensity [3, eq. (7)]."""
        flop_s, flop_j = self.each(_array(intensity))
        return flop_j / flop_s


@frozen
class EnergyRoofline(Lines):
    """What flops and bytes cost on a card, and what follows for an algorithm [2, table 1].

    ``flops_s``, ``bytes_s``: flops and bytes in a second, at most. ``flop_j``, ``byte_j``: joules
    of one flop and of one byte, constant power left out (ε_flop, ε_mem). ``constant_w``: watts
    drawn whatever runs (π0); more than an idle card draws [2.5, 5.1]. ``power_limit_w``: the most
    watts that the card may draw, None where there is no limit; what follows from it is in
    ``PowerLimitedRoofline``.

    Raises:
        ValueError: A rate or a cost is not positive and finite, or constant power is negative or
            not below the power limit.
    """

    flops_s: float
    bytes_s: float
    flop_j: float
    byte_j: float
    constant_w: float = 0.0
    power_limit_w: float | None = None

    def __post_init__(self) -> None:
        costs = (self.flops_s, self.bytes_s, self.flop_j, self.byte_j)
        if not all(0 < one < math.inf for one in costs):
            raise ValueError(f"rates and costs have to be positive and finite, not {costs}")
        if not 0 <= self.constant_w < (self.power_limit_w or math.inf):
            raise ValueError(f"constant_w is {self.constant_w}, not from 0 to the power limit")

    @property
    def flop_s(self) -> float:
        """τ_flop: seconds of one flop at full throughput."""
        return 1 / self.flops_s

    @property
    def byte_s(self) -> float:
        """τ_mem: seconds of one byte at full throughput."""
        return 1 / self.bytes_s

    @property
    def time_balance(self) -> float:
        """B_τ in flop/byte: where flops and bytes take equally long [2.2, eq. (3)]."""
        return self.byte_s / self.flop_s

    @property
    def energy_balance(self) -> float:
        """B_ε in flop/byte: where flops and bytes take equal energy [2.2, eq. (4)].

        Constant power is left out. Tables 1 and 2 give the unit as flop per joule, which is a slip:
        a ratio of J/byte to J/flop is in flop/byte, as B_τ is.
        """
        return self.byte_j / self.flop_j

    @property
    def least_flop_j(self) -> float:
        """ε̂_flop in J: the least energy of one flop, constant power included [2.2]."""
        return self.flop_j + self.constant_w * self.flop_s

    @property
    def flop_efficiency(self) -> float:
        """η_flop: the share of ``least_flop_j`` that is the flop's own, 1 without constant power.

        [2.2, table 1]
        """
        return self.flop_j / self.least_flop_j

    @property
    def flop_power_w(self) -> float:
        """π_flop in W: what flops draw at full speed, constant power left out [3]."""
        return self.flop_j / self.flop_s

    @property
    def half_efficiency_intensity(self) -> float:
        """The intensity in flop/byte where a joule does half as many flops as it can at best.

        It is where bytes take as much as flops at best, ``I = B̂_ε(I)`` [2.3, eqs. (5), (6)], and
        B_ε without constant power: η B_ε where that is at least B_τ, and otherwise
        ``(η B_ε + (1 − η) B_τ) / (2 − η)``, which is below B_τ; always the larger of the two.
        """
        eta = self.flop_efficiency
        in_compute_bound = eta * self.energy_balance
        in_memory_bound = (in_compute_bound + (1 - eta) * self.time_balance) / (2 - eta)
        return max(in_compute_bound, in_memory_bound)

    @property
    def balance_gap(self) -> float:
        """B_ε / B_τ: how much harder energy is than time, constant power left out [2.4]."""
        return self.energy_balance / self.time_balance

    @property
    def race_to_halt(self) -> bool:
        """Whether what is compute-bound in time is so in energy too [2.4, 5.2].

        If so, every intensity from B_τ on reaches at least half of the best flops per joule, and
        the fastest code is a good guess at the code that saves most.
        """
        return self.flop_efficiency * self.energy_balance <= self.time_balance

    def each(self, intensity: _Floats) -> tuple[_Floats, _Floats]:
        """Return seconds and joules of one flop, without a limit of power [2.2, eqs. (3), (4)]."""
        flop_s = np.maximum(self.flop_s, self.byte_s / intensity)
        return flop_s, self.flop_j + self.byte_j / intensity + self.constant_w * flop_s

    @property
    def most_power_w(self) -> float:
        """The most power that any intensity asks for, drawn at I = B_τ [3, eq. (8)].

        Eq. (8) is for no constant power; here it is added.
        """
        return self.constant_w + self.flop_power_w * (1 + self.balance_gap)

    @property
    def best_flops_j(self) -> float:
        """Flops for a joule, at most."""
        return 1 / self.least_flop_j


def _array(values: ArrayLike) -> _Floats:
    return np.asarray(values, dtype=np.float64)


WIDTHS: tuple[Width, ...] = ("fp64", "fp32")

FLOPS_OF_FMA = 2


def roofline_from_coefficients(
    coefficients: Coefficients, width: Width, sm_count: int, limit_w: float | None
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
    return EnergyRoofline(
        flops_s=coefficients[f"{width}_per_cycle"] * FLOPS_OF_FMA * cycles_s,
        bytes_s=coefficients["dram_read_gb_s"] * 1e9,
        flop_j=_PICO * (coefficients[f"{width}_pj"] / (WARP * FLOPS_OF_FMA)),
        byte_j=_PICO
        * (
            coefficients["dram_read_byte_pj"]
            + coefficients["l2_byte_pj"]
            + coefficients["l1_wavefront_pj"] / LINE_BYTES
        ),
        constant_w=coefficients["constant_w"],
        power_limit_w=limit_w,
    )


@frozen
class PowerLimitedRoofline(Lines):
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
    def of(cls, coefficients: Coefficients, machine: EnergyRoofline) -> PowerLimitedRoofline:
        """Return it for what :func:`roofline_from_coefficients` made of the same coefficients."""
        return cls(
            machine=machine,
            memory_byte_j=coefficients["dram_read_byte_pj"] * 1e-12,
            voltage_floor=coefficients["voltage_floor"],
            overlap=coefficients["overlap"],
        )

    def clock(self, intensity: ArrayLike) -> _Floats:
        """Return the clock as a share of the highest: 1, or what the power limit leaves."""
        values = _array(intensity)
        limit_w = self.machine.power_limit_w
        free = np.ones_like(values)

        def power_w(clock: _Floats) -> _Floats:
            flop_s, flop_j = self._at(values, clock)
            return flop_j / flop_s

        return free if limit_w is None else _array(clock_within(power_w, limit_w, free))

    def each(self, intensity: _Floats) -> tuple[_Floats, _Floats]:
        """Return seconds and joules of one flop at the clock that the limit leaves."""
        return self._at(intensity, self.clock(intensity))

    def _at(self, intensity: _Floats, clock: _Floats) -> tuple[_Floats, _Floats]:
        one = self.machine
        arithmetic_s, memory_s = one.flop_s / clock, one.byte_s / intensity
        longer_s = np.maximum(arithmetic_s, memory_s)
        share = np.minimum(arithmetic_s, memory_s) / longer_s
        flop_s = longer_s * (1 + share**self.overlap) ** (1 / self.overlap)
        at_voltage = one.flop_j + (one.byte_j - self.memory_byte_j) / intensity
        dynamic_j = voltage_share(clock, self.voltage_floor) * at_voltage
        return flop_s, dynamic_j + self.memory_byte_j / intensity + one.constant_w * flop_s


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
    if not (found.time_s and found.energy_j):
        reasons = (one.reason for one in found.missing if one.what in ("time_s", "energy_j"))
        raise input_error(
            "EATSS-B030",
            f"'{source}' has no time or no energy of '{name}': "
            f"{'; '.join(reasons) or found.reason}",
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
        reasons = "; ".join(sorted({one.reason for one in work.missing}))
        raise input_error(
            "EATSS-B030",
            f"'{name}' in '{source}' has no intensity: "
            f"{reasons or 'it does nothing in float or double'}",
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
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        listed = document.get("measurements", [document])
        return tuple(map(measurement_from_dict, listed))
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, AttributeError, TypeError, RecursionError):
        why = "it is no JSON of `eatss measure`"
    raise input_error(
        "EATSS-B030",
        f"'{path}' is neither a folder of a program nor a measurement: {why}",
        hint="make one with `eatss codegen FILE.c -o DIR` or `eatss measure DIR --format json`",
    )
