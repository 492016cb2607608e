"""The figures of a GPU, specified and measured.

What was measured of a card: prices of operations and bytes, rates, latencies, and of which card.

``eatss characterize`` finds these figures, the predicted objectives use them. A profile without
them is **uncalibrated**: :mod:`eatss.cards.match` scales another card's by specifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from eatss.base.codec import BY_NAME
from eatss.base.frozen import Names, frozen
from eatss.base.shown import Shown, figure
from eatss.base.targets import Capability
from eatss.base.text import NamedTexts

COEFFICIENTS: Mapping[str, tuple[str, str]] = {
    # power
    "constant_w": ("W", "power whatever runs (π0)"),
    "idle_w": ("W", "power of the card doing nothing"),
    "active_idle_w": ("W", "power of the card with sleeping warps on every SM"),
    "voltage_floor": (
        "1",
        "share of the voltage at the highest clock that is left at clock zero, if it were a line",
    ),
    # energy, at the highest clock; an instruction is one of a warp
    "instruction_pj": ("pJ", "an instruction that none of the others is: a load or store, a jump"),
    "int32_add_pj": ("pJ", "32-bit integer addition"),
    "int64_add_pj": ("pJ", "64-bit integer addition, all its instructions"),
    "int32_mul_pj": ("pJ", "32-bit integer product"),
    "int32_count_pj": ("pJ", "population count, find first, bit reverse"),
    "int32_shift_pj": ("pJ", "32-bit funnel shift"),
    "int32_bits_pj": ("pJ", "32-bit bitwise operation"),
    "int32_compare_pj": ("pJ", "32-bit comparison"),
    "fp32_add_pj": ("pJ", "32-bit floating-point addition"),
    "fp32_mul_pj": ("pJ", "32-bit floating-point product"),
    "fp32_pj": ("pJ", "32-bit multiply-add"),
    "fp32_div_pj": ("pJ", "32-bit IEEE division, all its instructions"),
    "fp32_div_ftz_pj": ("pJ", "the same, denormals flushed"),
    "fp32_div_approx_pj": ("pJ", "32-bit fast division"),
    "fp32_div_approx_ftz_pj": ("pJ", "the same, denormals flushed"),
    "special_pj": ("pJ", "sine, cosine, exponential, logarithm, reciprocal (root)"),
    "fp64_add_pj": ("pJ", "64-bit floating-point addition"),
    "fp64_mul_pj": ("pJ", "64-bit floating-point product"),
    "fp64_pj": ("pJ", "64-bit multiply-add"),
    "fp64_div_pj": ("pJ", "64-bit IEEE division, all its instructions"),
    "fp16x2_pj": ("pJ", "multiply-add of two 16-bit numbers"),
    "tensor_fp16_pj": ("pJ", "mma m16n8k16, 16 bits"),
    "tensor_bf16_pj": ("pJ", "mma m16n8k16, bfloat16"),
    "tensor_tf32_pj": ("pJ", "mma m16n8k8, TF32"),
    "tensor_fp64_pj": ("pJ", "mma of 64 bits, the largest shape"),
    "l1_wavefront_pj": ("pJ", "128 bytes or a line from L1"),
    "shared_wavefront_pj": ("pJ", "a cycle of shared memory"),
    "shared_byte_pj": ("pJ/B", "a byte from or to shared memory, beyond its cycle"),
    "l2_byte_pj": ("pJ/B", "a byte between L2 and an SM"),
    "dram_read_byte_pj": ("pJ/B", "a byte from memory to L2"),
    "dram_write_byte_pj": ("pJ/B", "a byte from L2 to memory"),
    "constant_load_pj": ("pJ", "a load of constant memory"),
    # rates
    "clock_mhz": ("MHz", "clock of the SMs where nothing holds it back"),
    "fp32_per_cycle": ("1/cycle", "32-bit multiply-adds of an SM"),
    "fp64_per_cycle": (
        "1/cycle",
        "64-bit multiply-adds of an SM (three operands: additions reach more)",
    ),
    "issue_per_cycle": ("1/cycle", "instructions that an SM issues"),
    "shared_wavefronts_per_cycle": ("1/cycle", "wavefronts of shared memory of an SM"),
    "dram_read_gb_s": ("GB/s", "memory, reading"),
    "dram_write_gb_s": ("GB/s", "memory, writing"),
    "dram_copy_gb_s": ("GB/s", "memory, as much read as written"),
    "l2_gb_s": ("GB/s", "L2, reading"),
    "l2_torn_gb_s": ("GB/s", "L2, sectors of 32 bytes that stores write in parts, at 4 bytes each"),
    "l1_gb_s": ("GB/s", "L1 of all SMs, reading"),
    "overlap": (
        "1",
        "exponent that joins the times of arithmetic and memory: 1 adds them, 16 hardly does",
    ),
    # waits
    "shared_cycles": ("cycles", "a load from shared memory, with its address"),
    "l1_cycles": ("cycles", "a load from L1, with its address"),
    "l2_cycles": ("cycles", "a load from L2, with its address"),
    "dram_cycles": ("cycles", "a load from memory, with its address"),
    "fp32_cycles": ("cycles", "a 32-bit multiply-add"),
    "fp64_cycles": ("cycles", "a 64-bit multiply-add"),
    "fp32_div_cycles": ("cycles", "a 32-bit division"),
    "fp64_div_cycles": ("cycles", "a 64-bit division"),
    "atomic_cycles": (
        "cycles",
        "an atomic addition of a warp to one word in L2 whose result is awaited",
    ),
    "barrier_cycles": ("cycles", "a barrier of 256 threads"),
    "launch_s": ("s", "an empty kernel, of a graph"),
}
"""Every coefficient with its unit and what it is of, in order of display."""


@frozen
class Coefficient:
    """A figure with the ends of its 95 % interval.

    ``low`` and ``high`` are the value where only one measurement says it. ``spread`` is half of the
    range between cards of one kind over their mean, ``None`` where one card was measured.
    """

    value: float
    low: float
    high: float
    spread: float | None = None


@frozen
class Calibration:
    """The coefficients of a card, how well they fit, and where they come from.

    ``cards`` are hashes of the cards' UUIDs. ``r_squared`` is of the mean powers that the fit
    gives; ``median_residual`` and ``worst_residual`` are shares of an energy. ``benchmarks`` is how
    many a run has.
    """

    coefficients: Annotated[tuple[tuple[str, Coefficient], ...], BY_NAME]
    cards: Names
    driver: str
    toolkit: str
    date: str
    revision: str
    power_limit_w: float
    r_squared: float
    median_residual: float
    worst_residual: float
    benchmarks: int

    @property
    def missing(self) -> Names:
        """The coefficients that it lacks."""
        known = dict(self.coefficients)
        return tuple(name for name in COEFFICIENTS if name not in known)

    def value(self, name: str) -> float | None:
        """Return a coefficient, ``None`` if it was not found."""
        found = dict(self.coefficients).get(name)
        return None if found is None else found.value


SCHEMA_VERSION = 1

Tf32 = Literal["off", "on", "split"]
"""Whether tensor cores may multiply floats: not, rounded to TF32, or each as two such numbers."""

TIMES_TF32: Mapping[str, float] = {"tf32": 1.0, "fp16": 2.0, "int8": 4.0}
"""Products of other formats for each of TF32: of halves with sums in floats, and of bytes with sums
in integers, at least. So in the tables of all cards that have profiles."""

FIGURES_IN_WORDS: Mapping[str, tuple[str, str]] = {
    "threads_per_block": ("threads a block (T_P_B)", ""),
    "threads_per_warp": ("threads a warp (T_P_W)", ""),
    "registers_per_sm": ("registers an SM (R_P_S)", ""),
    "registers_per_block": ("registers a block (R_P_B)", ""),
    "registers_per_thread": ("registers a thread (R_P_T)", ""),
    "l1_shared_bytes": ("L1 + shared memory an SM (L1_SH)", "KiB"),
    "l2_bytes": ("L2 cache", "MiB"),
    "sm_count": ("streaming multiprocessors", ""),
    "max_threads_per_sm": ("threads an SM", ""),
    "max_blocks_per_sm": ("blocks an SM", ""),
    "shared_per_sm_bytes": ("shared memory an SM", "KiB"),
    "shared_per_block_bytes": ("shared memory a block, default", "KiB"),
    "shared_per_block_optin_bytes": ("shared memory a block, opt-in", "KiB"),
    "base_clock_mhz": ("base clock", "MHz"),
    "boost_clock_mhz": ("boost clock", "MHz"),
    "memory_bytes": ("memory", "GiB"),
    "bandwidth_gb_s": ("memory bandwidth", "GB/s"),
    "peak_fp64_gflops": ("peak FP64", "GFLOP/s"),
    "peak_fp64_tensor_gflops": ("peak FP64, tensor cores", "GFLOP/s"),
    "peak_fp32_gflops": ("peak FP32", "GFLOP/s"),
    "peak_tf32_tensor_gflops": ("peak TF32, tensor cores", "GFLOP/s"),
    "tdp_w": ("thermal design power", "W"),
}
"""What each figure of a profile is, and the unit that people read it in, in order of display."""

FIGURES: Names = tuple(FIGURES_IN_WORDS)
"""The fields of a profile that are figures, each with a source, in order of display."""


@frozen
class Source:
    """Where figures come from."""

    key: str
    title: str
    url: str | None = None


@frozen
class GpuProfile(Shown):
    """Limits and figures of one card; ``None`` means that no source gives the figure.

    Attributes:
        name: What ``--gpu`` calls it, ``"h200"``.
        title: Full name of the card.
        aliases: Other names of it.
        architecture: Generation, ``"Hopper"``.
        compute_capability: Major and minor, ``(9, 0)``.
        threads_per_block: Most threads of a block [EATSS, Table I: T_P_B].
        threads_per_warp: Threads of a warp [T_P_W].
        registers_per_sm: 32-bit registers of an SM [R_P_S].
        registers_per_block: Most 32-bit registers of a block [R_P_B].
        registers_per_thread: Most 32-bit registers of a thread [R_P_T].
        l1_shared_bytes: Bytes of L1 cache and shared memory of an SM together [L1_SH].
        l2_bytes: Bytes of L2 cache.
        sm_count: Streaming multiprocessors.
        max_threads_per_sm: Most threads of an SM.
        max_blocks_per_sm: Most blocks of an SM.
        shared_per_sm_bytes: Bytes of shared memory that an SM can have.
        shared_per_block_bytes: Bytes of shared memory that a block can have untold.
        shared_per_block_optin_bytes: Bytes that it can have if it asks for more.
        base_clock_mhz: Base clock in MHz.
        boost_clock_mhz: Boost clock in MHz.
        memory_bytes: Bytes of device memory.
        bandwidth_gb_s: Bandwidth of device memory, 10^9 bytes a second.
        peak_fp64_gflops: Peak of double precision, 10^9 operations a second, no tensor cores.
        peak_fp64_tensor_gflops: The same with tensor cores.
        peak_fp32_gflops: Peak of single precision, 10^9 operations a second.
        peak_tf32_tensor_gflops: Peak of TF32 on tensor cores, 10^9 operations a second.
        tdp_w: Thermal design power in watts.
        sources: The name of each figure with the key of its source in ``bibliography``.
        bibliography: Where figures come from.
        notes: What a figure means, by its name, where that is not obvious.
        calibration: What was measured of such a card, ``None`` if nobody did.
        clock_share: Share of the highest clock that the SMs are held to, as an owner may hold them.
    """

    shown_by = "eatss.report.cards:profile_parts"

    name: str
    title: str
    aliases: Names
    architecture: str
    compute_capability: Capability

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

    sources: NamedTexts
    bibliography: tuple[Source, ...]
    notes: NamedTexts = ()
    calibration: Calibration | None = None
    clock_share: float = 1.0

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        return (
            f"<GpuProfile {self.name}: {self.title}, compute capability {major}.{minor}, "
            f"{self.sm_count} SMs, {self.bandwidth_gb_s:g} GB/s, {figure(self.tdp_w, 'W')}>"
        )

    def peak_tensor_gflops(self, form: str) -> float | None:
        """Return the peak of products of a format, where a card has TF32 as well."""
        if form == "fp64":
            return self.peak_fp64_tensor_gflops
        single = self.peak_tf32_tensor_gflops
        return None if single is None else TIMES_TF32[form] * single

    @property
    def calibrated(self) -> bool:
        """Whether every coefficient was measured on cards of this kind."""
        return self.calibration is not None and not self.calibration.missing
