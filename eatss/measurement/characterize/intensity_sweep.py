"""The intensity sweep [Choi and Vuduc, section 4.2]: multiply-adds for each byte that is streamed.

A large array is read, and with each element some independent multiply-adds are done; how many says
where between memory and arithmetic the kernel stands. Chains turn points about a circle, so that
values stay ordinary and differ at every step.
"""

from __future__ import annotations

from typing import Literal

from eatss.measurement.characterize.benchmark import (
    WARP,
    Benchmark,
    Buffer,
    out_and_in,
    streamed_amounts,
)
from eatss.measurement.characterize.memory import STREAM_BYTES

THREADS = 256
BLOCKS_PER_SM = 8
VECTORS = 4
"""Loads of 16 bytes that a thread has under way."""

STEPS: tuple[int, ...] = (0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 96, 128, 256)
"""Multiply-adds for each number of a vector."""

UNROLLED = 32
"""Steps in a row; more are a loop around them, so that the instruction cache holds it."""

_TEXT = r"""
extern "C" __global__ void __launch_bounds__(%(threads)d)
timed(unsigned *out, const %(vector)s *__restrict__ in, int repeat)
{
    const unsigned long long id = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long all = gridDim.x * (unsigned long long)blockDim.x;
    const %(type)s s = %(type)s(0.5) + %(type)s(threadIdx.x) / 4096, t = -s;
    unsigned sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn)
#pragma unroll 1
        for (unsigned long long at = id; at < %(count)dull; at += %(loads)d * all) {
            %(vector)s v[%(loads)d];
#pragma unroll
            for (int k = 0; k < %(loads)d; ++k) v[k] = in[at + k * all];
#pragma unroll 1
            for (int part = 0; part < %(parts)d; ++part)
#pragma unroll
                for (int step = 0; step < %(part)d; ++step)
#pragma unroll
                    for (int k = 0; k < %(loads)d; ++k) { %(both)s }
#pragma unroll
            for (int k = 0; k < %(loads)d; ++k) { %(fold)s }
        }
    out[id] = sum;
}
"""
_FIRST = (
    'asm volatile("fma.rn.{0} %0, %1, %2, %0;" : "+{1}"(v[k].{2}) : "{1}"(v[k].{3}), "{1}"(s));'
)
_SECOND = _FIRST.replace("(s)", "(t)")


def intensity_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return the sweep in single and double precision, from far below to far above balance."""
    return tuple(_benchmark(sms, width, steps) for width in ("fp32", "fp64") for steps in STEPS)


def _benchmark(sms: int, width: Literal["fp32", "fp64"], steps: int) -> Benchmark:
    opcode, type_, vector, size, kind, letter, pairs, fold = {
        "fp32": (
            "FFMA", "float", "float4", 4, "f32", "f", (("x", "y"), ("z", "w")),
            "sum ^= __float_as_uint(v[k].x) ^ __float_as_uint(v[k].y)"
            " ^ __float_as_uint(v[k].z) ^ __float_as_uint(v[k].w);",
        ),
        "fp64": (
            "DFMA", "double", "double2", 8, "f64", "d", (("x", "y"),),
            "sum ^= __double2loint(v[k].x) ^ __double2hiint(v[k].x)"
            " ^ __double2loint(v[k].y) ^ __double2hiint(v[k].y);",
        ),
    }[width]  # fmt: skip
    part = min(steps, UNROLLED)
    parts = steps // part if part else 0
    numbers = 16 // size
    blocks = sms * BLOCKS_PER_SM
    threads = blocks * THREADS
    count = STREAM_BYTES // 16 // (threads * VECTORS) * (threads * VECTORS)
    first = [_FIRST.format(kind, letter, a, b) for a, b in pairs]
    second = [_SECOND.format(kind, letter, b, a) for a, b in pairs]
    fmas = float(steps * numbers * count)
    moved = 16.0 * count
    loads = {} if parts > 1 else {r"LDG\.E\.128(\.CONSTANT)?": VECTORS}
    return Benchmark(
        name=f"{width}, {2 * steps / size:g} flop/byte",
        group="intensity",
        text=_TEXT
        % {
            "threads": THREADS,
            "vector": vector,
            "type": type_,
            "count": count,
            "loads": VECTORS,
            "parts": parts,
            "part": part,
            "both": " ".join(first + second),
            "fold": fold,
        },
        blocks=blocks,
        threads=THREADS,
        arguments=out_and_in(threads, Buffer(size_bytes=16 * count, fill=width)),
        operations=fmas,
        loops=count / VECTORS / WARP * max(1, parts),
        flops=2 * fmas,
        useful_bytes=moved,
        amounts=streamed_amounts(moved),
        expected=loads | {opcode: part * numbers * VECTORS},
        parameters={"flops_per_byte": 2 * steps / size},
    )
