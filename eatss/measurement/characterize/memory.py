"""Microbenchmarks of memory: throughput and energy of each level, and what spoils them.

[MIPP, Tables III and IV, Figs. 6 to 8]. Buffers hold random bits; what is read is folded together,
so that no load can be left out, and the machine code is checked for the loads.
"""

from __future__ import annotations

from typing import Any

from eatss.measurement.characterize.benchmark import (
    COEFFICIENT_WINDOW_S,
    CURVE_WINDOW_S,
    LINE_BYTES,
    WARP,
    Amounts,
    Argument,
    Benchmark,
    Buffer,
    Group,
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
    %(begin)s
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
                asm volatile("ld.global.v4.u32 {%%0, %%1, %%2, %%3}, [%%4];"
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
        _dram(sms, reads=True),
        _dram(sms, reads=False),
        _copy(sms, 16, "DRAM copy", "memory", COEFFICIENT_WINDOW_S),
        _cached(sms, "L2 read", held, ".cg", "l2_bytes"),
        _cached(sms, "L1 read", 64 * KIB, ".ca"),
        _shared_read(sms, "shared read", 4, apart=True),
        _shared_read(sms, "shared read 16", 16, apart=True),
        _shared_read(sms, "shared broadcast", 4, apart=False),
        _stores(sms, "shared write", "memory", 0, COEFFICIENT_WINDOW_S),
        _constant(sms),
    )


def _even(count: int, sms: int) -> int:
    """Return elements that all threads share evenly, of two blocks of ``THREADS`` an SM."""
    return count - count % (sms * 2 * THREADS * UNROLL)


def _dram(sms: int, *, reads: bool) -> Benchmark:
    """Return a benchmark that streams through memory, 16 bytes a thread."""
    count, beside = _even(STREAM_BYTES // 16, sms), sms * 2 * THREADS
    moved = 16.0 * count
    way, begin, end = (
        "write",
        "const uint4 salt = in[id]; unsigned seed = salt.w ^ (unsigned)id;",
        "",
    )
    if reads:
        way, begin, end = "read", "uint4 sum = {};", "    out[id] = sum.x ^ sum.y ^ sum.z ^ sum.w;"
    return Benchmark(
        name=f"DRAM {way}",
        group="memory",
        text=_STREAM
        % {
            "parameters": f"{'unsigned' if reads else 'uint4'} *out, const uint4 *in",
            "begin": begin,
            "count": count,
            "unroll": UNROLL,
            "body": (_READ if reads else _WRITE) % {"unroll": UNROLL, "fold": _FOLD},
            "end": end,
        },
        blocks=sms * 2,
        threads=THREADS,
        arguments=(
            Buffer(size_bytes=4 * beside if reads else 16 * count, fill="nothing"),
            Buffer(size_bytes=16 * (count if reads else beside)),
            "repeat",
        ),
        operations=count / WARP,
        useful_bytes=moved,
        loops=count / WARP / UNROLL,
        amounts=streamed_amounts(moved, dram=f"dram_{way}_bytes"),
        expected={rf"{'LDG' if reads else 'STG'}\.E\.128": UNROLL},
    )


_COPIED = {
    1: ("uchar1", r"\.U8"),
    2: ("ushort1", r"\.U16"),
    4: ("uint1", ""),
    8: ("uint2", r"\.64"),
    16: ("uint4", r"\.128"),
}
"""Bytes of a copy: the type that has them, and how machine code says so."""

_COPY_BODY = r"""
            %(type)s v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) v[k] = in[at + k * all];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) out[at + k * all] = v[k];
"""


def _copy(sms: int, size: int, name: str, group: Group, window_s: float) -> Benchmark:
    type_, suffix = _COPIED[size]
    count = _even(STREAM_BYTES // (2 if size >= 4 else 8) // size, sms)
    warps, one_way = count / WARP, 1.0 * size * count
    return Benchmark(
        name=name,
        group=group,
        text=_STREAM
        % {
            "parameters": f"{type_} *__restrict__ out, const {type_} *__restrict__ in",
            "begin": "int sum = {};",
            "count": count,
            "unroll": UNROLL,
            "body": _COPY_BODY % {"type": type_, "unroll": UNROLL},
            "end": "    (void)sum;",
        },
        blocks=sms * 2,
        threads=THREADS,
        arguments=(
            Buffer(size_bytes=size * count, fill="nothing"),
            Buffer(size_bytes=size * count),
            "repeat",
        ),
        operations=2 * warps,
        useful_bytes=2 * one_way,
        loops=warps / UNROLL,
        amounts={
            "l1_wavefronts": 2 * warps * max(1, size * WARP // LINE_BYTES),
            "l1_bytes": 2 * one_way,
            "l2_bytes": 2 * one_way,
            "dram_read_bytes": one_way,
            "dram_write_bytes": one_way,
        },
        expected={rf"LDG\.E{suffix}(\.CONSTANT)?": UNROLL, rf"STG\.E{suffix}": UNROLL},
        window_s=window_s,
        parameters={"bytes": size},
    )


def accesses_of_warps(
    name: str,
    text: str,
    sms: int,
    given: Buffer,
    *,
    count: int,
    unroll: int,
    opcode: str,
    bytes_: int,
    of_each: Amounts,
    numbers: tuple[Argument, ...] = (),
    group: Group = "memory",
    blocks_per_sm: int = 2,
    threads: int = THREADS,
    **of_curve: Any,
) -> Benchmark:
    """Return a benchmark of accesses by warps, ``count`` by each and ``unroll`` in a row.

    Args:
        name: of it.
        text: its CUDA.
        sms: of the card.
        given: what is read.
        count: accesses of a warp.
        unroll: those of a turn of its loop.
        opcode: of each in machine code.
        bytes_: that each asks for.
        of_each: how much each has of features of the fit.
        numbers: arguments besides.
        group: of it.
        blocks_per_sm: blocks.
        threads: of each.
        of_curve: other fields of a point of a curve.
    """
    blocks = sms * blocks_per_sm
    accesses = float(count * blocks * threads / WARP)
    out, read, repeat = out_and_in(blocks * threads, given)
    return Benchmark(
        name=name,
        group=group,
        text=text,
        blocks=blocks,
        threads=threads,
        arguments=(out, read, *numbers, repeat),
        operations=accesses,
        useful_bytes=accesses * bytes_,
        loops=accesses / unroll,
        amounts={feature: accesses * each for feature, each in of_each.items()},
        expected={opcode: unroll},
        **of_curve,
    )


_CACHED = (
    _HEAD
    + r"""
    const unsigned mask = %(mask)du;
    unsigned at = (unsigned)(threadIdx.x + blockIdx.x * %(offset)du);
    uint4 sum = {};
#pragma unroll 1
    for (int turn = 0; turn < repeat * %(turns)d; ++turn) {
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


def _cached(sms: int, name: str, held_bytes: int, cache: str, level: str = "l1_bytes") -> Benchmark:
    """Return a benchmark that reads a buffer which a cache holds, 16 bytes a thread.

    Blocks begin at different places of the buffer, so that no two read the same lines together.
    """
    elements, moved = held_bytes // 16, WARP * 16
    text = _CACHED % {
        "parameters": "unsigned *out, const uint4 *in",
        "mask": elements - 1,
        "offset": max(THREADS, elements // (sms * 2) // THREADS * THREADS),
        "unroll": UNROLL,
        "turns": _CACHED_TURNS,
        "cache": cache,
        "step": THREADS,
        "fold": _FOLD,
    }
    return accesses_of_warps(
        name, text, sms, Buffer(size_bytes=held_bytes),
        count=_CACHED_TURNS * UNROLL, unroll=UNROLL, opcode=r"LDG\.E\.128(\.STRONG\.(GPU|SM))?",
        bytes_=moved,
        of_each={"l1_wavefronts": moved / LINE_BYTES, "l1_bytes": moved, level: moved},
    )  # fmt: skip


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


def _shared_read(sms: int, name: str, size: int, *, apart: bool) -> Benchmark:
    """Return a benchmark of loads from shared memory without conflicts.

    ``apart``: each lane its own element; else all lanes of a warp the same.
    """
    each = size // 4
    vector, unroll, opcode = {
        1: ("u32 %0", 32, r"LDS"),
        4: ("v4.u32 {%0, %1, %2, %3}", 8, r"LDS\.128"),
    }[each]
    text = _SHARED_READ % {
        "parameters": "unsigned *out, const unsigned *in",
        "words": _SHARED_WORDS,
        "start": f"threadIdx.x {'%' if apart else '/'} 32 * {size}u",
        "turns": _SHARED_TURNS,
        "unroll": unroll,
        "load": f'"ld.shared.{vector}, [%{each}];"',
        "outputs": ", ".join(f'"=r"(v[{n}])' for n in range(each)),
        "step": 32 * size if apart else 128,
        "each": each,
    }
    bytes_ = size * WARP if apart else size
    return accesses_of_warps(
        name, text, sms, Buffer(size_bytes=4 * _SHARED_WORDS),
        count=_SHARED_TURNS * unroll, unroll=unroll, opcode=opcode, bytes_=bytes_,
        of_each={"shared_wavefronts": each if apart else 1, "shared_bytes": bytes_},
    )  # fmt: skip


_SHARED_STORE = (
    _HEAD
    + r"""
    __shared__ unsigned held[8192];
    const unsigned conflicts = conflicts_given;
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
_STORE_TURNS = 64


def _stores(sms: int, name: str, group: Group, conflicts: int, window_s: float) -> Benchmark:
    """Return a benchmark of stores to shared memory, ``conflicts`` + 1 rows to a bank."""
    text = _SHARED_STORE % {
        "parameters": "unsigned *out, const unsigned *in, int conflicts_given",
        "turns": _STORE_TURNS,
        "unroll": _STORES,
    }
    return accesses_of_warps(
        name, text, sms, Buffer(size_bytes=4 * _SHARED_WORDS), numbers=(conflicts,), group=group,
        count=_STORE_TURNS * _STORES, unroll=_STORES, opcode=r"STS", bytes_=LINE_BYTES,
        of_each={"shared_wavefronts": conflicts + 1, "shared_bytes": LINE_BYTES},
        window_s=window_s, parameters={"conflicts": conflicts},
    )  # fmt: skip


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
    unroll = turns = 64
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
    return accesses_of_warps(
        "constant read", text, sms, Buffer(size_bytes=4 * 64),
        count=turns * unroll, unroll=unroll, opcode=r"LDC", bytes_=4, of_each={},
    )  # fmt: skip


def access_size_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return copies of one array into another, 1 to 16 bytes a thread [MIPP, Fig. 7]."""
    return tuple(
        _copy(sms, size, f"copy by {size} bytes", "access size", CURVE_WINDOW_S) for size in _COPIED
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
    return tuple(
        _gathered(
            sms, f"coalesced {side}/32", "coalescing",
            f"(n / {side}) * {LINE_BYTES}ull % {STREAM_BYTES}ull + n % {side} * 4", 4,
            lines=WARP // side, sectors=WARP // side * -(-side * 4 // SECTOR_BYTES),
            span=LINE_BYTES / side, parameters={"side": side, "lines": WARP // side},
        )
        for side in (1, 2, 4, 8, 16, 32)
    )  # fmt: skip


def stride_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return reads of a byte a thread, neighbours 1 byte to 256 KiB apart.

    A sweep through the buffer is followed by another one sector further on, so that no sector is
    read again soon.
    """
    found = []
    for power in range(MOST_STRIDE_BYTES.bit_length()):
        stride = 1 << power
        again = f" + n * {stride}ull / {STREAM_BYTES}ull % {stride // 32}ull * {SECTOR_BYTES}"
        lines, sectors = (
            min(WARP, max(1, WARP * stride // size)) for size in (LINE_BYTES, SECTOR_BYTES)
        )
        found.append(
            _gathered(
                sms, f"stride {stride} B", "stride",
                f"n * {stride}ull % {STREAM_BYTES}ull{again if stride >= 64 else ''}", 1,
                lines=lines, sectors=sectors, span=min(stride, SECTOR_BYTES),
                parameters={"stride_bytes": stride},
            )
        )  # fmt: skip
    return tuple(found)


def _gathered(
    sms: int,
    name: str,
    group: Group,
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
    type_, suffix = ("unsigned char", r"\.U8") if size == 1 else ("unsigned", "")
    text = _GATHER % {
        "parameters": "unsigned *out, const unsigned char *in",
        "steps": _GATHER_STEPS,
        "unroll": _GATHER_UNROLL,
        "type": type_,
        "place": place,
    }
    moved = sectors * SECTOR_BYTES
    return accesses_of_warps(
        name, text, sms, Buffer(size_bytes=STREAM_BYTES + MOST_STRIDE_BYTES), group=group,
        count=_GATHER_STEPS, unroll=_GATHER_UNROLL, opcode=rf"LDG\.E{suffix}(\.CONSTANT)?",
        bytes_=WARP * size, blocks_per_sm=4,
        of_each={"l1_wavefronts": lines, "l2_bytes": moved, "dram_read_bytes": moved},
        window_s=CURVE_WINDOW_S, parameters=parameters,
        repeats=max(1, round(STREAM_BYTES / (_GATHER_STEPS * sms * 4 * THREADS * span))),
    )  # fmt: skip
