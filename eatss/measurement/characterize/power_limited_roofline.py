"""An energy roofline under a power limit: the clock falls until the card keeps to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eatss.base.frozen import frozen
from eatss.cards.scaled import voltage_share
from eatss.measurement.characterize.benchmark import LINE_BYTES, WARP
from eatss.measurement.characterize.energy_roofline import EnergyRoofline

Width: TypeAlias = Literal["fp32", "fp64"]

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
