"""What a live card says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedGpu:
    """One card as NVML and CUDA report it; ``None`` means that neither does.

    ``readers`` names who answered (``NVML``, ``CuPy``). ``max_sm_clock_mhz`` is the
    highest clock the driver allows; ``bandwidth_gb_s`` follows from memory clock and
    bus width at two transfers a clock; ``power_limit_w`` is the card's default limit.
    """

    name: str
    uuid: str
    readers: tuple[str, ...]
    driver_version: str | None = None
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    shared_per_sm_bytes: int | None = None
    shared_per_block_bytes: int | None = None
    shared_per_block_optin_bytes: int | None = None
    registers_per_sm: int | None = None
    registers_per_block: int | None = None
    threads_per_block: int | None = None
    threads_per_warp: int | None = None
    max_threads_per_sm: int | None = None
    max_blocks_per_sm: int | None = None
    max_sm_clock_mhz: int | None = None
    bandwidth_gb_s: float | None = None
    power_limit_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The cards of this machine, and a sentence for each reader that could not be asked."""

    gpus: tuple[DetectedGpu, ...]
    reasons: tuple[str, ...]
    driver_version: str | None = None
