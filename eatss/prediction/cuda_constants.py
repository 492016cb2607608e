"""Figures of the code that eatss generates, the same for every kernel and card.

They belong to the formulas of :mod:`eatss.prediction.cuda_model`. *Fitted* ones are from
measurements on one H200 (docs/model.md), and may stand for more than their names say. *Assumed*
ones are what is usual; those *kept* could have been moved by a fit, and were not. What belongs to
chips, not to code, is in :mod:`eatss.prediction.code_constants`.
"""

from __future__ import annotations

from eatss.frozen import frozen


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
