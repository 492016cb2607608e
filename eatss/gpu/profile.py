"""The figures of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eatss.gpu.calibration import Calibration
from eatss.shown import Shown, figure

SCHEMA_VERSION = 1

Tf32 = Literal["off", "on", "split"]
"""Whether tensor cores may multiply floats: not, rounded to TF32, or each as two such numbers."""

TIMES_TF32: Mapping[str, float] = {"tf32": 1.0, "fp16": 2.0, "int8": 4.0}
"""Products of other formats for each of TF32: of halves with sums in floats, and of bytes with sums
in integers, at least. So in the tables of all cards that have profiles."""

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
class GpuProfile(Shown):
    """Limits and figures of one card; ``None`` means that no source gives the figure.

    Attributes:
        name: What ``--gpu`` calls it, ``"h200"``.
        title: Full name of the card.
        aliases: Other names of it.
        architecture: Generation, ``"Hopper"``.
        compute_capability: Major and minor, ``(9, 0)``.
        threads_per_block: Most threads of a block [EATSS, Table I: T_P_B].
        threads_per_warp: Threads of a warp [T_P_W].
        registers_per_sm: 32-bit registers of an SM [R_P_S].
        registers_per_block: Most 32-bit registers of a block [R_P_B].
        registers_per_thread: Most 32-bit registers of a thread [R_P_T].
        l1_shared_bytes: Bytes of L1 cache and shared memory of an SM together [L1_SH].
        l2_bytes: Bytes of L2 cache.
        sm_count: Streaming multiprocessors.
        max_threads_per_sm: Most threads of an SM.
        max_blocks_per_sm: Most blocks of an SM.
        shared_per_sm_bytes: Bytes of shared memory that an SM can have.
        shared_per_block_bytes: Bytes of shared memory that a block can have untold.
        shared_per_block_optin_bytes: Bytes that it can have if it asks for more.
        base_clock_mhz: Base clock in MHz.
        boost_clock_mhz: Boost clock in MHz.
        memory_bytes: Bytes of device memory.
        bandwidth_gb_s: Bandwidth of device memory, 10^9 bytes a second.
        peak_fp64_gflops: Peak of double precision, 10^9 operations a second, no tensor cores.
        peak_fp64_tensor_gflops: The same with tensor cores.
        peak_fp32_gflops: Peak of single precision, 10^9 operations a second.
        peak_tf32_tensor_gflops: Peak of TF32 on tensor cores, 10^9 operations a second.
        tdp_w: Thermal design power in watts.
        sources: The name of each figure with the key of its source in ``bibliography``.
        bibliography: Where figures come from.
        notes: What a figure means, by its name, where that is not obvious.
        calibration: What was measured of such a card, ``None`` if nobody did.
    """

    shown_by = "eatss.report.card_facts:profile_parts"

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

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        return (
            f"<GpuProfile {self.name}: {self.title}, compute capability {major}.{minor}, "
            f"{self.sm_count} SMs, {self.bandwidth_gb_s:g} GB/s, {figure(self.tdp_w, 'W')}>"
        )

    def peak_tensor_gflops(self, form: str) -> float | None:
        """Return the peak of products of a format, where a card has TF32 as well."""
        if form == "fp64":
            return self.peak_fp64_tensor_gflops
        single = self.peak_tf32_tensor_gflops
        return None if single is None else TIMES_TF32[form] * single

    @property
    def calibrated(self) -> bool:
        """Whether every coefficient was measured on cards of this kind."""
        return self.calibration is not None and not self.calibration.missing
