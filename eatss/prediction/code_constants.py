"""Figures of code: instructions of a step, loads under way, how it meets what a card does.

They are the same for every kernel and every card. Each says what it is, in which unit, and where it
comes from: *fitted* to measurements on one H200 (docs/model.md; ``benchmarks/prediction.py`` says
how well), or *assumed* from what is usual. What belongs to a card, every price, rate and latency,
stands in its profile (:mod:`eatss.prediction.card`). A fitted one belongs to the formulas here. It
may stand for more than its name says and is no measurement of it.
"""

from __future__ import annotations

from eatss.frozen import frozen


@frozen
class CodeConstants:
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
    window: float = 11.0
    """Loads of a thread under way at a time, at most; fitted."""
    rolled: float = 3.34
    """Steps whose loads wait together where a loop of unknown length is unrolled; fitted."""
    l2_wait: float = 0.805
    """Wait for a load that L2 answers over the card's latency of it, both beyond L1; assumed."""
    dram_wait: float = 1.828
    """Wait for a load that memory answers over the card's latency of it, both beyond L2: memory is
    busy; from loops that wait for each load."""
    barrier_wait: float = 1.303
    """Wait at a barrier over the card's, of 256 threads; fitted."""
    result_wait: float = 2.05
    """Wait for a result that feeds itself over the card's latency of it; fitted."""
    unrolled_steps: float = 128.0
    """Instances that a loop of known length is unrolled to, at most; from machine code."""
    page_steps: float = 0.0304
    """Share of memory time that each further piece of 256 bytes of a row adds; fitted."""
    torn_updates: float = 4.31
    """Memory time that the sectors add which points of a thread write in parts and read, too, for
    each share of them; fitted. What L2 takes for such sectors is the card's."""
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
    spill_missing: float = 0.3
    """Share of the lines of spilled registers that L1 does not have, 0 to 1; assumed."""
    launch_wait: float = 4.32
    """Time of a launch beyond its terms over that of the card's empty launch in a graph;
    assumed."""
    sharpness: float = 2.23
    """Exponent that joins the terms of time: 1 adds them, infinity takes the largest; fitted."""
