"""What NVIDIA specifies of arithmetic: results per clock cycle and SM.

From the CUDA C++ Programming Guide, *Arithmetic Instructions*, table *Throughput of Native
Arithmetic Instructions*.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SOURCE = "CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions"

CAPABILITIES = (70, 75, 80, 86, 89, 90)
"""Compute capabilities of the table, as in 90 for 9.0."""

_ROWS: tuple[tuple[tuple[str, ...], tuple[float, ...]], ...] = (
    (("fp32 add", "fp32 mul", "fp32 fma"), (64, 64, 64, 128, 128, 128)),
    (("fp64 add", "fp64 mul", "fp64 fma"), (32, 2, 32, 2, 2, 64)),
    # the guide counts 16-bit results; an instruction gives two
    (("fp16x2 fma",), (64, 64, 128, 64, 64, 128)),
    (
        ("fp32 sin", "fp32 cos", "fp32 exp", "fp32 log", "fp32 rsqrt", "fp32 rcp"),
        (16, 16, 16, 16, 16, 16),
    ),
    (
        ("int32 add", "int32 mul", "int32 shift", "int32 bits", "int32 compare"),
        (64, 64, 64, 64, 64, 64),
    ),
    (("int32 popc", "int32 find", "int32 reverse"), (16, 16, 16, 16, 16, 16)),
)

_TABLE: Mapping[tuple[str, int], float] = MappingProxyType(
    {
        (name, capability): float(rate)
        for names, rates in _ROWS
        for name in names
        for capability, rate in zip(CAPABILITIES, rates, strict=True)
    }
)


def peak_per_cycle(benchmark: str, capability: int) -> float | None:
    """Return the instructions of threads that an SM is specified to do in a cycle.

    Args:
        benchmark: a name of the group ``arithmetic``, as ``fp32 fma``.
        capability: the compute capability, as 90 for 9.0.

    ``None``: the guide says nothing, as of divisions and of 64-bit integers, which are sequences.
    """
    return _TABLE.get((benchmark, capability))
