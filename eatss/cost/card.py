"""The rates, latencies and prices of a card, from its profile.

Figures of code: instructions of a step, loads under way, how it meets what a card does.

They are the same for every kernel and every card; :class:`CodeConstants` are of PPCG's code, and of
chips, :class:`CudaConstants` of the code that eatss generates. Each says what it is, in which unit,
and where it comes from: *fitted* to measurements on one H200 (docs/model-internals.md;
``benchmarks/prediction.py`` says how well), or *assumed* from what is usual; those *kept* could
have been moved by a fit, and were not. What belongs to a card, every price, rate and latency,
stands in its profile (:mod:`eatss.cost.card`). A fitted one belongs to the formulas here. It
may stand for more than its name says and is no measurement of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eatss.analysis.variant import TensorFormat
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.cards.match import FALLBACK_LIMIT_W, calibration_of
from eatss.cards.profile import TIMES_TF32, GpuProfile
from eatss.plan.intervals import named
from eatss.plan.numbers import Number

SCHEDULERS = 4
"""Of an SM; each issues an instruction a cycle to a quarter of its units [vendor]."""

LARGEST_MMA = 16 * 8 * 16 / 32
"""Multiply-adds of the priced instruction of 64 bits, m16n8k16, over the lanes of a warp."""

SMALL_MMA = 8 * 8 * 4 / 32
"""The same before compute capability 9.0, where m8n8k4 is the largest."""

TF32_MMA = 16 * 8 * 8 / 32
"""Multiply-adds of the priced instruction of TF32, m16n8k8, over the lanes of a warp."""

TF32_SHARE = 0.72
"""Of the TF32 peak, how much ``mma.sync`` reaches where all of it takes instructions of four warps
(``wgmma``) or of one thread (``tcgen05``). 682 multiply-adds of an SM in a cycle were measured on
an H200, of 946 that its datasheet comes to at the highest clock
[benchmarks/results/h200/characterize.txt]."""

FP16_MMA = 16 * 8 * 16 / 32
"""Multiply-adds of the priced instruction of halves, m16n8k16, over the lanes of a warp."""

INT8_MMA = 16 * 8 * 32 / 32
"""Multiply-adds of m16n8k32 of bytes, over the lanes of a warp. It is taken to cost what that of
halves does, with half as many; a product of 4096 rows took 0.277 ms on an H200, and 0.245 ms were
predicted of it."""

REGISTER_STEP = 8
"""Registers are allotted to threads in multiples of it [CUDA C++ Programming Guide]."""

BLOCK_SHARED_BYTES = 1024
"""Shared memory that CUDA keeps of each block."""


@frozen
class Prices:
    """Energies in J at the highest clock, and power in W.

    ``instruction_j``, ``fp64_j`` and ``fp32_j`` are of an instruction of a full warp,
    ``tensor64_j``, ``tensor32_j``, ``tensor16_j`` and ``tensor8_j`` of as many multiply-adds on
    tensor cores, of 64 bits, of TF32, of halves and of bytes, ``l1_wavefront_j`` of 128 bytes from
    L1, ``shared_wavefront_j`` of a cycle of shared memory, ``shared_byte_j`` of a byte in it, the
    other ``*_byte_j`` of a byte. ``voltage_floor`` says how prices fall with the clock; those of
    memory do not.
    """

    instruction_j: float
    fp64_j: float
    fp32_j: float
    tensor64_j: float
    tensor32_j: float
    tensor16_j: float
    tensor8_j: float
    l1_wavefront_j: float
    shared_wavefront_j: float
    shared_byte_j: float
    l2_byte_j: float
    dram_byte_j: float
    constant_w: float
    voltage_floor: float


@frozen
class Card:
    """What the prediction knows of a card.

    ``*_bytes_s`` are bytes a second of the whole card, ``l2_torn_bytes_s`` of sectors that are
    written in parts; ``fp64_per_cycle`` and ``fp32_per_cycle`` multiply-adds of one SM in a cycle,
    ``fp64_tensor_per_cycle`` and ``tf32_tensor_per_cycle`` those of its tensor cores, 0 where it
    has none for them; ``warp`` threads; ``registers_*`` registers of 32 bits.
    ``shared_per_block_bytes`` is what a block may declare statically, ``shared_optin_bytes`` what
    it may ask for. ``*_cycles`` are latencies; those of L2 and memory count from the level before.
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
    fp64_tensor_per_cycle: float
    tf32_tensor_per_cycle: float
    dram_bytes_s: float
    dram_read_bytes_s: float
    dram_write_bytes_s: float
    dram_copy_bytes_s: float
    l2_bytes_s: float
    l2_torn_bytes_s: float
    power_limit_w: float
    l1_cycles: float
    shared_cycles: float
    l2_cycles: float
    dram_cycles: float
    fp32_cycles: float
    fp64_cycles: float
    fp32_div_cycles: float
    fp64_div_cycles: float
    barrier_cycles: float
    atomic_cycles: float
    launch_s: float
    prices: Prices

    def tensor_rate(self, form: TensorFormat) -> float:
        """Return the multiply-adds of an SM's tensor cores in a cycle, at least one."""
        if form == "fp64":
            return max(1.0, self.fp64_tensor_per_cycle)
        return max(1.0, TIMES_TF32[form] * self.tf32_tensor_per_cycle)

    def mixed(self, read: float, written: float) -> float:
        """Return how many times longer memory takes for so many bytes than at its mean rate.

        Where it is read and written by turns it takes longer than for both apart, as copies do.
        """
        every = read + written
        if not every:
            return 1.0
        apart = read / self.dram_read_bytes_s + written / self.dram_write_bytes_s
        turns = 2.0 / self.dram_copy_bytes_s
        turns -= 1.0 / self.dram_read_bytes_s + 1.0 / self.dram_write_bytes_s
        mean = (self.dram_read_bytes_s + self.dram_copy_bytes_s) / 2
        return (apart + turns * min(read, written)) * mean / every

    def warps_of(self, threads: Number) -> Number:
        """Return the warps of so many threads of a block."""
        return named("warps", np.ceil(threads / self.warp))

    def resident_blocks(
        self, threads: Number, registers: Number, shared_bytes: Number, shared_limit_bytes: Number
    ) -> Number:
        """Return the blocks of an SM that run at a time, an entry a candidate; 0 cannot launch.

        The least that registers (allocated to a thread by eights; each scheduler has a part of them
        for its warps), threads (by whole warps), shared memory (with 1024 bytes a block that CUDA
        keeps) and the limit of blocks allow [CUDA C++ Programming Guide, technical specifications
        per compute capability]. A block may have ``shared_limit_bytes``.
        """
        warps = self.warps_of(threads)
        registers = np.ceil(registers / REGISTER_STEP) * REGISTER_STEP
        each = self.registers_per_sm / SCHEDULERS
        by_registers = np.floor(np.floor(each / (registers * self.warp)) * SCHEDULERS / warps)
        by_threads = np.floor(self.threads_per_sm / (warps * self.warp))
        by_shared = np.floor(self.shared_per_sm_bytes / (shared_bytes + BLOCK_SHARED_BYTES))
        least = np.minimum(np.minimum(by_registers, by_threads), by_shared)
        least = np.where(shared_bytes > shared_limit_bytes, 0.0, least)
        least = np.where(threads > self.threads_per_block, 0.0, least)
        return np.clip(least, 0, self.blocks_per_sm)


def card_of(profile: GpuProfile) -> Card:
    """Return what the prediction has to know of a card.

    Counts, sizes and the power limit are the profile's, which names the source of each. Rates,
    latencies and prices are those of its calibration, or of another card's scaled by
    specifications (:mod:`eatss.cards.match`). Memory is taken at the mean of what reading and
    copying reached.

    Raises:
        InputError: ``EATSS-M018``, its power limit is not above its constant power.
    """
    found = calibration_of(profile)
    limit_w = profile.tdp_w or FALLBACK_LIMIT_W
    if limit_w <= found["constant_w"]:
        raise input_error(
            "EATSS-M018",
            f"{profile.name} may draw {limit_w:g} W, and takes {found['constant_w']:.4g} W "
            "whatever runs: nothing can run on it",
            hint="look at tdp_w and at constant_w of [calibration] in its profile",
        )
    clock_hz = 1e6 * found["clock_mhz"]

    def per_cycle(peak_gflops: float | None) -> float:
        """Return the multiply-adds of an SM in a cycle that make a peak."""
        highest_hz = clock_hz / profile.clock_share
        return 1e9 * (peak_gflops or 0.0) / 2 / profile.sm_count / highest_hz

    of_profile = (
        "threads_per_block", "registers_per_sm", "registers_per_block", "registers_per_thread",
        "shared_per_sm_bytes", "shared_per_block_bytes", "l1_shared_bytes", "l2_bytes",
    )  # fmt: skip
    own = {name: getattr(profile, name) for name in of_profile}
    measured = (
        "fp64_per_cycle", "fp32_per_cycle", "l1_cycles", "shared_cycles", "fp32_cycles",
        "fp64_cycles", "fp32_div_cycles", "fp64_div_cycles", "barrier_cycles", "atomic_cycles",
        "launch_s",
    )  # fmt: skip
    return Card(
        sms=profile.sm_count,
        clock_hz=clock_hz,
        warp=profile.threads_per_warp,
        threads_per_sm=profile.max_threads_per_sm,
        blocks_per_sm=profile.max_blocks_per_sm,
        shared_optin_bytes=max(
            profile.shared_per_block_bytes, profile.shared_per_block_optin_bytes
        ),
        fp64_tensor_per_cycle=per_cycle(profile.peak_fp64_tensor_gflops),
        tf32_tensor_per_cycle=per_cycle(profile.peak_tf32_tensor_gflops) * _tf32_share(profile),
        dram_bytes_s=1e9 * (found["dram_read_gb_s"] + found["dram_copy_gb_s"]) / 2,
        dram_read_bytes_s=1e9 * found["dram_read_gb_s"],
        dram_write_bytes_s=1e9 * found["dram_write_gb_s"],
        dram_copy_bytes_s=1e9 * found["dram_copy_gb_s"],
        l2_bytes_s=1e9 * found["l2_gb_s"],
        l2_torn_bytes_s=1e9 * found["l2_torn_gb_s"],
        power_limit_w=limit_w,
        l2_cycles=found["l2_cycles"] - found["l1_cycles"],
        dram_cycles=found["dram_cycles"] - found["l2_cycles"],
        prices=_prices(found, _mma_size(profile)),
        **own | {name: found[name] for name in measured},
    )


def _tf32_share(profile: GpuProfile) -> float:
    """Return the share of the TF32 peak that an instruction of a warp reaches."""
    first, end = CUDA.warpgroups
    return TF32_SHARE if first <= profile.compute_capability < end else 1.0


def _mma_size(profile: GpuProfile) -> float:
    """Return the multiply-adds of the priced instruction of 64 bits, over the lanes of a warp."""
    own = profile.calibration is not None and profile.compute_capability < (9, 0)
    return SMALL_MMA if own else LARGEST_MMA


def _prices(found: Mapping[str, float], mma: float) -> Prices:
    plain = ("instruction", "fp64", "fp32", "l1_wavefront", "shared_wavefront", "shared_byte",
             "l2_byte")  # fmt: skip
    return Prices(
        tensor64_j=1e-12 * found["tensor_fp64_pj"] / mma,
        tensor32_j=1e-12 * found["tensor_tf32_pj"] / TF32_MMA,
        tensor16_j=1e-12 * found["tensor_fp16_pj"] / FP16_MMA,
        tensor8_j=1e-12 * found["tensor_fp16_pj"] / INT8_MMA,
        dram_byte_j=1e-12 * (found["dram_read_byte_pj"] + found["dram_write_byte_pj"]) / 2,
        constant_w=found["constant_w"],
        voltage_floor=found["voltage_floor"],
        **{f"{name}_j": 1e-12 * found[f"{name}_pj"] for name in plain},
    )


@frozen
class CodeConstants:
    """Constants of the prediction; instructions are those of a warp, cycles those of an SM."""

    base_registers: float = 25.0
    """Registers of a thread before arrays, operands and addresses; assumed."""
    rolled_registers: float = 32.0
    """The same where the points of a thread are loops: what ptxas aims at; from machine code, where
    the median of 60 kernels has 30 to 34, whatever they load."""
    unrolled_registers: float = 18.0
    """The same where the points of a thread are unrolled; from machine code."""
    start_instructions: float = 30.0
    """Instructions of a warp when its block starts; assumed."""
    turn_instructions: float = 10.0
    """Instructions of a warp for each tile that its block takes in turn; assumed."""
    start_cycles: float = 391.0
    """Cycles of a block before its first load; fitted, rounded."""
    copy_instructions: float = 2.55
    """Instructions of a warp for each element a thread copies to or from shared memory; fitted."""
    rolled_copy: float = 9.4
    """The same where such a loop stays one: tests and addresses; fitted. Machine code of copies
    that the end of an array cuts off has 15 to 25."""
    barrier_instructions: float = 5.43
    """Instructions of a warp at a barrier; fitted."""
    window: float = 11.0
    """Loads of a thread under way at a time, at most; fitted."""
    copy_registers: float = 11.0
    """Registers for loads under way in a copy that is unrolled: ptxas aims at 32 of a thread; from
    machine code, 4 to 6 doubles and 9 to 13 floats."""
    rolled: float = 3.34
    """Steps whose loads wait together where a loop of unknown length is unrolled; fitted."""
    barrier_wait: float = 1.303
    """Wait at a barrier over the card's, of 256 threads; fitted."""
    block_waits: float = 0.5
    """Share of the instructions of a block's other warps that one waits for; fitted, rounded."""
    result_wait: float = 2.05
    """Wait for a result that feeds itself over the card's latency of it; fitted."""
    unrolled_steps: float = 128.0
    """Instances that a loop of known length is unrolled to in full, at most; from machine code."""
    unrolled_part: float = 32.0
    """Instances that steps of a longer one are put together to, at most; from machine code."""
    page_steps: float = 0.0304
    """Share of memory time that each further piece of 256 bytes of a row adds; fitted."""
    split_lines: float = 1.4
    """How many times longer memory takes in addition for lines that are updated in place in parts,
    where a thread has several points along a row. On an H200 0.4 to 2.2; 0 where as much of others
    is moved."""
    split_once: float = 0.4
    """The same with one point along a row; 0.1 to 1.1."""
    line_wait: float = 4.48
    """Cycles that a thread waits for each wavefront of a load through L1 beyond those of a warp
    whose lanes lie side by side; fitted."""
    bank_wait: float = 1.05
    """Cycles that a thread waits for each wavefront of a load from shared memory; fitted."""
    guard_waits: float = 0.269
    """Share of its wait that a load of global memory behind a test adds to those of the others, 0
    to 1; fitted."""
    lockstep: float = 0.95
    """Share of an SM's blocks with the same data that find it in L1; fitted, kept below 1."""
    loop_address: float = 2.43
    """Instructions for the address of a global access whose points are loops; fitted."""
    unrolled_address: float = 6.76
    """Instructions for the address of a global access whose points are unrolled; fitted."""
    known_address: float = 1.5
    """The same where serial loops are unrolled in full: it stands in the instruction. From machine
    code."""
    loop_instructions: float = 1.63
    """Instructions of a warp for a step of the innermost loop; fitted."""
    guard_instructions: float = 0.763
    """Instructions of a warp for the test of a point, where tiles are cut off; fitted."""
    division64: float = 20.0
    """Instructions of a 64-bit division, root or function; assumed."""
    division32: float = 10.0
    """Instructions of a 32-bit division, root or function; assumed."""
    quotient: float = 0.0
    """Instructions of a quotient by a literal that is no division; 0 where it is one."""
    launch_wait: float = 2.0
    """Time between two kernels of a queue over that of the card's empty launch in a graph;
    assumed."""
    host_launch_s: float = 3.9e-6
    """Time in which a host launches one kernel after the other, while the card runs those before;
    from kernels on an H200 that take less. It varied from 3.3 to 5.1 µs from minute to minute."""
    sharpness: float = 2.23
    """Exponent that joins the terms of time: 1 adds them, infinity takes the largest; fitted."""


@frozen
class CudaConstants:
    """Constants of generated code; instructions are those of a warp, cycles those of an SM."""

    base_registers: float = 24.0
    """Registers of a thread beside sums and operands: addresses and counters; assumed."""
    row_registers: float = 14.5
    """The same of threads that take rows through phases, beside what they keep; from machine code,
    where nine such kernels have 32 to 80."""
    row_start_cycles: float = 430.0
    """Cycles in which an SM starts one block of these after the other. On an H200 20 000 blocks of
    128 threads took 65 µs, 10 000 of 256 for the same rows 49."""
    row_sharpness: float = 4.0
    """Exponent for these, whose latency is all that a block does from its begin to its end."""
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
