"""Microbenchmarks of memory: throughput and energy of each level, and what spoils them.

Levels [MIPP, Tables III and IV] and curves [Figs. 6 to 8]: buffers hold random bits; what is read
is folded together, so that no load can be left out, and the machine code is checked for the loads.

A **chase** is Choi and Vuduc's way to the energy of a cache [section 4.3]: every thread follows
numbers in memory, ``k = A[k]``, so that nothing but loads from one level happens.

Access patterns over sizes of blocks, with occupancy [Allen and Ge, Figs. 4 to 9]. A **sequential**
access is one of neighbouring threads to neighbouring words. In a **strided** one each thread walks
through a piece of its own; pieces lie side by side, so neighbouring threads are a piece apart
[Fig. 2]. Every thread does the same number of accesses, whatever the size of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eatss.base.text import Texts
from eatss.measurement.characterize.benchmark import (
    CURVE_WINDOW_S,
    LINE_BYTES,
    SECTOR_BYTES,
    STREAM_BYTES,
    WARP,
    Amounts,
    Argument,
    Benchmark,
    Buffer,
    Chip,
    Group,
    Pairs,
    even_elements,
    output,
    streamed_amounts,
)

KIB = 1 << 10
MOST_STRIDE_BYTES = 256 * KIB

THREADS = 512
UNROLL = 8
"""Loads of a thread under way at a time."""

_VECTOR = 16
"""Bytes that a thread moves at once where nothing else is said."""


def memory_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield the benchmarks of each level of memory [MIPP, Tables III and IV], and chases.

    A quarter of L2 is read where L2 is to answer, since both halves of an L2 may keep copies.
    """
    yield _dram(chip, _READ, "read", "LDG")
    yield _dram(chip, _WRITE, "write", "STG")
    yield _copy(chip, 16, "DRAM copy", "memory")
    yield _cached(chip, "L2 read", 1 << (chip.l2_bytes // 4).bit_length() - 1, ".cg", "l2_bytes")
    yield _cached(chip, "L1 read", 64 * KIB, ".ca", "l1_bytes")
    for name, size, each, apart in (
        ("shared read", 4, 1, True),
        ("shared read 16", 16, 4, True),
        ("shared broadcast", 4, 1, False),
    ):
        yield _shared_read(chip, name, size, each, apart=apart)
    yield _stores(chip, "shared write", "memory", 0)
    yield _constant(chip)
    held = min(chip.l2_bytes // 4, chip.sms * 2 * _CHASERS * 4)
    yield _chase(chip, "L2", "global.cg", held // (4 * _CHASERS) * _CHASERS)
    yield _chase(chip, "L1", "global.ca", _CHASERS)
    yield _chase(chip, "shared", "shared", 0)


def curve_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield what is measured over how threads reach memory; energies of points of curves.

    Reads of 4 bytes a thread of which 1 to 32 lie side by side [MIPP, Fig. 6]: groups of lanes read
    words side by side and are 128 bytes apart, so a warp touches 32 / side lines. Copies of one
    array into another, 1 to 16 bytes a thread [Fig. 7]. Stores with 0 to 31 bank conflicts [Figs.
    4, 5 and 8]. Reads of a byte a thread, neighbours 1 byte to 256 KiB apart: a sweep through the
    buffer is followed by another one sector further on, so that no sector is read again soon. Every
    pattern at block sizes of 32 to 1024 threads.
    """
    for side in (1, 2, 4, 8, 16, 32):
        yield _gathered(
            chip, f"coalesced {side}/32", "coalescing",
            f"(n / {side}) * {LINE_BYTES}ull % {STREAM_BYTES}ull + n % {side} * 4", 4,
            lines=WARP // side, sectors=WARP // side * -(-side * 4 // SECTOR_BYTES),
            span=LINE_BYTES / side, parameters=(("side", side), ("lines", WARP // side)),
        )  # fmt: skip
    for size in _COPIED:
        yield _copy(chip, size, f"copy by {size} bytes", "access size", window_s=CURVE_WINDOW_S)
    for n in range(WARP):
        yield _stores(chip, f"{n} conflicts", "bank conflicts", n, window_s=CURVE_WINDOW_S)
    for power in range(MOST_STRIDE_BYTES.bit_length()):
        stride = 1 << power
        again = f" + n * {stride}ull / {STREAM_BYTES}ull % {stride // 32}ull * {SECTOR_BYTES}"
        lines, sectors = (
            min(WARP, max(1, WARP * stride // size)) for size in (LINE_BYTES, SECTOR_BYTES)
        )
        yield _gathered(
            chip, f"stride {stride} B", "stride",
            f"n * {stride}ull % {STREAM_BYTES}ull{again if stride >= 64 else ''}", 1,
            lines=lines, sectors=sectors, span=min(stride, SECTOR_BYTES),
            parameters=(("stride_bytes", stride),),
        )  # fmt: skip
    for pattern in PATTERNS:
        for threads in range(WARP, MOST_THREADS + 1, WARP):
            yield _patterned(pattern, threads)


def _accesses(
    name: str,
    group: Group,
    text: str,
    values: Mapping[str, object],
    given: Buffer,
    *,
    blocks: int,
    threads: int = THREADS,
    turns: int,
    unroll: int = UNROLL,
    opcodes: Texts,
    bytes_: int,
    of_each: Amounts,
    out_bytes: int = 0,
    more: tuple[Argument, ...] = (),
    **point: Any,
) -> Benchmark:
    """Return a benchmark of accesses by warps.

    Args:
        name: of it.
        group: of it.
        text: template of its CUDA.
        values: what is filled in, besides ``turns``, ``unroll``, their product ``steps`` and
            ``fold`` (of ``v[k]`` into ``sum``).
        given: what is read.
        blocks: of a launch.
        threads: of a block.
        turns: of the loop, in one repeat.
        unroll: accesses of a turn by each opcode.
        opcodes: of the accesses, in machine code.
        bytes_: that a warp asks for in each.
        of_each: how much each has of features of the fit.
        out_bytes: size of what is written, by default a word a thread.
        more: arguments besides.
        point: other fields, of a point of a curve.
    """
    loops = float(turns * blocks * threads / WARP)
    accesses = loops * unroll * len(opcodes)
    filled = {"turns": turns, "unroll": unroll, "steps": turns * unroll, "fold": _FOLD, **values}
    return Benchmark(
        name=name,
        group=group,
        text=text % filled,
        blocks=blocks,
        threads=threads,
        arguments=(output(out_bytes or 4 * blocks * threads), given, *more, "repeat"),
        operations=accesses,
        useful_bytes=accesses * bytes_,
        loops=loops,
        amounts=tuple((feature, accesses * each) for feature, each in of_each.items()),
        expected=dict.fromkeys(opcodes, unroll),
        **point,
    )


def _kernel(parameters: str, body: str) -> str:
    return f"""
extern "C" __global__ void __launch_bounds__(1024)
timed({parameters}, int repeat)
{{
    const unsigned long long id = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long all = gridDim.x * (unsigned long long)blockDim.x;
{body}}}
"""


_FOLD = "sum.x ^= v[k].x; sum.y ^= v[k].y; sum.z ^= v[k].z; sum.w ^= v[k].w;"
_OUT = "    out[id] = sum.x ^ sum.y ^ sum.z ^ sum.w;\n"


def _streaming(parameters: str, begin: str, body: str, end: str) -> str:
    """Return the template of a kernel that goes through all memory, ``unroll`` elements a turn."""
    return _kernel(
        parameters,
        f"""
    const unsigned long long count = %(count)dull;
    {begin}
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn)
#pragma unroll 1
        for (unsigned long long at = id; at < count; at += %(unroll)d * all) {{
{body}
        }}
{end}
""",
    )


_READ = _streaming(
    "unsigned *out, const uint4 *in",
    "uint4 sum = {};",
    r"""
            uint4 v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k)
                asm volatile("ld.global.v4.u32 {%%0, %%1, %%2, %%3}, [%%4];"
                    : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                    : "l"(in + at + k * all));
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) { %(fold)s }
""",
    _OUT.rstrip(),
)
_WRITE = _streaming(
    "uint4 *out, const uint4 *in",
    "const uint4 salt = in[id]; unsigned seed = salt.w ^ (unsigned)id;",
    r"""
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) {
                seed = seed * 1664525u + 1013904223u;
                out[at + k * all] = make_uint4(seed, seed ^ salt.x, seed ^ salt.y, seed ^ salt.z);
            }
""",
    "",
)


def _dram(chip: Chip, text: str, way: str, opcode: str) -> Benchmark:
    """Return a benchmark that streams through memory, 16 bytes a thread."""
    beside = chip.sms * 2 * THREADS
    count = even_elements(STREAM_BYTES // _VECTOR, beside * UNROLL)
    streamed, of_threads = _VECTOR * count, _VECTOR * beside
    reads = way == "read"
    return _accesses(
        f"DRAM {way}", "memory", text, {"count": count},
        Buffer(size_bytes=streamed if reads else of_threads),
        blocks=chip.sms * 2, turns=count // beside // UNROLL, opcodes=(rf"{opcode}\.E\.128",),
        bytes_=WARP * _VECTOR, of_each=streamed_amounts(WARP * _VECTOR, dram=f"dram_{way}_bytes"),
        out_bytes=0 if reads else streamed,
    )  # fmt: skip


_COPIED = {
    1: ("uchar1", r"\.U8"),
    2: ("ushort1", r"\.U16"),
    4: ("uint1", ""),
    8: ("uint2", r"\.64"),
    16: ("uint4", r"\.128"),
}
"""Bytes of a copy: the type that has them, and how machine code says so."""

_COPY = _streaming(
    "%(type)s *__restrict__ out, const %(type)s *__restrict__ in",
    "int sum = {};",
    r"""
            %(type)s v[%(unroll)d];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) v[k] = in[at + k * all];
#pragma unroll
            for (int k = 0; k < %(unroll)d; ++k) out[at + k * all] = v[k];
""",
    "    (void)sum;",
)


def _copy(chip: Chip, size: int, name: str, group: Group, **point: Any) -> Benchmark:
    type_, suffix = _COPIED[size]
    beside = chip.sms * 2 * THREADS
    count = even_elements(STREAM_BYTES // (2 if size >= 4 else 8) // size, beside * UNROLL)
    one_way = WARP * size
    return _accesses(
        name, group, _COPY, {"count": count, "type": type_}, Buffer(size_bytes=size * count),
        blocks=chip.sms * 2, turns=count // beside // UNROLL,
        opcodes=(rf"LDG\.E{suffix}(\.CONSTANT)?", rf"STG\.E{suffix}"), bytes_=one_way,
        of_each={
            "l1_wavefronts": max(1, one_way // LINE_BYTES), "l1_bytes": one_way,
            "l2_bytes": one_way, "dram_read_bytes": one_way / 2, "dram_write_bytes": one_way / 2,
        },
        out_bytes=size * count, parameters=(("bytes", size),), **point,
    )  # fmt: skip


_CACHED = _kernel(
    "unsigned *out, const uint4 *in",
    r"""
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
"""
    + _OUT,
)


def _cached(chip: Chip, name: str, held_bytes: int, cache: str, level: str) -> Benchmark:
    """Return a benchmark that reads a buffer which a cache holds, 16 bytes a thread.

    Blocks begin at different places of the buffer, so that no two read the same lines together.
    """
    elements, moved = held_bytes // _VECTOR, WARP * _VECTOR
    offset = max(THREADS, elements // (chip.sms * 2) // THREADS * THREADS)
    return _accesses(
        name, "memory", _CACHED,
        {"mask": elements - 1, "offset": offset, "cache": cache, "step": THREADS},
        Buffer(size_bytes=held_bytes), blocks=chip.sms * 2, turns=64,
        opcodes=(r"LDG\.E\.128(\.STRONG\.(GPU|SM))?",), bytes_=moved,
        of_each={"l1_wavefronts": moved / LINE_BYTES, "l1_bytes": moved, level: moved},
    )  # fmt: skip


_SHARED_WORDS = 8192
_SHARED_READ = _kernel(
    "unsigned *out, const unsigned *in",
    r"""
    __shared__ __align__(16) unsigned held[8192];
    for (unsigned k = threadIdx.x; k < 8192; k += blockDim.x) held[k] = in[k];
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
""",
)


def _shared_read(chip: Chip, name: str, size: int, each: int, *, apart: bool) -> Benchmark:
    """Return a benchmark of loads of ``each`` words from shared memory, without conflicts.

    ``apart``: each lane its own element; else all lanes of a warp the same.
    """
    vector, unroll, opcode = {
        1: ("u32 %0", 32, r"LDS"),
        4: ("v4.u32 {%0, %1, %2, %3}", 8, r"LDS\.128"),
    }[each]
    bytes_ = size * WARP if apart else size
    return _accesses(
        name, "memory", _SHARED_READ,
        {
            "start": f"threadIdx.x {'%' if apart else '/'} 32 * {size}u",
            "load": f'"ld.shared.{vector}, [%{each}];"',
            "outputs": ", ".join(f'"=r"(v[{n}])' for n in range(each)),
            "step": bytes_ if apart else LINE_BYTES,
            "each": each,
        },
        Buffer(size_bytes=4 * _SHARED_WORDS), blocks=chip.sms * 2, turns=128, unroll=unroll,
        opcodes=(opcode,), bytes_=bytes_,
        of_each={"shared_wavefronts": each if apart else 1, "shared_bytes": bytes_},
    )  # fmt: skip


_SHARED_STORE = _kernel(
    "unsigned *out, const unsigned *in, int conflicts_given",
    r"""
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
""",
)


def _stores(chip: Chip, name: str, group: Group, conflicts: int, **point: Any) -> Benchmark:
    """Return a benchmark of stores to shared memory, ``conflicts`` + 1 rows to a bank."""
    return _accesses(
        name, group, _SHARED_STORE, {}, Buffer(size_bytes=4 * _SHARED_WORDS),
        blocks=chip.sms * 2, turns=64, unroll=32, opcodes=(r"STS",), bytes_=LINE_BYTES,
        of_each={"shared_wavefronts": conflicts + 1, "shared_bytes": LINE_BYTES},
        more=(conflicts,), parameters=(("conflicts", conflicts),), **point,
    )  # fmt: skip


_CONSTANT = "\n__constant__ unsigned table[4096] = {%(values)s};\n" + _kernel(
    "unsigned *out, const unsigned *in",
    r"""
    unsigned at = in[threadIdx.x / 32] & 1023u, sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < repeat * %(turns)d; ++turn) {
#pragma unroll
        for (int k = 0; k < %(unroll)d; ++k) sum ^= table[at + k];
        at = (at + 1u) & 1023u;
    }
    out[id] = sum;
""",
)


def _constant(chip: Chip) -> Benchmark:
    """Return a benchmark of constant memory: one address a warp, as hardware wants it."""
    unroll, value, values = 64, 12345, []
    for _ in range(1024 + unroll):
        value = (value * 1664525 + 1013904223) % 2**32
        values.append(f"{value}u")
    return _accesses(
        "constant read", "memory", _CONSTANT, {"values": ",".join(values)},
        Buffer(size_bytes=4 * 64), blocks=chip.sms * 2, turns=64, unroll=unroll,
        opcodes=(r"LDC",), bytes_=4, of_each={},
    )  # fmt: skip


_GATHER = _kernel(
    "unsigned *out, const unsigned char *in",
    r"""
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
""",
)
_GATHER_TURNS = 4


def _gathered(
    chip: Chip,
    name: str,
    group: Group,
    place: str,
    size: int,
    *,
    lines: int,
    sectors: int,
    span: float,
    parameters: Pairs,
) -> Benchmark:
    """Return a benchmark of loads from ``place``, of which each takes ``span`` bytes of the buffer.

    A launch goes through the buffer once: blocks drift apart, and in a second round one would find
    in L2 what another has just read.
    """
    type_, suffix = ("unsigned char", r"\.U8") if size == 1 else ("unsigned", "")
    blocks, moved = chip.sms * 4, sectors * SECTOR_BYTES
    return _accesses(
        name, group, _GATHER, {"type": type_, "place": place},
        Buffer(size_bytes=STREAM_BYTES + MOST_STRIDE_BYTES), blocks=blocks, turns=_GATHER_TURNS,
        opcodes=(rf"LDG\.E{suffix}(\.CONSTANT)?",), bytes_=WARP * size,
        of_each={"l1_wavefronts": lines, "l2_bytes": moved, "dram_read_bytes": moved},
        window_s=CURVE_WINDOW_S, parameters=parameters,
        repeats=max(1, round(STREAM_BYTES / (_GATHER_TURNS * UNROLL * blocks * THREADS * span))),
    )  # fmt: skip


_CHASERS = 1024
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
        for (int n = 0; n < %(unroll)d; ++n)
            asm volatile("ld.%(space)s.u32 %%0, [%%1];" : "=r"(k) : "%(letter)s"(%(place)s));
    }
    out[id] = k;
}
"""
_HELD = r"""__shared__ unsigned held[1024];
    held[threadIdx.x] = (threadIdx.x & ~31u) | ((threadIdx.x + 5u) & 31u);
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(held);"""


def _chase(chip: Chip, level: str, space: str, words: int) -> Benchmark:
    """Return a chase by all threads through so many words, or through shared memory.

    Each thread follows words of one line, so a warp reads one line of 128 bytes at a time. Where L2
    is to answer, every thread has a word of its own; where L1 is, blocks share 4 KiB.
    """
    kind, opcode, shared, start, letter, place = (
        ("l1", r"LDG\.E(\.STRONG\.(GPU|SM))?", "", f"id % {words}u", "l", "in + k")
        if words
        else ("shared", r"LDS", _HELD, "threadIdx.x", "r", "base + 4u * k")
    )
    below = {"l2_bytes": LINE_BYTES} if level == "L2" else {}
    return _accesses(
        f"{level} chase", "chase", _CHASE,
        {"shared": shared, "start": start, "space": space, "letter": letter, "place": place},
        Buffer(size_bytes=4 * max(words, WARP), fill="ring"), blocks=chip.sms * 2,
        threads=_CHASERS, turns=1, unroll=64, opcodes=(opcode,), bytes_=LINE_BYTES,
        of_each={f"{kind}_wavefronts": 1, f"{kind}_bytes": LINE_BYTES} | below,
    )  # fmt: skip


MOST_THREADS = 1024
ITEMS = 1 << 20
"""Work items of a launch, as in the paper."""

_PIECE, _PIECE_UNROLL = 64, 16
"""Words of 4 bytes that a thread accesses in a turn, and those under way at a time."""

_ROUNDS = 4
"""Turns until a thread comes back to a word: a launch covers 1 GiB."""

_PLACES = {
    "sequential global": "((turn % 4) * 64ull + step + k) * all + id",
    "strided global": "((turn % 4) * all + id) * 64ull + step + k",
    "shared": "start + ((step + k) % 4u) * 4u * blockDim.x",
}
_LOAD_SHARED = (
    'asm volatile("ld.volatile.shared.u32 %%0, [%%1];" : "=r"(v[k]) : "r"(%s) : "memory");'
)
_STORE_SHARED = (
    'asm volatile("st.volatile.shared.u32 [%%0], %%1;" :: "r"(%s), "r"(seed ^ v[k]) : "memory");'
)
_ACCESSES = {
    ("global", "read"): ("v[k] = in[%s];", r"LDG\.E(\.CONSTANT)?"),
    ("global", "write"): ("out[%s] = seed = seed * 1664525u + 1013904223u;", r"STG\.E"),
    ("shared", "read"): (_LOAD_SHARED, r"LDS"),
    ("shared", "write"): (_STORE_SHARED, r"STS"),
}

PATTERNS = tuple(f"{place} {verb}" for place in _PLACES for verb in ("read", "write"))
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
        for (unsigned step = 0; step < %(steps)du; step += %(unroll)d) {
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


def _patterned(pattern: str, threads: int) -> Benchmark:
    *_, memory, verb = pattern.split()
    place = pattern.removesuffix(f" {verb}")
    access, opcode = _ACCESSES[memory, verb]
    words = ITEMS + MOST_THREADS  # the last block may stand out, in each size by another number
    whole, small = 4 * words * _PIECE * _ROUNDS, 4 * (words + 4)
    streams, reads = memory == "global", verb == "read"
    of_each: dict[str, Amounts] = {  # what L1 answers of strided accesses is not known beforehand
        "shared": {"shared_wavefronts": 1, "shared_bytes": LINE_BYTES},
        "strided global": {"l1_wavefronts": WARP, "sectors": LINE_BYTES / SECTOR_BYTES},
        "sequential global": streamed_amounts(LINE_BYTES, dram=f"dram_{verb}_bytes"),
    }
    return _accesses(
        f"{pattern}, {threads} threads", "block size", _TEXT,
        {
            "on_chip": not streams,
            "access": access % _PLACES[place],
            "fold": "sum ^= v[k];" if reads else "",
        },
        Buffer(size_bytes=whole if streams and reads else small), blocks=-(-ITEMS // threads),
        threads=threads, turns=_PIECE // _PIECE_UNROLL, unroll=_PIECE_UNROLL, opcodes=(opcode,),
        bytes_=LINE_BYTES,
        of_each=of_each[place],
        out_bytes=small if not streams or reads else whole, more=("activity", "recording"),
        window_s=CURVE_WINDOW_S, shared_bytes=16 * threads, parameters=(("threads", threads),),
    )  # fmt: skip
