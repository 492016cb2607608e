"""Access patterns over sizes of blocks [Allen and Ge, Figs. 4 to 9], with occupancy.

A **sequential** access is one of neighbouring threads to neighbouring words. In a **strided** one
each thread walks through a piece of its own; pieces lie side by side, so neighbouring threads are a
piece apart [Fig. 2]. Every thread does the same number of accesses, whatever the size of a block.
"""

from __future__ import annotations

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import (
    CURVE_WINDOW_S,
    LINE_BYTES,
    WARP,
    Benchmark,
    Buffer,
    streamed_amounts,
)
from eatss.measurement.characterize.memory import SECTOR_BYTES

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
