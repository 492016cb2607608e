// Runs a generated program on a CPU, as benchmarks/random_programs.py needs it: each thread of a
// block on a stack of its own, in ascending or descending order between barriers.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <initializer_list>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define EATSS_TRACKED(type) type
#define EATSS_OVERLAID(type, number) type

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef void *cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess = 0, cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
inline int cudaGetLastError() { return 0; }
template <class F> int cudaFuncSetAttribute(F, int, int) { return 0; }
template <class T> int cudaMalloc(T **where, size_t bytes) {
    *where = (T *)malloc(bytes ? bytes : 1);
    memset((void *)*where, 0x7b, bytes);
    return 0;
}
inline int cudaFree(void *where) { free(where); return 0; }

// The calls of a launcher: each has memory of its own, and is run as it comes.
struct eatss_stream {
    cudaStream_t stream;
    operator cudaStream_t() const { return stream; }
};
struct eatss_temporary {
    size_t element_bytes, elements;
    bool zeroed;
};
struct eatss_calls {
    template <class Work, class... Values>
    int run(cudaStream_t stream, std::initializer_list<eatss_temporary> arrays, Work work,
            const Values &...) {
        std::vector<void *> memory;
        for (const eatss_temporary &one : arrays) {
            memory.push_back(nullptr);
            cudaMalloc(&memory.back(), one.element_bytes * one.elements);
            if (one.zeroed) memset(memory.back(), 0, one.element_bytes * one.elements);
        }
        eatss_stream own = {stream};
        work(own, memory.data());
        for (void *one : memory) cudaFree(one);
        return cudaGetLastError();
    }
    int free() { return 0; }
};

static dim3 threadIdx, blockIdx, blockDim, gridDim;
static bool descending;
alignas(16) static char shared_memory[1 << 20];
static char exchanged[1024][16];

struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    bool done = false;
};
static std::vector<Thread> threads;
static ucontext_t scheduler;
static size_t current;
static const std::function<void()> *body;

static void enter() {
    (*body)();
    threads[current].done = true;
    swapcontext(&threads[current].context, &scheduler);
}
inline void __syncthreads() { swapcontext(&threads[current].context, &scheduler); }
inline void __syncwarp() {}

static void run_block(const std::function<void()> &call) {
    const size_t count = (size_t)blockDim.x * blockDim.y * blockDim.z;
    if (threads.size() < count) threads.resize(count);
    body = &call;
    for (size_t t = 0; t < count; t++) {
        Thread &thread = threads[t];
        thread.stack.resize(1 << 16);
        thread.done = false;
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.data();
        thread.context.uc_stack.ss_size = thread.stack.size();
        makecontext(&thread.context, enter, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (size_t k = 0; k < count; k++) {
            const size_t t = descending ? count - 1 - k : k;
            if (threads[t].done) continue;
            any = true;
            current = t;
            threadIdx = dim3(t % blockDim.x, t / blockDim.x % blockDim.y,
                             t / (blockDim.x * blockDim.y));
            swapcontext(&scheduler, &threads[t].context);
        }
    }
}

// Copies ahead: what is read at once lies here until it is waited for, and noise in its place.
struct Copy {
    unsigned char *to;
    unsigned char value[8];
    size_t bytes;
};
static std::vector<std::vector<Copy>> ahead[1024];  // the groups of each thread, the last one open

static void launch(dim3 grid, dim3 block, const std::function<void()> &call) {
    gridDim = grid;
    blockDim = block;
    const size_t blocks = (size_t)grid.x * grid.y * grid.z;
    for (size_t k = 0; k < blocks; k++) {
        const size_t b = descending ? blocks - 1 - k : k;
        blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / ((size_t)grid.x * grid.y));
        memset(shared_memory, 0x5a, sizeof shared_memory);
        for (auto &groups : ahead) groups.clear();
        run_block(call);
    }
}
#define EATSS_LAUNCH(kernel, grid, block, bytes, stream, ...) \
    launch(grid, block, [&] { kernel(__VA_ARGS__); })
#define EATSS_SHARED(type, name) type &name = *(type *)shared_memory
#define EATSS_DYNAMIC_SHARED(type, name) type &name = *(type *)shared_memory

template <class T> T eatss_shuffle_down(T value, unsigned delta, unsigned width) {
    const size_t own = current;
    memcpy(exchanged[own], &value, sizeof value);
    __syncthreads();
    const size_t from = own % width + delta < width ? own + delta : own;
    T result;
    memcpy(&result, exchanged[from], sizeof result);
    __syncthreads();
    return result;
}
#define ATOMIC(name, combined) \
    template <class T, class U> void eatss_atomic_##name(T *pointer, U value) { *pointer combined; }
ATOMIC(add, += value)
ATOMIC(multiply, *= value)
ATOMIC(and, &= value)
ATOMIC(or, |= value)
ATOMIC(xor, ^= value)
#undef ATOMIC

static bool agreed[1024];
inline bool __syncthreads_and(bool own) {
    agreed[current] = own;
    __syncthreads();
    bool all = true;
    for (unsigned t = 0; t < blockDim.x * blockDim.y * blockDim.z; t++) all = all && agreed[t];
    __syncthreads();
    return all;
}

template <class T> void eatss_copy_ahead(T *to, const T *from, bool reads) {
    static_assert(sizeof(T) <= 8, "an element");
    std::vector<std::vector<Copy>> &own = ahead[current];
    if (own.empty()) own.emplace_back();
    const T value = reads ? *from : T();
    Copy copy = {(unsigned char *)to, {}, sizeof value};
    memcpy(copy.value, &value, sizeof value);
    memset((void *)to, 0x3c, sizeof value);
    own.back().push_back(copy);
}
inline void eatss_commit_copies() {
    if (ahead[current].empty()) ahead[current].emplace_back();
    ahead[current].emplace_back();
}
template <int pending> void eatss_wait_for_copies() {
    std::vector<std::vector<Copy>> &own = ahead[current];
    while (own.size() > pending + 1) {
        for (const Copy &copy : own.front()) memcpy(copy.to, copy.value, copy.bytes);
        own.erase(own.begin());
    }
}

// 16 bytes at a time, from a multiple of them on.
inline bool eatss_is_aligned(const void *array) { return ((size_t)array & 15) == 0; }
template <class T> void whole(const T *place) { if (!eatss_is_aligned(place)) abort(); }
template <class T> void eatss_copy_wide(T *to, const T *from) {
    whole(from);
    for (size_t at = 0; at < 16 / sizeof(T); at++) to[at] = from[at];
}
template <class T> void eatss_load_wide(T *to, const T *from) { eatss_copy_wide(to, from); }
template <class T> void eatss_load_wide_or_clear(T *to, const T *from, bool reads) {
    if (reads) return eatss_load_wide(to, from);
    for (size_t at = 0; at < 16 / sizeof(T); at++) to[at] = T();
}
template <class T> void eatss_store_wide(T *to, const T *from) {
    whole(to);
    for (size_t at = 0; at < 16 / sizeof(T); at++) to[at] = from[at];
}
template <class T> void eatss_copy_wide_ahead_or_clear(T *to, const T *from, bool reads) {
    if (reads) whole(from);
    for (size_t at = 0; at < 16 / sizeof(T); at++) eatss_copy_ahead(to + at, from + at, reads);
}
template <class T> void eatss_copy_wide_ahead(T *to, const T *from) {
    eatss_copy_wide_ahead_or_clear(to, from, true);
}
