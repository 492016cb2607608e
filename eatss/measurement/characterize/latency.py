"""Latencies, launches, and a card that is awake but idle.

A latency is what one thread waits for, with one warp on the card: times only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eatss.measurement.characterize.arithmetic import TABLES
from eatss.measurement.characterize.benchmark import (
    LINE_BYTES,
    STREAM_BYTES,
    WARP,
    Benchmark,
    Buffer,
    Chip,
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
_TIMES = 64
_WARM = "for (unsigned k = 0; k < {words}u; k += 32) warm += *(volatile unsigned *)(in + k);"


def latency_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield what one thread waits for: loads of each level, arithmetic, atomics and barriers.

    Where a level's buffer is larger than the level before it, a random cycle through its lines is
    followed, so that neither prefetching nor the level before helps.
    """
    quarter = 1 << (chip.l2_bytes // 4).bit_length() - 1
    warm = _WARM.format(words=quarter // 4)
    memory, launched = STREAM_BYTES, STREAM_BYTES // KIB // _TIMES
    for level, space, size_bytes, stride, values, repeats in (
        ("shared", "shared", 4 * KIB, 4, {"at": '"r"(base + 4 * x)'}, None),
        ("L1", "global.ca", 16 * KIB, LINE_BYTES, {}, None),
        ("L2", "global.cg", quarter, LINE_BYTES, {"warm": warm}, None),
        ("DRAM", "global.cg", memory, KIB, {}, launched),
    ):
        yield _latency(
            f"{level} load",
            f'"ld.{space}.u32 %0, [%1];" : "=r"(x) : {values.get("at", _IN)}',
            {"other": "1", "third": "1", **values},
            given=Buffer(size_bytes=size_bytes, fill="chain", stride=stride // 4),
            repeats=repeats,
        )
    for name, (type_, letter, times, ptx) in TABLES["latencies"].items():
        yield _latency(
            name,
            f'"{ptx}" : "+{letter}"(x) : "{letter}"(s), "{letter}"(t)',
            {"type": type_, **_words(type_, "start", "other", "third")},
            times=times,
        )
    add = '"atom.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(out + 64)'
    plain = _words("unsigned", "other", "third")
    yield _latency("atomic add", add, plain)
    yield _latency("barrier", '"bar.sync 0;" ::: "memory"', plain, threads=256)


_IN = '"l"(in + x)'
_PLACES = {"start": "", "other": " + 32", "third": " + 64"}


def _words(type_: str, *variables: str) -> dict[str, str]:
    """Return what variables begin with: a random word of the thread each."""
    return {one: f"({type_})(in[threadIdx.x{_PLACES[one]}] | 1u)" for one in variables}


def _latency(
    name: str,
    step: str,
    values: Mapping[str, str],
    *,
    given: Buffer | None = None,
    times: int = _TIMES,
    threads: int = WARP,
    repeats: int | None = None,
) -> Benchmark:
    filled = {"type": "unsigned", "start": "0", "warm": "", "times": times, "threads": threads}
    return Benchmark(
        name=f"{name} latency",
        group="latency",
        text=_LATENCY % {**filled, "step": step, **values},
        blocks=1,
        threads=threads,
        arguments=(output(8 * KIB), output(4 * KIB), given or Buffer(size_bytes=4 * KIB), "repeat"),
        operations=float(times),
        loops=float(threads // WARP),
        window_s=None,
        reports_cycles=True,
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
