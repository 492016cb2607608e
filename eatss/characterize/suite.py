"""Every microbenchmark for a card, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.characterize.access_patterns import pattern_benchmarks
from eatss.characterize.arithmetic import scalar_benchmarks, tensor_benchmarks
from eatss.characterize.benchmark import Benchmark
from eatss.characterize.intensity_sweep import intensity_benchmarks
from eatss.characterize.latency import (
    awake_benchmark,
    chase_benchmarks,
    latency_benchmarks,
    launch_benchmark,
)
from eatss.characterize.memory import (
    access_size_benchmarks,
    bank_conflict_benchmarks,
    coalescing_benchmarks,
    memory_benchmarks,
    stride_benchmarks,
)
from eatss.gpu.profile import GpuProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What the benchmarks have to know of a card."""

    sms: int
    l2_bytes: int
    capability: int

    @classmethod
    def of(cls, profile: GpuProfile) -> Chip:
        """Return it from a profile."""
        major, minor = profile.compute_capability
        return cls(sms=profile.sm_count, l2_bytes=profile.l2_bytes, capability=10 * major + minor)


def suite(chip: Chip) -> tuple[Benchmark, ...]:
    """Return all benchmarks: those that coefficients are fitted to first, then the curves."""
    return (
        awake_benchmark(chip.sms),
        *latency_benchmarks(chip.l2_bytes),
        launch_benchmark(chip.sms),
        *scalar_benchmarks(chip.sms),
        *tensor_benchmarks(chip.sms, chip.capability),
        *memory_benchmarks(chip.sms, chip.l2_bytes),
        *chase_benchmarks(chip.sms, chip.l2_bytes),
        *intensity_benchmarks(chip.sms),
        *coalescing_benchmarks(chip.sms),
        *access_size_benchmarks(chip.sms),
        *bank_conflict_benchmarks(chip.sms),
        *stride_benchmarks(chip.sms),
        *pattern_benchmarks(),
    )
