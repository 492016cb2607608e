"""The figures of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eatss.gpu.calibration import Calibration

SCHEMA_VERSION = 1

FIGURES_IN_WORDS: Mapping[str, tuple[str, str]] = {
    "threads_per_block": ("threads a block (T_P_B)", ""),
    "threads_per_warp": ("threads a warp (T_P_W)", ""),
    "registers_per_sm": ("registers an SM (R_P_S)", ""),
    "registers_per_block": ("registers a block (R_P_B)", ""),
    "registers_per_thread": ("registers a thread (R_P_T)", ""),
    "l1_shared_bytes": ("L1 + shared memory an SM (L1_SH)", "KiB"),
    "l2_bytes": ("L2 cache", "MiB"),
    "sm_count": ("streaming multiprocessors", ""),
    "max_threads_per_sm": ("threads an SM", ""),
    "max_blocks_per_sm": ("blocks an SM", ""),
    "shared_per_sm_bytes": ("shared memory an SM", "KiB"),
    "shared_per_block_bytes": ("shared memory a block, default", "KiB"),
    "shared_per_block_optin_bytes": ("shared memory a block, opt-in", "KiB"),
    "base_clock_mhz": ("base clock", "MHz"),
    "boost_clock_mhz": ("boost clock", "MHz"),
    "memory_bytes": ("memory", "GiB"),
    "bandwidth_gb_s": ("memory bandwidth", "GB/s"),
    "peak_fp64_gflops": ("peak FP64", "GFLOP/s"),
    "peak_fp64_tensor_gflops": ("peak FP64, tensor cores", "GFLOP/s"),
    "peak_fp32_gflops": ("peak FP32", "GFLOP/s"),
    "peak_tf32_tensor_gflops": ("peak TF32, tensor cores", "GFLOP/s"),
    "tdp_w": ("thermal design power", "W"),
}
"""What each figure of a profile is, and the unit that people read it in, in order of display."""

FIGURES: tuple[str, ...] = tuple(FIGURES_IN_WORDS)
"""The fields of a profile that are figures, each with a source, in order of display."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where figures come from."""

    key: str
    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """Limits and figures of one card.

    The first block is Table I of EATSS. ``None`` means that no source gives the
    figure. ``sources`` pairs each figure's field name with the key of its source
    in ``bibliography``; ``notes`` says what a figure means where that is not
    obvious. ``calibration`` is what was measured of such a card, ``None`` if nobody did.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    architecture: str
    compute_capability: tuple[int, int]

    threads_per_block: int
    threads_per_warp: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    l1_shared_bytes: int
    l2_bytes: int

    sm_count: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_per_block_optin_bytes: int
    base_clock_mhz: int | None
    boost_clock_mhz: int | None
    memory_bytes: int
    bandwidth_gb_s: float
    peak_fp64_gflops: float | None
    peak_fp64_tensor_gflops: float | None
    peak_fp32_gflops: float | None
    peak_tf32_tensor_gflops: float | None
    tdp_w: float | None

    sources: tuple[tuple[str, str], ...]
    bibliography: tuple[Source, ...]
    notes: tuple[tuple[str, str], ...] = ()
    calibration: Calibration | None = None

    @property
    def calibrated(self) -> bool:
        """Whether every coefficient was measured on cards of this kind."""
        return self.calibration is not None and not self.calibration.missing
