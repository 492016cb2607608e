"""Figures of code and chips that no profile gives: latencies, instructions a step, and so on.

They are the same for every kernel and every card. Each says what it is, in which unit, and where it
comes from: *fitted* to measurements on one H200 (docs/model.md; ``benchmarks/prediction.py`` says
how well), or *assumed* from what is usual. None is from a vendor: those figures stand in the
profile of a card (:mod:`eatss.prediction.card`). A fitted one belongs to the formulas here. It may
stand for more than its name says and is no measurement of it.
"""

from __future__ import annotations

from dataclasses import dataclass

FITTED_ON = "h200"
"""The profile of the card whose measurements the constants were fitted to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Constants of the prediction; instructions are those of a warp, cycles those of an SM."""

    base_registers: float = 24.0
    """Registers of a thread before arrays, operands and addresses; assumed."""
    private_register_factor: float = 1.0
    """Registers for each 32-bit word of a private array; assumed."""
    registers_per_point: float = 1.0
    """Registers for the address of each unrolled point, 16 points at most; assumed."""
    start_instructions: float = 30.0
    """Instructions of a warp when its block starts; assumed."""
    turn_instructions: float = 10.0
    """Instructions of a warp for each tile that its block takes in turn; assumed."""
    start_cycles: float = 391.0
    """Cycles of a block before its first load; fitted, rounded."""
    copy_instructions: float = 2.55
    """Instructions of a warp for each element a thread copies to or from shared memory; fitted."""
    barrier_instructions: float = 5.43
    """Instructions of a warp at a barrier; fitted."""
    barrier_cycles: float = 36.7
    """Cycles that a block waits at a barrier; fitted."""
    window: float = 11.0
    """Loads of a thread under way at a time, at most; fitted."""
    rolled: float = 3.34
    """Steps whose loads wait together where a loop of unknown length is unrolled; fitted."""
    unrolled_steps: float = 128.0
    """Instances that a loop of known length is unrolled to, at most; from machine code."""
    dram_cycles: float = 750.0
    """Cycles of a load that memory answers, beyond those of L2; from loops that wait for each load,
    rounded."""
    memory_cycles: float = 200.0
    """Cycles of a load that L2 answers, beyond those of L1; assumed."""
    l1_cycles: float = 38.0
    """Cycles of a load that L1 answers; assumed."""
    shared_cycles: float = 29.7
    """Cycles of a load from shared memory; fitted."""
    page_steps: float = 0.0304
    """Share of memory time that each further piece of 256 bytes of a row adds; fitted."""
    torn_writes: float = 1.77
    """Memory time that the sectors add which points of a thread write in parts, for each share of
    them; fitted."""
    torn_updates: float = 4.31
    """The same where the thread reads them too; fitted."""
    line_wait: float = 4.48
    """Cycles that a thread waits for each wavefront of a load through L1; fitted."""
    bank_wait: float = 1.05
    """Cycles that a thread waits for each wavefront of a load from shared memory; fitted."""
    guard_waits: float = 0.269
    """Share of its wait that each tested point adds to those of the others, 0 to 1; fitted."""
    lockstep: float = 0.95
    """Share of an SM's blocks with the same data that find it in L1; fitted, kept below 1."""
    line_cycles: float = 1.0
    """Cycles of L1 for each line of a request beyond the fewest; fitted, rounded."""
    loop_address: float = 2.43
    """Instructions for the address of a global access whose points are loops; fitted."""
    unrolled_address: float = 6.76
    """Instructions for the address of a global access whose points are unrolled; fitted."""
    loop_instructions: float = 1.63
    """Instructions of a warp for a step of the innermost loop; fitted."""
    guard_instructions: float = 0.763
    """Instructions of a warp for the test of a point, where tiles are cut off; fitted."""
    division64: float = 20.0
    """Instructions of a 64-bit division, root or function; assumed."""
    division32: float = 10.0
    """Instructions of a 32-bit division, root or function; assumed."""
    fp64_cycles: float = 16.5
    """Cycles from one 64-bit result to the next that needs it; fitted."""
    fp32_cycles: float = 5.0
    """Cycles from one 32-bit result to the next that needs it; assumed."""
    slow_cycles64: float = 150.0
    """Cycles that a thread waits for a 64-bit division, root or function; assumed."""
    slow_cycles32: float = 60.0
    """Cycles that a thread waits for a 32-bit division, root or function; assumed."""
    spill_missing: float = 0.3
    """Share of the lines of spilled registers that L1 does not have, 0 to 1; assumed."""
    launch_s: float = 2.5e-6
    """Seconds that a launch takes beyond its terms; assumed."""
    sharpness: float = 2.23
    """Exponent that joins the terms of time: 1 adds them, infinity takes the largest; fitted."""
    static_w: float = 135.0
    """Watts of the card whatever runs; fitted."""
    instruction_pj: float = 205.0
    """Picojoules of a warp instruction with all lanes at work; fitted."""
    fp64_pj: float = 736.0
    """Picojoules of a 64-bit instruction of a full warp, beyond ``instruction_pj``; fitted."""
    fp32_pj: float = 120.0
    """Picojoules of a 32-bit instruction of a full warp, beyond ``instruction_pj``; assumed."""
    wavefront_pj: float = 264.0
    """Picojoules of a cycle of L1 or shared memory; fitted."""
    shared_pj_byte: float = 25.0
    """Picojoules of a byte read from L1 or shared memory, in generated code; fitted by hand to 32
    layouts of matmul, gemm, syrk and syr2k that differ in little else (``cuda-tuning.jsonl``)."""
    l2_pj_byte: float = 17.9
    """Picojoules of a byte between L2 and an SM; fitted."""
    dram_pj_byte: float = 110.0
    """Picojoules of a byte between memory and L2; fitted."""
