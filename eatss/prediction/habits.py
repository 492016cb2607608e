"""Figures of code and chips that no profile gives: latencies, instructions a step, and so on.

They are the same for every kernel and every card of one family; each says where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Constants of the prediction."""

    base_registers: float = 24.0
    private_register_factor: float = 1.0
    registers_per_point: float = 1.0
    start_instructions: float = 30.0
    turn_instructions: float = 10.0
    start_cycles: float = 500.0
    copy_instructions: float = 2.66
    barrier_instructions: float = 5.82
    barrier_cycles: float = 36.9
    batch: float = 3.44
    memory_cycles: float = 270.0
    l1_cycles: float = 35.2
    shared_cycles: float = 29.2
    page_steps: float = 0.0674
    copy_batch: float = 1.53
    line_wait: float = 10.3
    bank_wait: float = 0.965
    guard_waits: float = 0.661
    lockstep: float = 0.885
    line_cycles: float = 1.0
    loop_address: float = 2.55
    unrolled_address: float = 0.554
    loop_instructions: float = 2.12
    guard_instructions: float = 0.936
    division64: float = 20.0
    division32: float = 10.0
    fp64_cycles: float = 7.98
    fp32_cycles: float = 5.0
    slow_cycles64: float = 150.0
    slow_cycles32: float = 60.0
    spill_missing: float = 0.3
    launch_s: float = 2.5e-6
    sharpness: float = 1.72
    static_w: float = 131.0
    instruction_pj: float = 85.6
    fp64_pj: float = 1180.0
    fp32_pj: float = 120.0
    wavefront_pj: float = 463.0
    l2_pj_byte: float = 18.8
    dram_pj_byte: float = 129.0
