"""Coefficients of cards that nobody characterised: another card's, scaled by specifications.

They are guesses, and every output says so. The other card is the H200 that comes with eatss.

From a detected card to a profile: the shipped one that fits, or one built from the card.

Codes: G030 the driver does not report all that a profile needs, G030 a compute
capability that is unknown or older than those in the table below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from eatss.base.diagnostics import input_error
from eatss.base.frozen import Numbers
from eatss.base.targets import Capability
from eatss.cards.detect import DetectedGpu
from eatss.cards.load import list_profiles, named_profile
from eatss.cards.profile import (
    COEFFICIENTS,
    FIGURES,
    TABLES,
    Coefficients,
    GpuProfile,
    Source,
)

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

PROCESS_POWER = {"12 nm": 0.75, "8 nm": 0.46, "7 nm": 0.4, "4 nm": 0.28}
"""Power of a circuit at one speed by the process of its chip, over that of TSMC's 16 nm.

TSMC's 12 nm takes 25 % less than its 16 nm, its 7 nm 60 % less; its 5 nm, which 4N is of, 30 % less
than 7 nm. Samsung's 10LPE takes 40 % less than its 14 nm, 10LPP 15 % less than that, 8LPP 10 % less
again [the makers' announcements, in AnandTech, *Samsung and TSMC roadmaps*, 2017, and Tom's
Hardware, *TSMC upgrades 7nm, 5nm processes*, 2019].
"""

MEMORY_PJ_BIT = {"HBM": 6.0, "GDDR6": 7.5, "GDDR7": 5.0, "LPDDR": 6.0}
"""Energy of a bit from or to memory by its kind.

HBM2E and GDDR6 (GDDR6X takes 3 % less) [Micron, Ultra-Bandwidth Solutions]; GDDR7, 50 % more
efficient than GDDR6 [Micron]. Other HBM is taken to be HBM2E, and so is LPDDR, of which no such
figure was found.
"""

_MEMORY_RATES = ("dram_read_gb_s", "dram_write_gb_s", "dram_copy_gb_s")
_ON_CHIP_RATES = ("l2_gb_s", "l2_torn_gb_s", "l1_gb_s")
_MEMORY_PRICES = ("dram_read_byte_pj", "dram_write_byte_pj")
_PEAKS = ("fp32_per_cycle", "fp64_per_cycle")
_POWERS = ("constant_w", "idle_w", "active_idle_w")


def calibration_of(profile: GpuProfile) -> Coefficients:
    """Return every coefficient of a card: its own where it has it, else a scaled one.

    Where its clock is held (``clock_share``) rates of the chip fall with it, and prices with the
    voltage. Memory keeps its own, and power at rest, of which no part is known to fall.
    """
    own = _values(profile)
    found = own if len(own) == len(COEFFICIENTS) else {**scaled(profile), **own}
    return found if profile.clock_share == 1.0 else _held(found, profile.clock_share)


def _held(found: Coefficients, share: float) -> dict[str, float]:
    voltage = voltage_share(share, found["voltage_floor"])
    factors = (
        dict.fromkeys(("clock_mhz", *_ON_CHIP_RATES), share)
        | dict.fromkeys(_MEMORY_PRICES, 1.0)
        | {"voltage_floor": voltage**-0.5}  # of the voltage at its own clock
    )
    return {
        name: value * factors.get(name, _of_chip(name, voltage)) for name, value in found.items()
    }


def _of_chip(name: str, price: float) -> float:
    """Return the factor of a coefficient that is like others of its unit."""
    return price if COEFFICIENTS[name][0] in ("pJ", "pJ/B") else 1.0


def scaled(profile: GpuProfile) -> dict[str, float]:
    """Return the coefficients of :data:`REFERENCE`, scaled to a card by specifications.

    Rates of memory follow its bandwidth, those of caches SMs × clock, arithmetic its own peaks:
    the same share of them is reached. Latencies stay as many cycles.

    Prices follow the silicon, never the power limit. One of the chip goes with
    :data:`PROCESS_POWER`, at the voltage that the highest clock needs: along the reference's line,
    and no higher than its end, since a chip made for a higher clock reaches it there. One of memory
    goes with :data:`MEMORY_PJ_BIT`. Of the power that is drawn whatever runs, half is taken to be
    of the SMs and half of memory, by its bandwidth: 81 W of an H100 PCIe and 50 W of a V100, where
    80 W and 53 W were seen at rest.
    """
    return dict(_scaled(profile, named_profile(REFERENCE)))


@lru_cache(maxsize=64)
def _scaled(profile: GpuProfile, reference: GpuProfile) -> Coefficients:
    found = _values(reference)
    bandwidth = profile.bandwidth_gb_s / reference.bandwidth_gb_s
    (process, memory), (usual_process, usual_memory) = _silicon(profile), _silicon(reference)
    floor = found["voltage_floor"]
    voltage = voltage_share(min(1.0, _clock_mhz(profile) / _clock_mhz(reference)), floor)
    price = PROCESS_POWER[process] / PROCESS_POWER[usual_process] * voltage
    factors = (
        dict.fromkeys(_POWERS, (profile.sm_count / reference.sm_count + bandwidth) / 2)
        | dict.fromkeys(_MEMORY_RATES, bandwidth)
        | dict.fromkeys(_ON_CHIP_RATES, _cycles(profile) / _cycles(reference))
        | dict.fromkeys(_MEMORY_PRICES, MEMORY_PJ_BIT[memory] / MEMORY_PJ_BIT[usual_memory])
        | {"voltage_floor": voltage**-0.5}  # of the voltage at its own clock
    )
    for name in found:
        found[name] *= factors.get(name, _of_chip(name, price))
    found["clock_mhz"] = _clock_mhz(profile)
    for name, own, others in zip(_PEAKS, _peaks(profile), _peaks(reference), strict=True):
        found[name] *= own / others
    return found


def _silicon(profile: GpuProfile) -> tuple[str, str]:
    """Return process and kind of memory, of the last generation up to the card's."""
    known = [one for one in GENERATIONS if one <= profile.compute_capability]
    return GENERATIONS[max(known, default=min(GENERATIONS))][2:]


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


CLOCK_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
"""Shares of the highest clock that tables of energy over clock have. Of lower ones no voltage was
fitted: a power limit brought an H200 to 0.68 of its clock."""

_Clock = TypeVar("_Clock", float, "npt.NDArray[np.float64]")


def voltage_share(clock: _Clock, floor: float) -> _Clock:
    """Return the share of a price that is left at a share of the highest clock.

    Energy goes with the square of the voltage, and the voltage falls with the clock along a line
    that would end at ``floor``.
    """
    voltage = floor + (1 - floor) * clock
    return voltage * voltage


LEAST_CLOCK = 0.2
"""Share of the highest clock below which a power limit is not taken to go."""

_HALVINGS = 24


def clock_within(power_w: Callable[[Any], Any], limit_w: float, high: Any) -> Any:
    """Return the shares of the highest clock, ``high`` at most, that keep power to a limit.

    Args:
        power_w: mean powers in W at such shares.
        limit_w: what the card may draw.
        high: shares of one, an entry a candidate.
    """
    import numpy as np  # noqa: PLC0415 - what is read of a profile needs none

    low = np.full_like(high, LEAST_CLOCK)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = power_w(high) > limit_w
        if not above.any():
            return high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            over = power_w(middle) > limit_w
            low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(above, low, 1.0)


MEMORY_TOLERANCE = 0.1
"""ECC in GDDR takes a sixteenth of the memory, the driver a little more."""

VARIANT_WORDS = frozenset(
    {"pcie", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "nvl", "mig"}
    | {"ti", "super", "laptop", "mobile", "max", "d", "ada"}
)
"""Words of a card's name that make it another card than the one without them."""

GENERATIONS: Mapping[Numbers, tuple[str, int, str, str]] = {
    tuple(map(int, key.split("."))): row for key, row in TABLES["generations"].items()
}
"""By compute capability: architecture, KiB of L1 and shared memory, process, kind of memory."""

REGISTERS_PER_THREAD = 255
"""The same on every compute capability from 3.5 to 12.1 (CUDA guide)."""

_REPORTED = (
    "threads_per_block",
    "threads_per_warp",
    "registers_per_sm",
    "registers_per_block",
    "l2_bytes",
    "sm_count",
    "max_threads_per_sm",
    "max_blocks_per_sm",
    "shared_per_sm_bytes",
    "shared_per_block_bytes",
    "shared_per_block_optin_bytes",
    "memory_bytes",
    "bandwidth_gb_s",
)
_REPORTED_OPTIONAL = {"boost_clock_mhz": "max_sm_clock_mhz", "tdp_w": "power_limit_w"}
_OWN = "write a profile for the card (a TOML file) and give its path"
_NOTES = {
    "boost_clock_mhz": "The highest SM clock that the driver allows.",
    "bandwidth_gb_s": "Memory clock × bus width × 2 transfers a clock.",
    "tdp_w": "The card's default power limit.",
}


def match_profile(detected: DetectedGpu) -> GpuProfile | None:
    """Return the profile, of the known ones, of a detected card.

    A profile fits when all words of one of its names occur in the card's name, no
    word that marks a variant (PCIe, Ti, …) is left over, and compute capability,
    number of SMs and memory size agree as far as they are known. ``None`` if none fits.
    """
    words = _words(detected.name)
    fitting = [
        (_best_name(profile, words), profile)
        for profile in list_profiles()
        if _figures_agree(detected, profile)
        and (words & VARIANT_WORDS) <= _words(f"{profile.title} {profile.name}")
    ]
    named = [(size, profile) for size, profile in fitting if size]
    if not named:
        return None
    return min(named, key=lambda pair: (-pair[0], pair[1].name))[1]


def profile_from_device(detected: DetectedGpu) -> GpuProfile:
    """Build a profile from what the driver reports of a live card.

    The size of L1 + shared memory and the registers per thread, which no driver
    reports, come from the CUDA guide's table; of a card that is newer than the table, L1 + shared
    memory is taken to be no more than the shared memory. Peak rates stay unknown.

    Raises:
        InputError: the driver does not report all that a profile needs, or the card's
            compute capability is unknown or older than those in the table.
    """
    capability = detected.compute_capability
    if capability is None or not (is_tabulated(capability) or capability > max(GENERATIONS)):
        shown = "unknown" if capability is None else ".".join(map(str, capability))
        raise input_error(
            "EATSS-G030",
            f"{detected.name}: how L1 and shared memory divide is not known for compute "
            f"capability {shown}",
            hint=_OWN,
        )
    missing = [field for field in _REPORTED if getattr(detected, field) is None]
    if missing:
        raise input_error(
            "EATSS-G030",
            f"{detected.name}: the driver does not report {', '.join(missing)}",
            hint=f"install CuPy (pip install 'eatss[cuda13]'), which reports more; or {_OWN}",
        )
    reported = dict(zip(_REPORTED, _REPORTED, strict=True)) | _REPORTED_OPTIONAL
    told = {field: getattr(detected, name) for field, name in reported.items()}
    told |= {
        "registers_per_thread": REGISTERS_PER_THREAD,
        "l1_shared_bytes": detected.shared_per_sm_bytes,
    }
    by_guide, architecture = {"registers_per_thread"}, "newer than known"
    if is_tabulated(capability):
        architecture, l1_shared_kib, _, _ = GENERATIONS[capability]
        told["l1_shared_bytes"] = l1_shared_kib * 1024
        by_guide.add("l1_shared_bytes")
    driver = detected.driver_version or "of unknown version"
    return GpuProfile(
        name="-".join(re.findall(r"[a-z0-9]+", detected.name.lower())) or "gpu",
        title=f"{detected.name}, as its driver describes it",
        aliases=(),
        architecture=architecture,
        compute_capability=capability,
        sources=tuple(
            (name, "cuda-guide" if name in by_guide else "driver")
            for name in FIGURES
            if told.get(name) is not None
        ),
        bibliography=(
            Source(key="driver", title=f"Reported by the driver ({driver}) of {detected.uuid}"),
            Source(
                key="cuda-guide",
                title="NVIDIA CUDA C++ Programming Guide, technical specifications",
                url="https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
            ),
        ),
        notes=tuple(_NOTES.items()),
        **(dict.fromkeys(FIGURES) | told),  # type: ignore[arg-type]
    )


def is_tabulated(capability: Capability | None) -> bool:
    """Return whether limits of a compute capability are known that no driver reports."""
    return capability in GENERATIONS


def _figures_agree(detected: DetectedGpu, profile: GpuProfile) -> bool:
    memory = profile.memory_bytes
    return (
        detected.compute_capability in (None, profile.compute_capability)
        and detected.sm_count in (None, profile.sm_count)
        and abs((detected.memory_bytes or memory) - memory) <= MEMORY_TOLERANCE * memory
    )


def _best_name(profile: GpuProfile, words: frozenset[str]) -> int:
    """Return how many words the longest of the profile's names has that occurs in ``words``."""
    names = (_words(name) for name in (profile.name, *profile.aliases))
    return max((len(name) for name in names if name <= words), default=0)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))
