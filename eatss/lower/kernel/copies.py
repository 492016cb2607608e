"""The ways a thread can copy, what generated code calls them, and what that means to CUDA.

    eatss_copy_wide_ahead(&sh.A[i][k], &A[i][k]);

copies a vector to shared memory by ``cp.async``. What names mean to a CPU is in ``eatss_cpu.hpp``.
"""

from __future__ import annotations

from eatss.base.frozen import frozen
from eatss.plan.stage import Stage, is_asynchronous


@frozen
class CopyKind:
    """A way to copy from global to shared memory while a thread goes on, if it is ``asynchronous``.

    Functions that do so are called by its ``name``.
    """

    name: str
    asynchronous: bool


BY_THREADS = CopyKind(name="", asynchronous=False)
"""Loads and stores."""

BY_CP_ASYNC = CopyKind(name="_ahead", asynchronous=True)
"""``cp.async``, of 4, 8 or 16 bytes."""


def planned_kind(stage: Stage, width: int) -> CopyKind:
    """Return how a tile is copied, so many elements at a time."""
    return BY_CP_ASYNC if is_asynchronous(stage.element_bytes * width) else BY_THREADS


def function(kind: CopyKind, space: str, *, wide: bool, clears: bool) -> str:
    """Return what copies to a memory, or vectors.

    Args:
        kind: how.
        space: the memory.
        wide: several elements at a time.
        clears: the target becomes zero where nothing is copied; there is a condition.
    """
    way = {"global": "store", "register": "load"}.get(space, "copy")
    return f"eatss_{way}{'_wide' * wide}{kind.name}{'_or_clear' * (wide and clears)}"


_ALIGNED = """\

// Whether 16 bytes can be read at a time from where an array begins.
__device__ __forceinline__ bool eatss_is_aligned(const void *array)
{
    return (reinterpret_cast<unsigned long long>(array) & 15) == 0;
}
"""

_AHEAD = """\

// An element of shared memory gets that of global memory, or zero, while the thread goes on.
template <typename Value>
__device__ __forceinline__ void eatss_copy_ahead(Value *to, const Value *from, bool reads)
{
    const unsigned int target = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(target), "l"(from), "n"((int)sizeof(Value)),
                   "r"(reads ? (int)sizeof(Value) : 0)
                 : "memory");
}
// What was copied since the last one is a group.
__device__ __forceinline__ void eatss_commit_copies()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}
// All groups but the last few are there.
template <int pending>
__device__ __forceinline__ void eatss_wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}
"""

_WIDE = """\
// Elements of 16 bytes of shared memory get those of global memory.
template <typename Value>
__device__ __forceinline__ void eatss_copy_wide(Value *to, const Value *from)
{
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
}
"""

_STORES = """\
// 16 bytes of global memory get elements of registers.
__device__ __forceinline__ void eatss_store_wide(double *to, const double *from)
{
    *reinterpret_cast<double2 *>(to) = make_double2(from[0], from[1]);
}
__device__ __forceinline__ void eatss_store_wide(float *to, const float *from)
{
    *reinterpret_cast<float4 *>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
"""

_STORES_OF_HALVES = """\
__device__ __forceinline__ void eatss_store_wide(eatss_half *to, const eatss_half *from)
{
    unsigned int words[4];
    for (int at = 0; at < 4; at++)
        words[at] = from[2 * at].bits | (unsigned int)from[2 * at + 1].bits << 16;
    *reinterpret_cast<uint4 *>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}
"""

_LOADS = """\
// Registers get 16 bytes of global memory.
__device__ __forceinline__ void eatss_load_wide(double *to, const double *from)
{
    const double2 all = *reinterpret_cast<const double2 *>(from);
    to[0] = all.x, to[1] = all.y;
}
__device__ __forceinline__ void eatss_load_wide(float *to, const float *from)
{
    const float4 all = *reinterpret_cast<const float4 *>(from);
    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
}
"""

_LOADS_OF_HALVES = """\
__device__ __forceinline__ void eatss_load_wide(eatss_half *to, const eatss_half *from)
{
    const uint4 all = *reinterpret_cast<const uint4 *>(from);
    const unsigned int words[4] = {all.x, all.y, all.z, all.w};
    for (int at = 0; at < 8; at++)
        to[at].bits = (unsigned short)(words[at / 2] >> (at % 2 * 16));
}
"""

_WIDE_AHEAD = """\
// The same while the thread goes on.
template <typename Value>
__device__ __forceinline__ void eatss_copy_wide_ahead(Value *to, const Value *from)
{
    const unsigned int target = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(target), "l"(from) : "memory");
}
"""

_CLEARING_LOADS = """\
// The same, or zero.
template <typename Value>
__device__ __forceinline__ void eatss_load_wide_or_clear(Value *to, const Value *from, bool reads)
{
    if (reads)
        eatss_load_wide(to, from);
    else
        for (int at = 0; at < (int)(16 / sizeof(Value)); at++)
            to[at] = Value(0);
}
"""

_CLEARING_AHEAD = """\
// The same, or zero.
template <typename Value>
__device__ __forceinline__ void eatss_copy_wide_ahead_or_clear(
    Value *to, const Value *from, bool reads)
{
    const unsigned int target = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(target), "l"(from), "r"(reads ? 16 : 0)
                 : "memory");
}
"""

_HALVES = r"\beatss_half\b"

COPIES = (
    (_AHEAD, (r"\beatss_copy_(wide_)?ahead",)),
    (_ALIGNED, (r"\beatss_(copy|store|load)_wide",)),
    (_WIDE, (r"\beatss_copy_wide",)),
    (_STORES, (r"\beatss_store_wide",)),
    (_STORES_OF_HALVES, (r"\beatss_store_wide", _HALVES)),
    (_LOADS, (r"\beatss_load_wide",)),
    (_LOADS_OF_HALVES, (r"\beatss_load_wide", _HALVES)),
    (_WIDE_AHEAD, (r"\beatss_copy_wide_ahead",)),
    (_CLEARING_LOADS, (r"\beatss_load_wide_or_clear",)),
    (_CLEARING_AHEAD, (r"\beatss_copy_wide_ahead_or_clear",)),
)
"""Definitions in their order, and what code has in it, all of it, that needs them."""
