"""Pointer chases, latencies, launches, and a card that is awake but idle.

A **chase** is Choi and Vuduc's way to the energy of a cache [section 4.3]: every thread follows
numbers in memory, ``k = A[k]``, so that nothing but loads from one level happens. With one thread
the same chase gives the latency of a level.

Access patterns over sizes of blocks [Allen and Ge, Figs. 4 to 9], with occupancy.

A **sequential** access is one of neighbouring threads to neighbouring words. In a **strided** one
each thread walks through a piece of its own; pieces lie side by side, so neighbouring threads are a
piece apart [Fig. 2]. Every thread does the same number of accesses, whatever the size of a block.
"""

from __future__ import annotations

from typing import Any

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import (
    CURVE_WINDOW_S,
    LINE_BYTES,
    WARP,
    Benchmark,
    Buffer,
    Fill,
    out_and_in,
    streamed_amounts,
)
from eatss.measurement.characterize.memory import GIB, KIB, SECTOR_BYTES, accesses_of_warps

THREADS = 1024
_CHASED = 64

_CHASE = r"""
extern "C" __global__ void __launch_bounds__(1024)
timed(unsigned *out, const unsigned *in, int repeat)
{
    %(shared)s
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned k = %(start)s;
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
#pragma unroll
        for (int n = 0; n < %(chased)d; ++n)
            asm volatile("ld.%(space)s.u32 %%0, [%%1];" : "=r"(k) : "%(letter)s"(%(place)s));
    }
    out[id] = k;
}
"""
_HELD = r"""__shared__ unsigned held[1024];
    held[threadIdx.x] = (threadIdx.x & ~31u) | ((threadIdx.x + 5u) & 31u);
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(held);"""


def chase_benchmarks(sms: int, l2_bytes: int) -> tuple[Benchmark, ...]:
    """Return chases by all threads through L2, L1 and shared memory.

    Each thread follows words of one line, so a warp reads one line of 128 bytes at a time. Where L2
    is to answer, every thread has a word of its own; where L1 is, blocks share 4 KiB.
    """
    held = min(l2_bytes // 4, sms * 2 * THREADS * 4)
    return (
        _chase(sms, "L2 chase", "global.cg", held // (4 * THREADS) * THREADS),
        _chase(sms, "L1 chase", "global.ca", THREADS),
        _chase(sms, "shared chase", "shared", 0),
    )


def _chase(sms: int, name: str, space: str, words: int) -> Benchmark:
    kind, shared, start, letter, place, opcode = (
        ("l1", "", f"id % {words}u", "l", "in + k", r"LDG\.E(\.STRONG\.(GPU|SM))?")
        if words
        else ("shared", _HELD, "threadIdx.x", "r", "base + 4u * k", r"LDS")
    )
    text = _CHASE % {
        "shared": shared,
        "start": start,
        "chased": _CHASED,
        "space": space,
        "letter": letter,
        "place": place,
    }
    below = {"l2_bytes": LINE_BYTES} if name == "L2 chase" else {}
    return accesses_of_warps(
        name, text, sms, Buffer(size_bytes=4 * max(words, WARP), fill="ring"), group="chase",
        count=_CHASED, unroll=_CHASED, opcode=opcode, bytes_=LINE_BYTES, threads=THREADS,
        of_each={f"{kind}_wavefronts": 1, f"{kind}_bytes": LINE_BYTES} | below,
    )  # fmt: skip


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


def latency_benchmarks(l2_bytes: int) -> tuple[Benchmark, ...]:
    """Return what one thread waits for: loads of each level, arithmetic, atomics and barriers.

    Times only. Where a level's buffer is larger than the level before it, a random cycle through
    its lines is followed, so that neither prefetching nor the level before helps.
    """
    quarter = 1 << (l2_bytes // 4).bit_length() - 1
    return (
        _load("shared", "ld.shared.u32", 4 * KIB, 4, letter="r", place="base + 4 * x"),
        _load("L1", "ld.global.ca.u32", 16 * KIB, LINE_BYTES),
        _load("L2", "ld.global.cg.u32", quarter, LINE_BYTES, warm=_WARM.format(words=quarter // 4)),
        _load("DRAM", "ld.global.cg.u32", GIB, KIB, repeats=GIB // KIB // _TIMES),
        _waiting("int32 mad", "unsigned", "r", "mad.lo.u32 %0, %0, %1, %2;"),
        _waiting("fp32 fma", "float", "f", "fma.rn.f32 %0, %0, %1, %2;"),
        _waiting("fp32 rcp", "float", "f", "rcp.approx.ftz.f32 %0, %0; mul.f32 %0, %0, %1;"),
        _waiting("fp32 div", "float", "f", "div.rn.f32 %0, %1, %0;", times=8),
        _waiting("fp64 fma", "double", "d", "fma.rn.f64 %0, %0, %1, %2;"),
        _waiting("fp64 div", "double", "d", "div.rn.f64 %0, %1, %0;", times=8),
        _waiting("fp64 sqrt", "double", "d", "sqrt.rn.f64 %0, %0;", times=8),
        _latency("atomic add", '"atom.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(out + 64)'),
        _latency("barrier", '"bar.sync 0;" ::: "memory"', threads=256),
    )


def _load(
    level: str,
    opcode: str,
    size_bytes: int,
    stride_bytes: int,
    *,
    letter: str = "l",
    place: str = "in + x",
    **of: Any,
) -> Benchmark:
    return _latency(
        f"{level} load",
        f'"{opcode} %0, [%1];" : "=r"(x) : "{letter}"({place})',
        given=Buffer(size_bytes=size_bytes, fill="chain", stride=stride_bytes // 4),
        other="1",
        third="1",
        **of,
    )


def _waiting(name: str, type_: str, letter: str, ptx: str, times: int = _TIMES) -> Benchmark:
    start, other, third = (
        f"({type_})(in[threadIdx.x{further}] | 1u)" for further in ("", " + 32", " + 64")
    )
    return _latency(
        name,
        f'"{ptx}" : "+{letter}"(x) : "{letter}"(s), "{letter}"(t)',
        type_=type_,
        start=start,
        other=other,
        third=third,
        times=times,
    )


def _latency(
    name: str,
    step: str,
    *,
    type_: str = "unsigned",
    start: str = "0",
    other: str = "(unsigned)(in[threadIdx.x + 32] | 1u)",
    third: str = "(unsigned)(in[threadIdx.x + 64] | 1u)",
    given: Buffer | None = None,
    warm: str = "",
    times: int = _TIMES,
    threads: int = WARP,
    repeats: int | None = None,
) -> Benchmark:
    return Benchmark(
        name=f"{name} latency",
        group="latency",
        text=_LATENCY
        % {
            "threads": threads,
            "type": type_,
            "start": start,
            "other": other,
            "third": third,
            "warm": warm,
            "times": times,
            "step": step,
        },
        blocks=1,
        threads=threads,
        arguments=(_page("nothing", 8), *out_and_in(KIB, given or _page("bits", 4))),
        operations=float(times),
        loops=float(threads // WARP),
        window_s=None,
        reports_cycles=True,
        repeats=repeats,
    )


def _page(fill: Fill, kib: int) -> Buffer:
    return Buffer(size_bytes=kib * KIB, fill=fill)


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


def awake_benchmark(sms: int) -> Benchmark:
    """Return a kernel that holds every SM and sleeps: power of a card that is awake and idle."""
    return Benchmark(
        name="active idle",
        group="idle",
        text=_AWAKE,
        blocks=sms,
        threads=WARP,
        arguments=(Buffer(size_bytes=4 * sms, fill="nothing"), "repeat"),
        operations=0.0,
        loops=0.0,
    )


def launch_benchmark(sms: int) -> Benchmark:
    """Return an empty kernel, launched again and again from a graph: what a launch takes."""
    return Benchmark(
        name="launch overhead",
        group="launch",
        text=_EMPTY,
        blocks=sms,
        threads=128,
        arguments=(_page("nothing", 4), "repeat"),
        operations=1.0,
        loops=0.0,
        window_s=None,
        repeats=LAUNCHES,
    )


STEP = 32
MOST_THREADS = 1024
ITEMS = 1 << 20
"""Work items of a launch, as in the paper."""

PIECE = 64
"""Words of 4 bytes that a thread accesses in a turn."""

UNROLL = 16
TURNS = 4
"""Turns until a thread comes back to a word: a launch covers 1 GiB."""


@frozen
class Pattern:
    """A pattern, ``sequential``, ``strided`` or ``shared``: CUDA of an access, what it becomes."""

    name: str
    way: str
    writes: bool
    access: str
    opcode: str


_SEQUENTIAL = f"((turn % {TURNS}) * {PIECE}ull + step + k) * all + id"
_STRIDED = f"((turn % {TURNS}) * all + id) * {PIECE}ull + step + k"
_SHARED = "start + ((step + k) % 4u) * 4u * blockDim.x"
_LOAD = "v[k] = in[%(place)s];"
_STORE = "out[%(place)s] = seed = seed * 1664525u + 1013904223u;"
_LOAD_SHARED = (
    'asm volatile("ld.volatile.shared.u32 %%0, [%%1];" : "=r"(v[k]) : "r"(%(place)s) : "memory");'
)
_STORE_SHARED = (
    'asm volatile("st.volatile.shared.u32 [%%0], %%1;" '
    ':: "r"(%(place)s), "r"(seed ^ v[k]) : "memory");'
)
_FOLD = "sum ^= v[k];"

_OF_BOTH = (
    (False, "read", _LOAD, r"LDG\.E(\.CONSTANT)?", _LOAD_SHARED, r"LDS"),
    (True, "write", _STORE, r"STG\.E", _STORE_SHARED, r"STS"),
)

PATTERNS: tuple[Pattern, ...] = (
    *(
        Pattern(
            name=f"{way} global {verb}", way=way, writes=writes, access=access % {"place": place},
            opcode=opcode,
        )
        for way, place in (("sequential", _SEQUENTIAL), ("strided", _STRIDED))
        for writes, verb, access, opcode, _, _ in _OF_BOTH
    ),
    *(
        Pattern(
            name=f"shared {verb}", way="shared", writes=writes, access=access % {"place": _SHARED},
            opcode=opcode,
        )
        for writes, verb, _, _, access, opcode in _OF_BOTH
    ),
)  # fmt: skip
"""The six operations of the paper, section III-C."""

_TEXT = r"""
extern "C" __global__ void __launch_bounds__(1024)
timed(unsigned *out, const unsigned *__restrict__ in, unsigned long long *busy, int telling,
      int repeat)
{
    extern __shared__ unsigned held[];
    const long long begun = clock64();
    const unsigned long long id = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long all = gridDim.x * (unsigned long long)blockDim.x;
    unsigned seed = (unsigned)id * 2654435761u, sum = 0, v[%(unroll)d];
    const unsigned start = (unsigned)__cvta_generic_to_shared(held) + 4 * threadIdx.x;
    if (%(on_chip)d) {
        for (int k = 0; k < 4; ++k) held[k * blockDim.x + threadIdx.x] = in[id + k];
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < %(unroll)d; ++k) v[k] = seed * (k + 3u);
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
#pragma unroll 1
        for (unsigned step = 0; step < %(piece)du; step += %(unroll)d) {
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) { %(access)s }
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) { %(fold)s }
        }
    }
    if (sum == 0x9e3779b9u && repeat < 0) out[id] = sum;
    if (telling && threadIdx.x %% 32 == 0) {
        unsigned sm;
        asm volatile("mov.u32 %%0, %%smid;" : "=r"(sm));
        const long long ended = clock64();
        atomicAdd(busy + 3 * sm, (unsigned long long)(ended - begun));
        atomicMin(busy + 3 * sm + 1, (unsigned long long)begun);
        atomicMax(busy + 3 * sm + 2, (unsigned long long)ended);
    }
}
"""


def pattern_benchmarks(step: int = STEP) -> tuple[Benchmark, ...]:
    """Return every pattern at block sizes of ``step`` to 1024 threads."""
    return tuple(
        _benchmark(pattern, threads)
        for pattern in PATTERNS
        for threads in range(step, MOST_THREADS + 1, step)
    )


def _benchmark(pattern: Pattern, threads: int) -> Benchmark:
    blocks = -(-ITEMS // threads)
    accesses = float(blocks * threads * PIECE / WARP)
    moved = accesses * LINE_BYTES
    words = ITEMS + MOST_THREADS  # the last block may stand out, in each size by another number
    whole = Buffer(size_bytes=4 * words * PIECE * TURNS)
    small = Buffer(size_bytes=4 * (words + 4))
    writes, on_chip = pattern.writes, pattern.way == "shared"
    return Benchmark(
        name=f"{pattern.name}, {threads} threads",
        group="block size",
        text=_TEXT
        % {
            "unroll": UNROLL,
            "piece": PIECE,
            "on_chip": on_chip,
            "access": pattern.access,
            "fold": "" if writes else _FOLD,
        },
        blocks=blocks,
        threads=threads,
        arguments=(
            whole if writes and not on_chip else small,
            small if writes or on_chip else whole,
            "activity",
            "recording",
            "repeat",
        ),
        operations=accesses,
        loops=accesses / UNROLL,
        useful_bytes=moved,
        amounts={  # what L1 answers of strided accesses is not known beforehand
            "shared": {"shared_wavefronts": accesses, "shared_bytes": moved},
            "strided": {"l1_wavefronts": accesses * WARP, "sectors": moved / SECTOR_BYTES},
            "sequential": streamed_amounts(
                moved, dram="dram_write_bytes" if writes else "dram_read_bytes"
            ),
        }[pattern.way],
        expected={pattern.opcode: UNROLL},
        window_s=CURVE_WINDOW_S,
        shared_bytes=16 * threads,
        parameters={"threads": threads},
    )
