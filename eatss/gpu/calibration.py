"""What was measured of a card: prices of operations and bytes, rates, latencies, and of which card.

``eatss characterize`` finds these figures, the predicted objectives use them. A profile without
them is **uncalibrated**: :mod:`eatss.gpu.scaled` scales another card's by specifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A figure with the ends of its 95 % interval.

    ``low`` and ``high`` are the value where only one measurement says it. ``spread`` is half of the
    range between cards of one kind over their mean, ``None`` where one card was measured.
    """

    value: float
    low: float
    high: float
    spread: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The coefficients of a card, how well they fit, and where they come from.

    ``cards`` are hashes of the cards' UUIDs. ``r_squared`` is of the mean powers that the fit
    gives; ``median_residual`` and ``worst_residual`` are shares of an energy. ``benchmarks`` is how
    many a run has.
    """

    coefficients: tuple[tuple[str, Coefficient], ...]
    cards: tuple[str, ...]
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
    def missing(self) -> tuple[str, ...]:
        """The coefficients that it lacks."""
        known = dict(self.coefficients)
        return tuple(name for name in COEFFICIENTS if name not in known)

    def value(self, name: str) -> float | None:
        """Return a coefficient, ``None`` if it was not found."""
        found = dict(self.coefficients).get(name)
        return None if found is None else found.value
