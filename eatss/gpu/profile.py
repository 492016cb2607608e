"""The figures of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.gpu.calibration import Calibration
from eatss.shown import Shown, figure

SCHEMA_VERSION = 1

FIGURES: tuple[str, ...] = (
    "threads_per_block",
    "threads_per_warp",
    "registers_per_sm",
    "registers_per_block",
    "registers_per_thread",
    "l1_shared_bytes",
    "l2_bytes",
    "sm_count",
    "max_threads_per_sm",
    "max_blocks_per_sm",
    "shared_per_sm_bytes",
    "shared_per_block_bytes",
    "shared_per_block_optin_bytes",
    "base_clock_mhz",
    "boost_clock_mhz",
    "memory_bytes",
    "bandwidth_gb_s",
    "peak_fp64_gflops",
    "peak_fp64_tensor_gflops",
    "peak_fp32_gflops",
    "peak_tf32_tensor_gflops",
    "tdp_w",
)
"""The fields of a profile that are figures, each with a source, in order of display."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where figures come from."""

    key: str
    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile(Shown):
    """Limits and figures of one card.

    The first block is Table I of EATSS. ``None`` means that no source gives the
    figure. ``sources`` pairs each figure's field name with the key of its source
    in ``bibliography``; ``notes`` says what a figure means where that is not
    obvious. ``calibration`` is what was measured of such a card, ``None`` if nobody did.
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

    @property
    def calibrated(self) -> bool:
        """Whether every coefficient was measured on cards of this kind."""
        return self.calibration is not None and not self.calibration.missing
