"""The rates and energies of a card, from its profile."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.gpu.profile import GpuProfile

FALLBACK_CLOCK_MHZ = 1500

SCHEDULERS = 4
"""Of an SM; each issues an instruction a cycle to a quarter of its units [vendor]."""

REGISTER_STEP = 8
"""Registers are allotted to threads in multiples of it [CUDA C++ Programming Guide]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the prediction knows of a card.

    ``*_bytes_s`` are bytes a second of the whole card; ``fp64_per_cycle`` and ``fp32_per_cycle``
    multiply-adds of one SM in a cycle; ``warp`` threads; ``registers_*`` registers of 32 bits.
    ``shared_per_block_bytes`` is what a block may declare statically, ``shared_optin_bytes`` what
    it may ask for.
    """

    sms: int
    clock_hz: float
    warp: int
    threads_per_sm: int
    blocks_per_sm: int
    threads_per_block: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_optin_bytes: int
    l1_shared_bytes: int
    l2_bytes: int
    fp64_per_cycle: float
    fp32_per_cycle: float
    dram_bytes_s: float
    l2_bytes_s: float
    power_limit_w: float


def card_of(profile: GpuProfile) -> Card:
    """Return the rates of a card; what its profile lacks is derived.

    Counts, sizes, clock, peaks and power limit are the profile's, which names the source of each.
    Peaks become multiply-adds of an SM in a cycle. Without them: 64 of 32 bits, and for 64 bits one
    for every 32 of those. Memory gives nine tenths of its bandwidth and L2 32 bytes to each SM in a
    cycle; both are assumed. Without a limit the power is 300 W.
    """
    clock_hz = 1e6 * (profile.boost_clock_mhz or profile.base_clock_mhz or FALLBACK_CLOCK_MHZ)
    cycles = profile.sm_count * clock_hz
    fp32 = (profile.peak_fp32_gflops or 2 * 64 * cycles / 1e9) * 1e9 / 2 / cycles
    fp64 = (profile.peak_fp64_gflops or 0.0) * 1e9 / 2 / cycles
    if profile.peak_fp64_gflops is None:
        fp64 = fp32 / 32
    return Card(
        sms=profile.sm_count,
        clock_hz=clock_hz,
        warp=profile.threads_per_warp,
        threads_per_sm=profile.max_threads_per_sm,
        blocks_per_sm=profile.max_blocks_per_sm,
        threads_per_block=profile.threads_per_block,
        registers_per_sm=profile.registers_per_sm,
        registers_per_block=profile.registers_per_block,
        registers_per_thread=profile.registers_per_thread,
        shared_per_sm_bytes=profile.shared_per_sm_bytes,
        shared_per_block_bytes=profile.shared_per_block_bytes,
        shared_optin_bytes=max(
            profile.shared_per_block_bytes, profile.shared_per_block_optin_bytes
        ),
        l1_shared_bytes=profile.l1_shared_bytes,
        l2_bytes=profile.l2_bytes,
        fp64_per_cycle=fp64,
        fp32_per_cycle=fp32,
        dram_bytes_s=0.9 * profile.bandwidth_gb_s * 1e9,
        l2_bytes_s=32 * cycles,
        power_limit_w=profile.tdp_w or 300.0,
    )
