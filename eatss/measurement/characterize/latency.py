"""Latencies, launches, and a card that is awake but idle.

A latency is what one thread waits for, with one warp on the card: times only.
"""

from __future__ import annotations

from collections.abc import Iterator

from eatss.measurement.characterize.arithmetic import TABLES
from eatss.measurement.characterize.benchmark import (
    WARP,
    Benchmark,
    Buffer,
    Chip,
    Fill,
    output,
)

KIB = 1 << 10

_LATENCY = r"""
extern "C" __global__ void __launch_bounds__(%(threads)d)
timed(long long *cycles, unsigned *out, unsigned *in, int repeat)
{
    __shared__ unsigned held[1024];
    for (unsigned k = threadIdx.x; k < 1024; k += blockDim.x) held[k] = (k * 5 + 37) %% 1024;
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(held);
    %(type)s x = %(start)s, s = %(other)s, t = %(third)s;
    unsigned warm = 0;
    %(warm)s
    const long long begun = clock64();
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
#pragma unroll
        for (int n = 0; n < %(times)d; ++n)
            asm volatile(%(step)s);
    }
    cycles[threadIdx.x] = clock64() - begun;
    out[threadIdx.x] = (unsigned)(long long)x + warm + base;
}
"""


def latency_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield what one thread waits for: loads of each level, arithmetic, atomics and barriers.

    Where a level's buffer is larger than the level before it, a random cycle through its lines is
    followed, so that neither prefetching nor the level before helps.
    """
    quarter_bytes = 1 << (chip.l2_bytes // 4).bit_length() - 1
    for name, waits in TABLES["latencies"].items():
        yield _latency(name, quarter_bytes, **waits)


def _latency(
    name: str,
    quarter_bytes: int,
    *,
    step: str,
    type: str = "unsigned",  # noqa: A002 - as CUDA calls it
    start: str = "0",
    other: str = "",
    third: str = "",
    warm: str = "",
    given_bytes: int = 4 * KIB,
    fill: Fill = "bits",
    stride: int = 1,
    times: int = 64,
    threads: int = WARP,
    repeats: int | None = None,
) -> Benchmark:
    """Return a benchmark of a latency: see ``arithmetic.toml``."""
    given_bytes = given_bytes or quarter_bytes
    filled = {
        "type": type,
        "start": start,
        "other": other or f"({type})(in[threadIdx.x + 32] | 1u)",
        "third": third or f"({type})(in[threadIdx.x + 64] | 1u)",
        "warm": warm % {"words": given_bytes // 4},
        "times": times,
        "threads": threads,
        "step": step,
    }
    return Benchmark(
        name=f"{name} latency",
        group="latency",
        text=_LATENCY % filled,
        blocks=1,
        threads=threads,
        arguments=(
            output(8 * KIB),
            output(4 * KIB),
            Buffer(size_bytes=given_bytes, fill=fill, stride=stride),
            "repeat",
        ),
        operations=float(times),
        loops=float(threads // WARP),
        window_s=None,
        repeats=repeats,
    )


LAUNCHES = 1000
"""Launches of a graph of empty kernels."""

_AWAKE = r"""
extern "C" __global__ void timed(unsigned *out, int repeat)
{
    const long long until = clock64() + 100000ll * repeat;
    while (clock64() < until) __nanosleep(2000);
    out[blockIdx.x] = (unsigned)until;
}
"""
_EMPTY = r"""
extern "C" __global__ void timed(unsigned *out, int repeat)
{
    if (repeat < 0) out[threadIdx.x] = 1;
}
"""


def awake_benchmark(chip: Chip) -> Benchmark:
    """Return a kernel that holds every SM and sleeps: power of a card that is awake and idle."""
    return Benchmark(
        name="active idle",
        group="idle",
        text=_AWAKE,
        blocks=chip.sms,
        threads=WARP,
        arguments=(output(4 * chip.sms), "repeat"),
        operations=0.0,
        loops=0.0,
    )


def launch_benchmark(chip: Chip) -> Benchmark:
    """Return an empty kernel, launched again and again from a graph: what a launch takes."""
    return Benchmark(
        name="launch overhead",
        group="launch",
        text=_EMPTY,
        blocks=chip.sms,
        threads=128,
        arguments=(output(4 * KIB), "repeat"),
        operations=1.0,
        loops=0.0,
        window_s=None,
        repeats=LAUNCHES,
    )
