"""Coefficients of cards that nobody characterised: another card's, scaled by specifications.

They are guesses, and every output says so. The other card is the H200 that comes with eatss.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from eatss.cards.load import named_profile
from eatss.cards.profile import COEFFICIENTS, GpuProfile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

REFERENCE = "h200"
"""Shipped profile whose calibration is scaled."""

FALLBACK_LIMIT_W = 300.0
FALLBACK_CLOCK_MHZ = 1500.0
FP32_PER_CYCLE = 64.0
FP64_SHARE = 1 / 32
"""64-bit multiply-adds for each of 32 bits where a profile tells no peak."""

_MEMORY_RATES = ("dram_read_gb_s", "dram_write_gb_s", "dram_copy_gb_s")
_ON_CHIP_RATES = ("l2_gb_s", "l2_torn_gb_s", "l1_gb_s")
_MEMORY_PRICES = ("dram_read_byte_pj", "dram_write_byte_pj")
_PEAKS = ("fp32_per_cycle", "fp64_per_cycle")
_POWERS = ("constant_w", "idle_w", "active_idle_w")


def calibration_of(profile: GpuProfile) -> Mapping[str, float]:
    """Return every coefficient of a card: its own where it has it, else a scaled one."""
    own = _values(profile)
    return own if len(own) == len(COEFFICIENTS) else {**scaled(profile), **own}


def scaled(profile: GpuProfile) -> dict[str, float]:
    """Return the coefficients of :data:`REFERENCE`, scaled to a card by specifications.

    Rates of memory follow its bandwidth, those of caches SMs × clock, arithmetic its own peaks:
    the same share of them is reached.
    Latencies stay as many cycles. A price of memory follows the power limit over bandwidth, one of
    the chip the limit over SMs × clock, also where a unit is slower. Powers follow the limit.
    """
    return dict(_scaled(profile, named_profile(REFERENCE)))


@lru_cache(maxsize=64)
def _scaled(profile: GpuProfile, reference: GpuProfile) -> Mapping[str, float]:
    found = _values(reference)
    power = (profile.tdp_w or FALLBACK_LIMIT_W) / (reference.tdp_w or FALLBACK_LIMIT_W)
    bandwidth = profile.bandwidth_gb_s / reference.bandwidth_gb_s
    chip = _cycles(profile) / _cycles(reference)
    for name in found:
        if name in _POWERS:
            found[name] *= power
        elif name in _MEMORY_RATES:
            found[name] *= bandwidth
        elif name in _ON_CHIP_RATES:
            found[name] *= chip
        elif name in _MEMORY_PRICES:
            found[name] *= power / bandwidth
        elif COEFFICIENTS[name][0] in ("pJ", "pJ/B"):
            found[name] *= power / chip
    found["clock_mhz"] = _clock_mhz(profile)
    for name, own, others in zip(_PEAKS, _peaks(profile), _peaks(reference), strict=True):
        found[name] *= own / others
    return found


def _values(profile: GpuProfile) -> dict[str, float]:
    if profile.calibration is None:
        return {}
    return {name: one.value for name, one in profile.calibration.coefficients}


def _clock_mhz(profile: GpuProfile) -> float:
    return float(profile.boost_clock_mhz or profile.base_clock_mhz or FALLBACK_CLOCK_MHZ)


def _cycles(profile: GpuProfile) -> float:
    """Return the cycles of all SMs in a microsecond."""
    return profile.sm_count * _clock_mhz(profile)


def _peaks(profile: GpuProfile) -> tuple[float, float]:
    """Return the peaks of an SM in multiply-adds a cycle, of 32 and of 64 bits."""
    fp32 = _per_cycle(profile, profile.peak_fp32_gflops) or FP32_PER_CYCLE
    return fp32, _per_cycle(profile, profile.peak_fp64_gflops) or fp32 * FP64_SHARE


def _per_cycle(profile: GpuProfile, peak_gflops: float | None) -> float | None:
    """Return the multiply-adds of an SM in a cycle that make a peak."""
    return None if peak_gflops is None else peak_gflops * 1e3 / 2 / _cycles(profile)


_Clock = TypeVar("_Clock", float, "npt.NDArray[np.float64]")


def voltage_share(clock: _Clock, floor: float) -> _Clock:
    """Return the share of a price that is left at a share of the highest clock.

    Energy goes with the square of the voltage, and the voltage falls with the clock along a line
    that would end at ``floor``.
    """
    voltage = floor + (1 - floor) * clock
    return voltage * voltage
