"""Figures of code: instructions of a step, loads under way, how it meets what a card does.

They are the same for every kernel and every card; :class:`CodeConstants` are of PPCG's code, and of
chips, :class:`CudaConstants` of the code that eatss generates. Each says what it is, in which unit,
and where it comes from: *fitted* to measurements on one H200 (docs/model.md;
``benchmarks/prediction.py`` says how well), or *assumed* from what is usual; those *kept* could
have been moved by a fit, and were not. What belongs to a card, every price, rate and latency,
stands in its profile (:mod:`eatss.cost.card`). A fitted one belongs to the formulas here. It
may stand for more than its name says and is no measurement of it.
"""

from __future__ import annotations

from eatss.base.frozen import frozen


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


@frozen
class CudaConstants:
    """Constants of generated code; instructions are those of a warp, cycles those of an SM."""

    base_registers: float = 24.0
    """Registers of a thread beside sums and operands: addresses and counters; assumed."""
    operand_registers: float = 1.2
    """Registers for each word of the operands of a step; assumed."""
    start_instructions: float = 30.0
    """Instructions of a warp when its block starts; assumed, and kept."""
    start_cycles: float = 214.0
    """Cycles of a block before its first load; fitted."""
    step_instructions: float = 9.37
    """Instructions of a warp for each tile of its serial loops; fitted."""
    load_instructions: float = 0.859
    """Instructions for a load or store with its address; fitted."""
    loop_instructions: float = 2.0
    """Instructions for a step of the innermost loop, not unrolled; assumed, and kept."""
    guard_instructions: float = 0.977
    """Instructions for the tests of a point in a tile that the loop's end cuts off; fitted."""
    copy_instructions: float = 11.1
    """Instructions for an element copied to shared memory; fitted."""
    ragged_instructions: float = 35.2
    """The same where rows do not fit the threads: divisions and tests; fitted."""
    ragged_batch: float = 1.0
    """Loads of a thread under way at a time in such a copy; assumed, and kept."""
    ahead_instructions: float = 3.0
    """The same where copies run ahead of a loop; from machine code."""
    late_instructions: float = 10.0
    """What a step of products costs a thread in addition, in its arithmetic's instructions, where
    boxes are filled ahead but a step loads from them when it multiplies. Of products in floats on
    an H100, 8 % more time was measured with 128 points a thread and 15 % with 64; with fewer
    points it is not known."""
    barrier_wait: float = 0.779
    """Wait at a barrier over the card's, of 256 threads; fitted."""
    far_wait: float = 1.26
    """Wait for a load that L1 does not answer over the card's latency of L2 beyond L1; fitted."""
    near_wait: float = 0.394
    """Wait for a load that L1 answers over the card's latency of it; fitted."""
    launch_wait: float = 3.74
    """Time of a launch of a graph beyond its terms over that of the card's empty one; fitted."""
    batch: float = 5.41
    """Loads of a thread under way at a time; fitted."""
    stream_batch: float = 7.29
    """The same where nothing is added up in registers: points one after the other; fitted."""
    line_wait: float = 4.37
    """Cycles that a thread waits for each wavefront of a load through L1; fitted."""
    unrolled_values: float = 64.0
    """Words that a thread keeps of what short loops read again and again; assumed."""
    unrolled_steps: float = 15.7
    """Steps of the innermost loop whose loads are under way together; fitted."""
    sharpness: float = 2.1
    """Exponent that joins the terms of time: 1 adds them, infinity takes the largest; fitted."""
    page_steps: float = 0.023
    """Share of memory time that each further 256 bytes of a row add; fitted."""
    spill_missing: float = 0.3
    """Share of the lines of spilled registers that L1 does not have, 0 to 1; assumed."""
