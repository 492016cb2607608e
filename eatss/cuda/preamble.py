"""The top of every generated file: names that mean one thing to CUDA and one to a CPU.

No name in it is one that a size macro of the user is likely to have (``N``, ``T``, ``B``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from string import Template

from eatss.base.quotients import FORMATS
from eatss.lower.instructions import INSTRUCTIONS
from eatss.lower.kernel.copies import COPIES
from eatss.lower.kernel.instruction import Instruction
from eatss.program.plan import GRAPH_FROM, MOST_GRAPHS, MOST_LAUNCHES

_LAUNCH = """\
#ifndef __CUDACC_RTC__ // NVRTC compiles the kernels only and has no headers
#include <cuda_runtime.h>
#define EATSS_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \\
    kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#endif
"""

_CALLS = Template("""\
#ifndef __CUDACC_RTC__
#include <initializer_list>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace { // files of other versions may be linked with this one

// A stream that counts what is launched on it.
struct eatss_stream {
    cudaStream_t stream;
    long launches;

    operator cudaStream_t()
    {
        launches++;
        return stream;
    }
};

// Memory that a call works in.
struct eatss_temporary {
    size_t element_bytes, elements;
    bool zeroed;

    size_t bytes() const { return element_bytes * elements; }
    size_t aligned_bytes() const { return (bytes() / 256 + 1) * 256; }
};

// Other threads may capture graphs of theirs while calls make graphs and allocate.
struct eatss_relaxed_capture {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    eatss_relaxed_capture() { cudaThreadExchangeStreamCaptureMode(&mode); }
    ~eatss_relaxed_capture() { cudaThreadExchangeStreamCaptureMode(&mode); }
};

// The calls of a launcher, from any threads. One of $least to $most launches is captured the
// second time that it comes with the same arguments on a card, and replayed as a graph from then
// on; the last $graphs are remembered. What the caller captures is launched as it is, and its graph
// owns the memory. Memory of other calls stays in a pool. All is kept until free(), or the end.
class eatss_calls {
    struct Call {
        std::string key;
        long launches = 0;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t replay = nullptr;
        cudaEvent_t replayed = nullptr;
    };

    std::mutex mutex;
    std::list<Call> calls; // the last one first
    std::map<int, cudaMemPool_t> pools;

  public:
    template <typename Work, typename... Values>
    int run(cudaStream_t stream, std::initializer_list<eatss_temporary> arrays, Work work,
            const Values &...values)
    {
        const eatss_relaxed_capture relaxed;
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        cudaError_t error = cudaStreamIsCapturing(stream, &status);
        const bool capturing = status != cudaStreamCaptureStatusNone;
        int device = 0;
        cudaMemPool_t pool = nullptr;
        if (error == cudaSuccess)
            error = cudaGetDevice(&device);
        if (error == cudaSuccess && arrays.size() > 0)
            error = pool_of(device, &pool);
        if (error != cudaSuccess)
            return (int)error;
        std::string key((const char *)&device, sizeof device);
        for (const std::string &value : {std::string((const char *)&values, sizeof values)...})
            key += value;
        if (!capturing) {
            const std::lock_guard<std::mutex> lock(mutex);
            Call &call = found(key);
            if (call.launches >= $least && call.launches <= $most) {
                if (call.replay == nullptr)
                    capture(call, pool, arrays, work);
                if (call.replay != nullptr) {
                    error = cudaGraphLaunch(call.replay, stream);
                    if (error == cudaSuccess)
                        error = cudaEventRecord(call.replayed, stream);
                    return (int)(error == cudaSuccess ? cudaGetLastError() : error);
                }
            }
        }
        eatss_stream counted = {stream, 0};
        error = enqueued(counted, capturing, pool, arrays, work);
        if (!capturing && error == cudaSuccess) {
            const std::lock_guard<std::mutex> lock(mutex);
            Call &call = found(key);
            if (call.launches == 0) // not one whose graph could not be made
                call.launches = counted.launches;
        }
        return (int)error;
    }

    // Gives back all that is kept. No call may run meanwhile.
    int free()
    {
        const std::lock_guard<std::mutex> lock(mutex);
        cudaError_t error = cudaSuccess;
        for (; !calls.empty(); calls.pop_back())
            forget(calls.back());
        for (const auto &one : pools)
            if (one.second != nullptr && error == cudaSuccess)
                error = cudaMemPoolDestroy(one.second);
        pools.clear();
        return (int)error;
    }

  private:
    // The call of some arguments, the last one from now on.
    Call &found(const std::string &key)
    {
        auto at = calls.begin();
        while (at != calls.end() && at->key != key)
            ++at;
        if (at == calls.end()) {
            calls.emplace_front();
            calls.front().key = key;
        } else {
            calls.splice(calls.begin(), calls, at);
        }
        if (calls.size() > $graphs) {
            forget(calls.back());
            calls.pop_back();
        }
        return calls.front();
    }

    // Waits until the last replay is over.
    static void forget(Call &call)
    {
        if (call.replay != nullptr) {
            cudaEventSynchronize(call.replayed);
            cudaGraphExecDestroy(call.replay);
        }
        if (call.replayed != nullptr)
            cudaEventDestroy(call.replayed);
        if (call.graph != nullptr)
            cudaGraphDestroy(call.graph);
        call.replay = nullptr;
        call.replayed = nullptr;
        call.graph = nullptr;
    }

    // The memory of this launcher on a card; none where the driver has no pools.
    cudaError_t pool_of(int device, cudaMemPool_t *pool)
    {
        const std::lock_guard<std::mutex> lock(mutex);
        if (pools.count(device) == 0) {
            int supported = 0;
            cudaMemPool_t made = nullptr;
            cudaError_t error =
                cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device);
            if (error == cudaSuccess && supported) {
                cudaMemPoolProps properties = {};
                properties.allocType = cudaMemAllocationTypePinned;
                properties.location.type = cudaMemLocationTypeDevice;
                properties.location.id = device;
                error = cudaMemPoolCreate(&made, &properties);
            }
            if (error != cudaSuccess)
                return error;
            unsigned long long kept_bytes = ~0ULL;
            if (made != nullptr) // else memory goes back to the system when a stream is waited for
                cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &kept_bytes);
            pools[device] = made;
        }
        *pool = pools[device];
        return cudaSuccess;
    }

    // Makes the graph of a call; where that fails the call is not replayed.
    template <typename Work>
    void capture(Call &call, cudaMemPool_t pool, std::initializer_list<eatss_temporary> arrays,
                 Work &work)
    {
        cudaStream_t stream = nullptr;
        cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        if (error == cudaSuccess) {
            error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
            if (error == cudaSuccess) {
                eatss_stream counted = {stream, 0};
                error = enqueued(counted, true, pool, arrays, work);
                const cudaError_t ended = cudaStreamEndCapture(stream, &call.graph);
                error = error == cudaSuccess ? ended : error;
            }
            cudaStreamDestroy(stream);
        }
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&call.replayed, cudaEventDisableTiming);
        if (error == cudaSuccess)
            error = cudaGraphInstantiateWithFlags(&call.replay, call.graph, 0);
        if (error != cudaSuccess) {
            call.replay = nullptr;
            forget(call);
            call.launches = -1;
            cudaGetLastError();
        }
    }

    // Enqueues work with memory; a graph that is captured owns it.
    template <typename Work>
    static cudaError_t enqueued(eatss_stream &stream, bool capturing, cudaMemPool_t pool,
                                std::initializer_list<eatss_temporary> arrays, Work &work)
    {
        size_t bytes = 0;
        for (const eatss_temporary &one : arrays)
            bytes += one.aligned_bytes();
        char *memory = nullptr;
        cudaError_t error = cudaSuccess;
        if (pool != nullptr)
            error = cudaMallocFromPoolAsync((void **)&memory, bytes, pool, stream.stream);
        else if (bytes > 0)
            error = capturing ? cudaErrorNotSupported : cudaMalloc((void **)&memory, bytes);
        if (error != cudaSuccess)
            return error;
        std::vector<void *> places;
        char *place = memory;
        for (const eatss_temporary &one : arrays) {
            if (one.zeroed && error == cudaSuccess)
                error = cudaMemsetAsync(place, 0, one.bytes(), stream.stream);
            places.push_back(place);
            place += one.aligned_bytes();
        }
        if (error == cudaSuccess) {
            work(stream, places.data());
            error = cudaGetLastError();
        }
        cudaError_t freed = cudaSuccess;
        if (memory != nullptr)
            freed = pool != nullptr ? cudaFreeAsync(memory, stream.stream) : cudaFree(memory);
        return error == cudaSuccess ? freed : error;
    }
};

} // namespace
#endif
""").substitute(least=GRAPH_FROM, most=MOST_LAUNCHES, graphs=MOST_GRAPHS)

HALVES = """\

// A number with 11 significant bits. Each sum, difference and product is rounded.
struct eatss_half {
    unsigned short bits;

    eatss_half() = default;
    __host__ __device__ __forceinline__ explicit eatss_half(float value)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        bits = on_host(value);
#endif
    }
    __host__ __device__ __forceinline__ explicit eatss_half(double value)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
#else
        bits = on_host(value);
#endif
    }
    template <typename Number>
    __host__ __device__ __forceinline__ explicit eatss_half(Number value)
        : eatss_half((float)value)
    {
    }
    template <typename Number>
    __host__ __device__ __forceinline__ explicit operator Number() const
    {
        float value;
#ifdef __CUDA_ARCH__
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
        value = on_host(bits);
#endif
        return (Number)value;
    }
    __host__ __device__ __forceinline__ bool operator==(eatss_half other) const
    {
        return (float)*this == (float)other;
    }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 530
#define EATSS_HALF_OPERATOR(sign, instruction) \\
    __device__ __forceinline__ friend eatss_half operator sign(eatss_half a, eatss_half b) \\
    { \\
        asm(instruction ".rn.f16 %0, %0, %1;" : "+h"(a.bits) : "h"(b.bits)); \\
        return a; \\
    }
#else
#define EATSS_HALF_OPERATOR(sign, instruction) \\
    __host__ __device__ friend eatss_half operator sign(eatss_half a, eatss_half b) \\
    { \\
        return eatss_half((float)a sign (float)b); \\
    }
#endif
    EATSS_HALF_OPERATOR(+, "add")
    EATSS_HALF_OPERATOR(-, "sub")
    EATSS_HALF_OPERATOR(*, "mul")
#ifndef __CUDA_ARCH__
    static inline unsigned short on_host(double value)
    {
        const unsigned short sign = signbit(value) ? 0x8000 : 0;
        const double size = fabs(value);
        if (size != size)
            return sign | 0x7e00;
        if (size >= 65520)
            return sign | 0x7c00;
        const int power = size < 0x1p-14 ? -14 : ilogb(size);
        return sign | (unsigned short)((power + 14) * 1024 + (int)rint(ldexp(size, 10 - power)));
    }
    static inline float on_host(unsigned short bits)
    {
        const int power = bits >> 10 & 31, rest = bits & 1023;
        const float size = power == 31  ? (rest ? NAN : INFINITY)
                           : power == 0 ? ldexpf((float)rest, -24)
                                        : ldexpf((float)(1024 + rest), power - 25);
        return bits & 0x8000 ? -size : size;
    }
#endif
};
"""

CPU_HALVES = """\

// A number with 11 significant bits. Each sum, difference and product is rounded.
struct eatss_half {
    unsigned short bits;

    eatss_half() = default;
    template <typename Number>
    explicit eatss_half(Number value)
    {
        const _Float16 half = (_Float16)value;
        memcpy(&bits, &half, sizeof bits);
    }
    template <typename Number, int16_t group>
    explicit eatss_half(const eatss::Tracked<Number, group> &value) : eatss_half(value.read())
    {
    }
    template <typename Number>
    explicit operator Number() const
    {
        _Float16 half;
        memcpy(&half, &bits, sizeof bits);
        return (Number)half;
    }
    bool operator==(eatss_half other) const { return (float)*this == (float)other; }
    friend eatss_half operator+(eatss_half a, eatss_half b)
    {
        return eatss_half((float)a + (float)b);
    }
    friend eatss_half operator-(eatss_half a, eatss_half b)
    {
        return eatss_half((float)a - (float)b);
    }
    friend eatss_half operator*(eatss_half a, eatss_half b)
    {
        return eatss_half((float)a * (float)b);
    }
};
"""

_FINITE_HALVES = """\
__host__ __device__ __forceinline__ bool eatss_is_finite(eatss_half value)
{
    return (value.bits & 0x7c00) != 0x7c00;
}
"""

_TRACKED = """\

// An element of shared memory; on a CPU it remembers who wrote it.
#define EATSS_TRACKED(type) type
"""

_OVERLAID = """\
// The same, where boxes of others lie, too; on a CPU it remembers whose it is.
#define EATSS_OVERLAID(type, number) type
"""

_SHARED = """\
#define EATSS_SHARED(type, name) __shared__ __align__(16) type name
"""

_DYNAMIC_SHARED = """\
#define EATSS_DYNAMIC_SHARED(type, name) \\
    extern __shared__ __align__(16) unsigned char eatss_shared_bytes[]; \\
    type &name = *reinterpret_cast<type *>(eatss_shared_bytes)
"""

_FINITE = """\

// Neither infinite nor NaN.
__host__ __device__ __forceinline__ bool eatss_is_finite(double value)
{
    return value - value == 0;
}
__host__ __device__ __forceinline__ bool eatss_is_finite(float value)
{
    return value - value == 0;
}
"""

_TOGETHER = """\

// Blocks put parts of a sum together. Each takes a ticket; all but the last leave their parts.
__device__ __forceinline__ bool eatss_comes_last(int *arrived, int number)
{
    return atomicAdd(arrived, 1) == number - 1;
}
// A part goes to where other blocks find it.
template <typename Value>
__device__ __forceinline__ void eatss_leave_part(Value *to, Value value)
{
    __stcg(to, value);
}
// All threads of this block have left their parts, and met.
__device__ __forceinline__ void eatss_parts_are_there(int *arrived)
{
    __threadfence();
    atomicAdd(arrived + 1, 1);
}
// The others of all blocks have, which have come before this one. The counters are zero again.
__device__ __forceinline__ void eatss_wait_for_parts(int *arrived, int number)
{
    while (*const_cast<volatile int *>(arrived + 1) != number - 1) {
    }
    __threadfence();
    arrived[0] = arrived[1] = 0;
}
// A part that another block has left; the cache of this SM may have an older value.
template <typename Value>
__device__ __forceinline__ Value eatss_part(const Value *from)
{
    return __ldcg(from);
}
"""

_LOOK_BACK = """\

// Tiles of rows, each a warp's, in the order in which warps come, run after run.
__device__ __forceinline__ int eatss_next_tile(unsigned long *taken, int tiles, unsigned int &run)
{
    unsigned long long tile = 0;
    if (threadIdx.x == 0) tile = atomicAdd(reinterpret_cast<unsigned long long *>(taken), 1ull);
    tile = __shfl_sync(0xffffffffu, tile, 0);
    run = (unsigned int)(tile / tiles);
    return (int)(tile % tiles);
}
// What all tiles of a row before come to; all of the warp call it with what its own does. A word
// has 32 bits of a value behind a state that no other run has: 4 * run + 1 where it is of a tile,
// 4 * run + 2 where it is of all up to it. A warp looks back at 32 tiles at a time.
template <typename Value, typename Combine>
__device__ Value eatss_before_tile(
    unsigned long *places, unsigned int run, int tile, int first, Value own, Value neutral,
    Combine combine)
{
    union Words {
        Value value;
        unsigned int word[sizeof(Value) / 4];
    };
    constexpr int count = sizeof(Value) / 4;
    volatile unsigned long *const found = places;
    const unsigned int part = 4 * run + 1, whole = 4 * run + 2;
    const int lane = threadIdx.x;
    const auto leave = [=](Value value, unsigned int state) {
        Words words;
        words.value = value;
        for (int k = 0; k < count; ++k)
            found[(long)count * tile + k] = (unsigned long)state << 32 | words.word[k];
    };
    if (lane == 0 && tile > first) leave(own, part);
    Value before = neutral;
    unsigned int ends = tile == first;
    for (int at = tile - 1 - lane; ends == 0; at -= 32) {
        Words words;
        unsigned int state;
        do {
            state = whole;
            words.value = neutral;
            for (int k = 0; k < count && at >= first; ++k) {
                const unsigned long word = found[(long)count * at + k];
                state = k == 0 || state == (unsigned int)(word >> 32) ? word >> 32 : 0;
                words.word[k] = (unsigned int)word;
            }
        } while (!__all_sync(0xffffffffu, state == part || state == whole));
        ends = __ballot_sync(0xffffffffu, state == whole);
        Value value = ends == 0 || lane < __ffs(ends) ? words.value : neutral;
        #pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
            const Value further = __shfl_down_sync(0xffffffffu, value, apart);
            if (lane + apart < 32) value = combine(further, value);
        }
        before = combine(value, before);
    }
    before = __shfl_sync(0xffffffffu, before, 0);
    if (lane == 0) leave(combine(before, own), whole);
    return before;
}
"""

_FLOORDIV = """\

// a / b rounded towards minus infinity, for b > 0.
template <typename Left, typename Right>
__host__ __device__ __forceinline__ constexpr auto eatss_floordiv(Left a, Right b)
    -> decltype(a + b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}
"""

_MOD = """\

// The remainder of that division: 0 <= eatss_mod(a, b) < b.
template <typename Left, typename Right>
__host__ __device__ __forceinline__ constexpr auto eatss_mod(Left a, Right b) -> decltype(a + b)
{
    return a % b + (a % b < 0 ? b : 0);
}
"""

_MIN_MAX = """\

template <typename Left, typename Right>
__host__ __device__ __forceinline__ constexpr auto eatss_min(Left a, Right b) -> decltype(a + b)
{
    return a < b ? a : b;
}
template <typename Left, typename Right>
__host__ __device__ __forceinline__ constexpr auto eatss_max(Left a, Right b) -> decltype(a + b)
{
    return a > b ? a : b;
}
"""


def _with_limits(text: str) -> str:
    """Return the text of quotients with the numbers of each type that are taken."""
    for name, known in FORMATS.items():
        text = text.replace(f"{{{name}}}", f"{known.least!r}")
        text = text.replace(f"{{{name} divisor}}", f"{known.least_divisor!r}")
        text = text.replace(f"{{{name} quotient}}", f"{known.least_quotient!r}")
        text = text.replace(f"{{{name} apart}}", known.most_apart.hex())
    return text


_QUOTIENT = _with_limits("""\

// x / c for a constant c, if the flag stays; it is cleared where x or the quotient is very small
// but not zero, infinite or no number. A product with 1 / c, less what is too much times 1 / c.
template <typename Number>
__device__ __forceinline__ Number eatss_quotient(Number x, Number c, bool &exact)
{
    const Number least = (Number)(sizeof(Number) == sizeof(float) ? {float} : {double});
    const Number reciprocal = 1 / c, q = x * reciprocal;
    const Number quotient = fma(fma(q, c, -x), -reciprocal, q);
    exact &= fabs(quotient) >= least || x == 0;
    return quotient;
}
template <typename Number>
__device__ __forceinline__ Number eatss_quotient(Number x, Number c)
{
    bool exact = true;
    const Number quotient = eatss_quotient<Number>(x, c, exact);
    return exact ? quotient : x / c;
}
""")


_INVERSE = """\

// 1 / c rounded, where both are normal, but for some whose bits are nearly all ones; no branch.
__device__ __forceinline__ double eatss_inverse(double c)
{
    double inverse;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(c));
    const double apart = fma(-c, inverse, 1.0);
    inverse = fma(inverse, fma(apart, apart, apart), inverse);
    return fma(inverse, fma(-c, inverse, 1.0), inverse);
}
__device__ __forceinline__ float eatss_inverse(float c)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(c));
    return fma(inverse, fma(-c, inverse, 1.0f), inverse);
}
"""

_CPU_INVERSE = """\
template <typename Number>
inline Number eatss_inverse(Number c)
{
    return 1 / c;
}
"""

_RECIPROCAL = _with_limits("""\

// 1 / c, if the flag stays; it is cleared where c is very small or large, or products with this are
// no quotients. A flag tells of each x / c that is a product with it, less what is too much.
template <typename Number>
__device__ __forceinline__ Number eatss_reciprocal(Number c, bool &exact)
{
    const bool single = sizeof(Number) == sizeof(float);
    const Number least = (Number)(single ? {float divisor} : {double divisor});
    const Number apart = (Number)(single ? {float apart} : {double apart});
    const Number inverse = eatss_inverse(c);
    exact &= fabs(fma(-c, inverse, (Number)1)) <= apart;
    exact &= fabs(c) >= least;
    exact &= fabs(c) <= 1 / least;
    return inverse;
}
template <typename Number>
__device__ __forceinline__ Number eatss_quotient(Number x, Number c, Number reciprocal, bool &exact)
{
    const bool single = sizeof(Number) == sizeof(float);
    const Number least = (Number)(single ? {float quotient} : {double quotient});
    const Number q = x * reciprocal, quotient = fma(fma(q, c, -x), -reciprocal, q);
    exact &= fabs(quotient) >= least || (x == 0 && reciprocal > 0);
    return quotient;
}
""")

_DIVIDED = """\

// x / c, if the flag stays; quotients by the same number share its reciprocal.
template <typename Number>
__device__ __forceinline__ Number eatss_divided(Number x, Number c, bool &exact)
{
    return eatss_quotient<Number>(x, c, eatss_reciprocal<Number>(c, exact), exact);
}
"""

_QUOTIENT_ALONE = """\

// The same without a flag: 0 for what has no reciprocal, and then a division.
template <typename Number>
__device__ __forceinline__ Number eatss_reciprocal(Number c)
{
    bool exact = true;
    const Number inverse = eatss_reciprocal<Number>(c, exact);
    return exact ? inverse : (Number)0;
}
template <typename Number>
__device__ __forceinline__ Number eatss_quotient(Number x, Number c, Number reciprocal)
{
    bool exact = reciprocal != 0;
    const Number quotient = eatss_quotient<Number>(x, c, reciprocal, exact);
    return exact ? quotient : x / c;
}
"""

_HALF = r"\beatss_half\b"

_DIVIDES = r"\beatss_(reciprocal|divided)<"

_FOR_CUDA = (
    (_LAUNCH, ()),
    (_CALLS, (r"\beatss_calls\b",)),
    (HALVES, (_HALF,)),
    (_TRACKED, (r"\bEATSS_(DYNAMIC_)?SHARED\(",)),
    (_OVERLAID, (r"\bEATSS_OVERLAID\(",)),
    (_SHARED, (r"\bEATSS_SHARED\(",)),
    (_DYNAMIC_SHARED, (r"\bEATSS_DYNAMIC_SHARED\(",)),
    *COPIES,
    (_TOGETHER, (r"\beatss_comes_last\(",)),
    (_INVERSE, (_DIVIDES,)),
    (_LOOK_BACK, (r"\beatss_before_tile\(",)),
)
"""Definitions in their order, and what code has in it, all of it, that needs them."""

_FOR_BOTH = (
    (_FLOORDIV, (r"\beatss_floordiv\(",)),
    (_MOD, (r"\beatss_mod\(",)),
    (_FINITE, (r"\beatss_is_finite\(",)),
    (_FINITE_HALVES, (r"\beatss_is_finite\(", _HALF)),
    (_MIN_MAX, (r"\beatss_(min|max)\(",)),
    (_QUOTIENT, (r"\beatss_quotient<",)),
    (_RECIPROCAL, (_DIVIDES,)),
    (_DIVIDED, (r"\beatss_divided<",)),
    (_QUOTIENT_ALONE, (_DIVIDES + r"\w+>\([^,]*\);",)),
)


def preamble(code: str, instructions: Collection[Instruction] = ()) -> str:
    """Return the definitions that a generated file starts with: those that its code needs.

    Launchers, which NVRTC does not take, belong inside ``#ifndef __CUDACC_RTC__``.
    """
    cuda, both = (
        "".join(text for text, words in table if all(re.search(one, code) for one in words))
        for table in (_FOR_CUDA, _FOR_BOTH)
    )
    order = [*INSTRUCTIONS]
    used = sorted(
        instructions,
        key=lambda one: (order.index(one.name) if one.name in order else len(order), one.name),
    )
    cuda += "".join(dict.fromkeys(helper for one in used for helper in one.helpers))
    cuda += "".join(dict.fromkeys(one.definitions for one in used))  # some share all of them
    cpu = CPU_HALVES * (re.search(_HALF, code) is not None)
    cpu += _CPU_INVERSE * (re.search(_DIVIDES, code) is not None)
    cpu += "".join(dict.fromkeys(one.cpu_definitions for one in used))
    cuda += f"\n#else // on a CPU\n{cpu}" * bool(cpu)
    head = "// On a CPU, eatss_cpu.hpp defines the names below.\n#ifndef EATSS_CPU\n"
    return f"{head}{cuda}#endif // EATSS_CPU\n{both}"
