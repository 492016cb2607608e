"""Microbenchmarks of memory: throughput and energy of each level, and what spoils them.

[MIPP, Tables III and IV, Figs. 6 to 8]. Buffers hold random bits; what is read is folded together,
so that no load can be left out, and the machine code is checked for the loads.
"""

from __future__ import annotations

from typing import Literal

from eatss.characterize.benchmark import (
    COEFFICIENT_WINDOW_S,
    CURVE_WINDOW_S,
    LINE_BYTES,
    WARP,
    Amounts,
    Benchmark,
    Buffer,
    Expected,
    Group,
    Repeat,
    Work,
    out_and_in,
    streamed_amounts,
)

SECTOR_BYTES = 32
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

STREAM_BYTES = GIB
"""A buffer that is many times L2, and small enough for most cards."""

MOST_STRIDE_BYTES = 256 * KIB

THREADS = 512
UNROLL = 8
"""Loads of a thread under way at a time."""

_HEAD = r"""
extern "C" __global__ void __launch_bounds__(1024)
timed(%(parameters)s, int repeat)
{
    const unsigned long long id = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long all = gridDim.x * (unsigned long long)blockDim.x;
"""

_STREAM = (
    _HEAD
    + r"""
    const unsigned long long count = %(count)dull;
    %(type)s sum = {};
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn)
#pragma unroll 1
        for (unsigned long long at = id; at < count; at += %(unroll)d * all) {
%(body)s
        }
%(end)s
}
"""
)
_FOLD = "sum.x ^= v[k].x; sum.y ^= v[k].y; sum.z ^= v[k].z; sum.w ^= v[k].w;"
_READ = r"""
            uint4 v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k)
                asm volatile("ld.global%(cache)s.v4.u32 {%%0, %%1, %%2, %%3}, [%%4];"
                    : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                    : "l"(in + at + k * all));
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) { %(fold)s }
"""
_WRITE = r"""
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) {
                seed = seed * 1664525u + 1013904223u;
                out[at + k * all] = make_uint4(seed, seed ^ salt.x, seed ^ salt.y, seed ^ salt.z);
            }
"""


def memory_benchmarks(sms: int, l2_bytes: int) -> tuple[Benchmark, ...]:
    """Return the benchmarks of each level of memory [MIPP, Tables III and IV].

    Args:
        sms: of the card.
        l2_bytes: size of its L2; a quarter of it is read where L2 is to answer, since both halves
            of an L2 may keep copies.
    """
    held = 1 << (l2_bytes // 4).bit_length() - 1
    return (
        _dram(sms, "read"),
        _dram(sms, "write"),
        _copy(sms, 16, "DRAM copy", "memory", window_s=COEFFICIENT_WINDOW_S),
        _cached(sms, "L2 read", held, ".cg", "l2_bytes"),
        _cached(sms, "L1 read", 64 * KIB, ".ca", ""),
        _shared_read(sms, "shared read", 4, apart=True),
        _shared_read(sms, "shared read 16", 16, apart=True),
        _shared_read(sms, "shared broadcast", 4, apart=False),
        _shared_write(sms),
        _constant(sms),
    )


def _even(count: int, sms: int, unroll: int = UNROLL) -> tuple[int, int]:
    """Return elements that all threads share evenly, and blocks: two of ``THREADS`` an SM."""
    threads = sms * 2 * THREADS
    return count // (threads * unroll) * (threads * unroll), sms * 2


def _dram(sms: int, way: Literal["read", "write"]) -> Benchmark:
    """Return a benchmark that streams through memory, 16 bytes a thread."""
    reads = way == "read"
    count, blocks = _even(STREAM_BYTES // 16, sms)
    body = _READ % {"unroll": UNROLL, "cache": "", "fold": _FOLD} if reads else _WRITE
    text = _STREAM % {
        "parameters": f"{'unsigned' if reads else 'uint4'} *out, const uint4 *in",
        "type": "uint4",
        "count": count,
        "unroll": UNROLL,
        "body": body if reads else body % {"unroll": UNROLL},
        "end": "    out[id] = sum.x ^ sum.y ^ sum.z ^ sum.w;" if reads else "",
    }
    if not reads:
        salt = "const uint4 salt = in[id]; unsigned seed = salt.w ^ (unsigned)id;"
        text = text.replace("uint4 sum = {};", salt)
    streamed, beside = Buffer(size_bytes=16 * count), blocks * THREADS
    out = Buffer(size_bytes=4 * beside if reads else streamed.size_bytes, fill="nothing")
    warps = count / WARP
    return Benchmark(
        name=f"DRAM {way}",
        group="memory",
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=(out, streamed if reads else Buffer(size_bytes=16 * beside), Repeat()),
        work=Work(
            operations=warps,
            useful_bytes=16.0 * count,
            loops=warps / UNROLL,
            amounts=streamed_amounts(16.0 * count, dram=f"dram_{way}_bytes"),
        ),
        expected=(Expected(opcode=rf"{'LDG' if reads else 'STG'}\.E\.128", count=UNROLL),),
    )


_COPY_TYPES = {1: "uchar1", 2: "ushort1", 4: "uint1", 8: "uint2", 16: "uint4"}
_COPY_LETTER = {1: r"U8", 2: r"U16", 4: "", 8: "64", 16: "128"}

_COPY_BODY = r"""
            %(type)s v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) v[k] = in[at + k * all];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) out[at + k * all] = v[k];
"""


def _copy(
    sms: int, size: int, name: str, group: Group, *, window_s: float, unroll: int = UNROLL
) -> Benchmark:
    total = STREAM_BYTES // 2 if size >= 4 else STREAM_BYTES // 8
    count, blocks = _even(total // size, sms, unroll)
    body = _COPY_BODY % {"type": _COPY_TYPES[size], "unroll": unroll}
    text = _STREAM % {
        "parameters": "{0} *__restrict__ out, const {0} *__restrict__ in".format(_COPY_TYPES[size]),
        "type": "int",
        "count": count,
        "unroll": unroll,
        "body": body,
        "end": "    (void)sum;",
    }
    warps = count / WARP
    opcode = _COPY_LETTER[size]
    suffix = rf"\.{opcode}" if opcode else ""
    return Benchmark(
        name=name,
        group=group,
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=(
            Buffer(size_bytes=size * count, fill="nothing"),
            Buffer(size_bytes=size * count),
            Repeat(),
        ),
        work=Work(
            operations=2 * warps,
            useful_bytes=2.0 * size * count,
            loops=warps / unroll,
            amounts=(
                ("l1_wavefronts", 2 * warps * max(1, size * WARP // LINE_BYTES)),
                ("l1_bytes", 2.0 * size * count),
                ("l2_bytes", 2.0 * size * count),
                ("dram_read_bytes", 1.0 * size * count),
                ("dram_write_bytes", 1.0 * size * count),
            ),
        ),
        expected=(
            Expected(opcode=rf"LDG\.E{suffix}(\.CONSTANT)?", count=unroll),
            Expected(opcode=rf"STG\.E{suffix}", count=unroll),
        ),
        window_s=window_s,
        parameters=(("bytes", size),),
    )


_CACHED = (
    _HEAD
    + r"""
    const unsigned mask = %(mask)du;
    unsigned at = (unsigned)(threadIdx.x + blockIdx.x * %(offset)du);
    uint4 sum = {};
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
        uint4 v[%(unroll)d];
#pragma unroll
        for (int k = 0; k < %(unroll)d; ++k)
            asm volatile("ld.global%(cache)s.v4.u32 {%%0, %%1, %%2, %%3}, [%%4];"
                : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                : "l"(in + ((at + k * %(step)du) & mask)));
        at += %(unroll)d * %(step)du;
#pragma unroll
        for (int k = 0; k < %(unroll)d; ++k) { %(fold)s }
    }
    out[id] = sum.x ^ sum.y ^ sum.z ^ sum.w;
}
"""
)
_CACHED_TURNS = 64


def _cached(sms: int, name: str, held_bytes: int, cache: str, level: str) -> Benchmark:
    """Return a benchmark that reads a buffer which a cache holds, 16 bytes a thread.

    Blocks begin at different places of the buffer, so that no two read the same lines together.
    """
    blocks, elements = sms * 2, held_bytes // 16
    text = _CACHED % {
        "parameters": "unsigned *out, const uint4 *in",
        "mask": elements - 1,
        "offset": max(THREADS, elements // blocks // THREADS * THREADS),
        "unroll": UNROLL,
        "cache": cache,
        "step": THREADS,
        "fold": _FOLD,
    }
    loads = float(_CACHED_TURNS * UNROLL * blocks * THREADS / WARP)
    text = text.replace("turn < repeat", f"turn < repeat * {_CACHED_TURNS}")
    moved = loads * WARP * 16
    amounts: Amounts = (
        ("l1_wavefronts", moved / LINE_BYTES),
        ("l1_bytes", moved),
    )
    return Benchmark(
        name=name,
        group="memory",
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=out_and_in(blocks * THREADS, Buffer(size_bytes=held_bytes)),
        work=Work(
            operations=loads,
            useful_bytes=moved,
            loops=loads / UNROLL,
            amounts=amounts + (((level, moved),) if level else ()),
        ),
        expected=(Expected(opcode=r"LDG\.E\.128(\.STRONG\.(GPU|SM))?", count=UNROLL),),
    )


_SHARED_WORDS = 8192
_SHARED_READ = (
    _HEAD
    + r"""
    __shared__ __align__(16) unsigned held[%(words)d];
    for (unsigned k = threadIdx.x; k < %(words)d; k += blockDim.x) held[k] = in[k];
    __syncthreads();
    const unsigned start = (unsigned)__cvta_generic_to_shared(held) + %(start)s;
    unsigned sum[4] = {};
#pragma unroll 1
    for (int turn = 0; turn < repeat * %(turns)d; ++turn) {
        unsigned v[4];
        const unsigned at = start + (turn & 3) * 4096u;
#pragma unroll
        for (int k = 0; k < %(unroll)d; ++k) {
            asm volatile(%(load)s : %(outputs)s : "r"(at + k * %(step)du));
#pragma unroll
            for (int n = 0; n < %(each)d; ++n) sum[n] ^= v[n];
        }
    }
    out[id] = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}
"""
)
_SHARED_TURNS = 128
_SHARED_UNROLL = 32


def _shared_read(sms: int, name: str, size: int, *, apart: bool) -> Benchmark:
    """Return a benchmark of loads from shared memory without conflicts.

    ``apart``: each lane its own element; else all lanes of a warp the same.
    """
    blocks, each = sms * 2, size // 4
    vector = {1: "u32 %0", 4: "v4.u32 {%0, %1, %2, %3}"}[each]
    unroll = _SHARED_UNROLL if each == 1 else 8
    lane = "threadIdx.x % 32" if apart else "threadIdx.x / 32"
    text = _SHARED_READ % {
        "parameters": "unsigned *out, const unsigned *in",
        "words": _SHARED_WORDS,
        "start": f"{lane} * {size}u",
        "turns": _SHARED_TURNS,
        "unroll": unroll,
        "load": f'"ld.shared.{vector}, [%{each}];"',
        "outputs": ", ".join(f'"=r"(v[{n}])' for n in range(each)),
        "step": 32 * size if apart else 128,
        "each": each,
    }
    loads = float(_SHARED_TURNS * unroll * blocks * THREADS / WARP)
    wavefronts = loads * (each if apart else 1)
    moved = loads * (size * WARP if apart else size)
    opcode = {1: r"LDS", 4: r"LDS\.128"}[each]
    return Benchmark(
        name=name,
        group="memory",
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=out_and_in(blocks * THREADS, Buffer(size_bytes=4 * _SHARED_WORDS)),
        work=Work(
            operations=loads,
            useful_bytes=moved,
            loops=loads / unroll,
            amounts=(
                ("shared_wavefronts", wavefronts),
                ("shared_bytes", moved),
            ),
        ),
        expected=(Expected(opcode=opcode, count=unroll),),
    )


_SHARED_STORE = (
    _HEAD
    + r"""
    __shared__ unsigned held[8192];
    const unsigned conflicts = %(conflicts)s;
    const unsigned lane = threadIdx.x %% 32;
    const unsigned word = (lane %% (conflicts + 1)) * 32 + lane / (conflicts + 1)
        + threadIdx.x / 32 * 64;
    const unsigned at = (unsigned)__cvta_generic_to_shared(held) + (word %% 8192) * 4;
    unsigned value = in[id %% 8192], other = value * 2654435761u;
#pragma unroll 1
    for (int turn = 0; turn < repeat * %(turns)d; ++turn) {
#pragma unroll
        for (int k = 0; k < %(unroll)d; k += 2) {
            asm volatile("st.volatile.shared.u32 [%%0], %%1;" :: "r"(at), "r"(value) : "memory");
            asm volatile("st.volatile.shared.u32 [%%0], %%1;" :: "r"(at), "r"(other) : "memory");
        }
    }
    __syncthreads();
    out[id] = held[(threadIdx.x * 32) %% 8192];
}
"""
)
_STORES = 32
_STORE_THREADS = 512


def _stores(sms: int, name: str, group: Group, conflicts: int, window_s: float) -> Benchmark:
    """Return a benchmark of stores to shared memory, ``conflicts`` + 1 rows to a bank."""
    blocks = sms * 2
    text = _SHARED_STORE % {
        "parameters": "unsigned *out, const unsigned *in, int conflicts_given",
        "conflicts": "conflicts_given",
        "turns": 64,
        "unroll": _STORES,
    }
    stores = float(64 * _STORES * blocks * _STORE_THREADS / WARP)
    return Benchmark(
        name=name,
        group=group,
        text=text,
        blocks=blocks,
        threads=_STORE_THREADS,
        arguments=(
            Buffer(size_bytes=4 * blocks * _STORE_THREADS, fill="nothing"),
            Buffer(size_bytes=4 * 8192),
            conflicts,
            Repeat(),
        ),
        work=Work(
            operations=stores,
            useful_bytes=stores * LINE_BYTES,
            loops=stores / _STORES,
            amounts=(
                ("shared_wavefronts", stores * (conflicts + 1)),
                ("shared_bytes", stores * LINE_BYTES),
            ),
        ),
        expected=(Expected(opcode=r"STS", count=_STORES),),
        window_s=window_s,
        parameters=(("conflicts", conflicts),),
    )


def _shared_write(sms: int) -> Benchmark:
    return _stores(sms, "shared write", "memory", 0, COEFFICIENT_WINDOW_S)


_CONSTANT = r"""
__constant__ unsigned table[4096] = {%(values)s};
""" + (
    _HEAD
    + r"""
    unsigned at = in[threadIdx.x / 32] & 1023u, sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < repeat * %(turns)d; ++turn) {
#pragma unroll
        for (int k = 0; k < %(unroll)d; ++k) sum ^= table[at + k];
        at = (at + 1u) & 1023u;
    }
    out[id] = sum;
}
"""
)


def _constant(sms: int) -> Benchmark:
    """Return a benchmark of constant memory: one address a warp, as hardware wants it."""
    blocks, unroll, turns = sms * 2, 64, 64
    value, values = 12345, []
    for _ in range(1024 + unroll):
        value = (value * 1664525 + 1013904223) % 2**32
        values.append(f"{value}u")
    text = _CONSTANT % {
        "parameters": "unsigned *out, const unsigned *in",
        "values": ",".join(values),
        "unroll": unroll,
        "turns": turns,
    }
    loads = float(turns * unroll * blocks * THREADS / WARP)
    return Benchmark(
        name="constant read",
        group="memory",
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=out_and_in(blocks * THREADS, Buffer(size_bytes=4 * 64)),
        work=Work(
            operations=loads,
            useful_bytes=loads * 4,
            loops=loads / unroll,
        ),
        expected=(Expected(opcode=r"LDC", count=unroll),),
    )


def access_size_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return copies of one array into another, 1 to 16 bytes a thread [MIPP, Fig. 7]."""
    return tuple(
        _copy(sms, size, f"copy by {size} bytes", "access size", window_s=CURVE_WINDOW_S)
        for size in _COPY_TYPES
    )


def bank_conflict_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return stores with 0 to 31 conflicts [MIPP, Figs. 4, 5 and 8]."""
    return tuple(
        _stores(sms, f"{n} conflicts", "bank conflicts", n, CURVE_WINDOW_S) for n in range(WARP)
    )


_GATHER = (
    _HEAD
    + r"""
    unsigned sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn)
#pragma unroll 1
        for (unsigned long long step = 0; step < %(steps)dull; step += %(unroll)d) {
            %(type)s v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) {
                const unsigned long long n = id + (turn * %(steps)dull + step + k) * all;
                v[k] = *(const %(type)s *)(in + (%(place)s));
            }
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) sum ^= v[k];
        }
    out[id] = sum;
}
"""
)
_GATHER_UNROLL = 8
_GATHER_STEPS = 32


def coalescing_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return reads of 4 bytes a thread of which 1 to 32 lie side by side [MIPP, Fig. 6].

    Groups of lanes read 4-byte words side by side; groups are 128 bytes apart, so a warp touches
    32 / side lines.
    """
    found = []
    for side in (1, 2, 4, 8, 16, 32):
        lines = WARP // side
        place = f"(n / {side}) * {LINE_BYTES}ull % {STREAM_BYTES}ull + n % {side} * 4"
        sectors = lines * -(-side * 4 // SECTOR_BYTES)
        found.append(
            _gathered(
                sms, f"coalesced {side}/32", "coalescing", "unsigned", place, 4,
                lines=lines, sectors=sectors, parameters=(("side", side), ("lines", lines)),
                span=LINE_BYTES / side,
            )
        )  # fmt: skip
    return tuple(found)


def stride_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return reads of a byte a thread, neighbours 1 byte to 256 KiB apart.

    A sweep through the buffer is followed by another one sector further on, so that no sector is
    read again soon.
    """
    found = []
    for power in range(MOST_STRIDE_BYTES.bit_length()):
        stride = 1 << power
        again = f" + n * {stride}ull / {STREAM_BYTES}ull % {stride // 32}ull * {SECTOR_BYTES}"
        place = f"n * {stride}ull % {STREAM_BYTES}ull{again if stride >= 64 else ''}"
        lines = min(WARP, max(1, WARP * stride // LINE_BYTES))
        sectors = min(WARP, max(1, WARP * stride // SECTOR_BYTES))
        found.append(
            _gathered(
                sms, f"stride {stride} B", "stride", "unsigned char", place, 1,
                lines=lines, sectors=sectors, parameters=(("stride_bytes", stride),),
                span=min(stride, SECTOR_BYTES),
            )
        )  # fmt: skip
    return tuple(found)


def _gathered(
    sms: int,
    name: str,
    group: Group,
    element: str,
    place: str,
    size: int,
    *,
    lines: int,
    sectors: int,
    span: float,
    parameters: Amounts,
) -> Benchmark:
    """Return a benchmark of loads from ``place``, of which each takes ``span`` bytes of the buffer.

    A launch goes through the buffer once: blocks drift apart, and in a second round one would find
    in L2 what another has just read.
    """
    blocks = sms * 4
    loads = float(_GATHER_STEPS * blocks * THREADS / WARP)
    text = _GATHER % {
        "parameters": "unsigned *out, const unsigned char *in",
        "steps": _GATHER_STEPS,
        "unroll": _GATHER_UNROLL,
        "type": element,
        "place": place,
    }
    suffix = r"\.U8" if size == 1 else ""
    return Benchmark(
        name=name,
        group=group,
        text=text,
        blocks=blocks,
        threads=THREADS,
        arguments=out_and_in(blocks * THREADS, Buffer(size_bytes=STREAM_BYTES + MOST_STRIDE_BYTES)),
        work=Work(
            operations=loads,
            useful_bytes=loads * WARP * size,
            loops=loads / _GATHER_UNROLL,
            amounts=(
                ("l1_wavefronts", loads * lines),
                ("l2_bytes", loads * sectors * SECTOR_BYTES),
                ("dram_read_bytes", loads * sectors * SECTOR_BYTES),
            ),
        ),
        expected=(Expected(opcode=rf"LDG\.E{suffix}(\.CONSTANT)?", count=_GATHER_UNROLL),),
        window_s=CURVE_WINDOW_S,
        repeats=max(1, round(STREAM_BYTES / (loads * WARP * span))),
        parameters=parameters,
    )
