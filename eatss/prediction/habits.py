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
    start_cycles: float = 600.0
    copy_instructions: float = 4.0
    barrier_instructions: float = 6.0
    barrier_cycles: float = 40.0
    batch: float = 4.0
    memory_cycles: float = 500.0
    l1_cycles: float = 35.0
    shared_cycles: float = 25.0
    guard_waits: float = 0.5
    lockstep: float = 0.7
    line_cycles: float = 2.0
    loop_address: float = 2.0
    unrolled_address: float = 0.5
    loop_instructions: float = 2.0
    guard_instructions: float = 1.0
    division64: float = 20.0
    division32: float = 10.0
    fp64_cycles: float = 8.0
    fp32_cycles: float = 5.0
    slow_cycles64: float = 150.0
    slow_cycles32: float = 60.0
    spill_missing: float = 0.3
    launch_s: float = 2.5e-6
    sharpness: float = 4.0
    static_w: float = 120.0
    instruction_pj: float = 60.0
    fp64_pj: float = 300.0
    fp32_pj: float = 120.0
    wavefront_pj: float = 500.0
    l2_pj_byte: float = 40.0
    dram_pj_byte: float = 90.0
