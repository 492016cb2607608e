// Runs the CUDA text of a generated program on a CPU, one block after another.
//
// Included before the text (-include eatss_cpu.hpp -DEATSS_CPU). Threads of a block run in turn;
// one that reaches a barrier or a shuffle is parked on its own stack until all others have come
// there. A kernel without barriers never switches stacks. What a card would leave undefined is an
// error here: barriers and shuffles that not all threads reach, reads of shared memory that no
// thread of the block wrote, accesses of two threads that no barrier separates.
#pragma once

#undef _FORTIFY_SOURCE  // its longjmp refuses to leave for another stack
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS  // <math.h> of C: the C++ one takes longer than the text
#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <initializer_list>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Overloads that <cmath> has; C's own functions take double.
#define EATSS_MATH_1(name)                                     \
    inline float name(float x) { return ::name##f(x); }        \
    inline double name(int x) { return ::name((double)x); }    \
    inline double name(long x) { return ::name((double)x); }
#define EATSS_MATH_2(name)                                                  \
    inline float name(float x, float y) { return ::name##f(x, y); }         \
    inline double name(float x, double y) { return ::name((double)x, y); }  \
    inline double name(double x, float y) { return ::name(x, (double)y); }
EATSS_MATH_1(sqrt) EATSS_MATH_1(cbrt) EATSS_MATH_1(fabs) EATSS_MATH_1(exp) EATSS_MATH_1(exp2)
EATSS_MATH_1(expm1) EATSS_MATH_1(log) EATSS_MATH_1(log2) EATSS_MATH_1(log10) EATSS_MATH_1(log1p)
EATSS_MATH_1(sin) EATSS_MATH_1(cos) EATSS_MATH_1(tan) EATSS_MATH_1(asin) EATSS_MATH_1(acos)
EATSS_MATH_1(atan) EATSS_MATH_1(sinh) EATSS_MATH_1(cosh) EATSS_MATH_1(tanh) EATSS_MATH_1(erf)
EATSS_MATH_1(erfc) EATSS_MATH_1(floor) EATSS_MATH_1(ceil) EATSS_MATH_1(trunc) EATSS_MATH_1(round)
EATSS_MATH_2(pow) EATSS_MATH_2(fmin) EATSS_MATH_2(fmax) EATSS_MATH_2(fmod) EATSS_MATH_2(atan2)
EATSS_MATH_2(hypot) EATSS_MATH_2(copysign) EATSS_MATH_2(fdim)
inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
#undef EATSS_MATH_1
#undef EATSS_MATH_2

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
    unsigned x, y, z;
};
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorMisalignedAddress = 716,
    cudaErrorLaunchFailure = 719
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
typedef struct eatss_stream *cudaStream_t;

// Where variables of this library stand; the linker says so.
extern "C" __attribute__((visibility("hidden"))) char __bss_start, _end;

namespace eatss {

constexpr unsigned MAX_THREADS = 1024, WARP = 32;
constexpr size_t SHARED_DEFAULT = 49152, SHARED_OPT_IN = 232448;  // 48 KiB; 227 KiB of sm_90
constexpr size_t STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096;
constexpr size_t STACKS_BYTES = MAX_THREADS * STACK_BYTES;
constexpr int OUTSIDE = -1;

enum class State : unsigned char { finished, runnable, at_barrier, at_shuffle };

struct Thread {
    State state;
    bool flip;         // which of the two slots of a shuffle it posts to next
    int line;          // of the barrier it waits at
    int fibre;         // it is parked on
    uint64_t slot[2];  // values posted to shuffles
};

struct Fibre {
    ucontext_t start;
    jmp_buf at;
    void *stack;
    bool fresh;
};

// A word of shared memory: who touched it last, and in which interval between barriers.
struct Shadow {
    uint32_t written_in, read_in;
    uint32_t awaited_in;  // the block, by its first interval, in which a copy to it is on the way
    int16_t writer, reader;
};
constexpr int16_t SEVERAL = -2;

// A word of shared memory where several boxes lie: which group of them used it last, and when.
struct Owned {
    uint32_t used_in;
    int16_t user, group;
};

struct Attribute {
    const void *kernel;
    size_t bytes;
};

static Thread threads[MAX_THREADS];
static Fibre fibres[MAX_THREADS];
static uintptr_t stacks;  // of all fibres, one behind the other
static int idle[MAX_THREADS], n_idle, n_fibres;
static jmp_buf scheduler;
static int current, running_fibre;
static unsigned n_threads, n_started;
static void (*body)(void *);
static void *body_argument;
static const char *kernel_name = "";
static size_t dynamic_bytes, shared_bytes;

static uint32_t interval, first_interval, launch_interval;  // of the block, of the launch
alignas(256) static unsigned char shared_memory[SHARED_OPT_IN];
static Shadow words[SHARED_OPT_IN / 4], narrow[SHARED_OPT_IN];
static Owned owned[SHARED_OPT_IN / 4];

static Attribute attributes[256];
static int n_attributes;
static cudaError_t last_error = cudaSuccess;
static bool failed;
static bool abandoned;  // the last block did not end: threads are left on its fibres
static int reversed;
static int dry;  // launches are checked, and nothing runs: there are no arrays
static char message[512];

// Branches of the text, by number: how often threads found each false and true.
struct Taken {
    uint64_t threads[2];
};
#ifdef EATSS_BRANCHES  // whoever has the text defines it, as long as it has to be
extern __attribute__((visibility("hidden"))) Taken taken[];
#else
static Taken taken[2];
#endif
static bool in_kernel;
static uint64_t steps;  // events seen here, a measure of time that is the same on every machine

// Called for every access, and by none itself: optimized, which the text is not.
#define EATSS_UNSEEN_INLINE __attribute__((no_sanitize("thread", "bounds-strict"), optimize("O2")))
#define EATSS_UNSEEN __attribute__((noinline, no_sanitize("thread", "bounds-strict"), optimize("O2")))

EATSS_UNSEEN static bool took_for(int branch, bool holds) {
    steps++;
    taken[branch].threads[holds]++;
    return holds;
}
EATSS_UNSEEN static bool took_choice(int branch, bool holds) { return took_for(branch, holds); }
EATSS_UNSEEN static bool took_if(int branch, bool holds) { return took_for(branch, holds); }

// Notes which one of several conditions, numbered from the first, does not hold alone.
template <class... Conditions>
EATSS_UNSEEN static bool all_hold(int first, Conditions... conditions) {
    const bool every[] = {bool(conditions)...};
    int failed = -1, number = first;
    for (bool holds : every) {
        if (!holds) failed = failed < 0 ? number : 0;
        number++;
    }
    if (failed < 0)
        for (int k = first; k < number; k++) taken[k].threads[1]++;
    if (failed > 0) taken[failed].threads[0]++;
    return failed < 0;
}

// The number of an element that is in its row, or one in the guard zone before the array.
constexpr int NOT_IN_ROW = -16;
template <class Number>
__attribute__((always_inline)) inline Number in_row(long place, long extent, Number number) {
    return place >= 0 && place < extent ? number : (Number)NOT_IN_ROW;
}

// Blocks that ran, of each kernel.
struct Kernel {
    const char *name;
    uint64_t blocks;
    const char *strides;  // axes along which a block goes on to the next tile, one grid away
};
static Kernel kernels[256];
static int n_kernels;

inline Kernel &kernel_called(const char *name) {
    for (int k = 0; k < n_kernels; k++)
        if (!strcmp(kernels[k].name, name)) return kernels[k];
    if (n_kernels == 256) n_kernels--;
    kernels[n_kernels] = {name, 0, ""};
    return kernels[n_kernels++];
}

inline bool strides(const char *kernel, const char *axes) {
    kernel_called(kernel).strides = axes;
    return true;
}

// Keeps the first error; everything after it is a consequence.
inline void note(cudaError_t error, const char *kind, const char *format, ...) {
    last_error = error;
    if (failed) return;
    failed = true;
    int used = snprintf(message, sizeof message, "%s: ", kind);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    va_end(arguments);
}

// Stops the launch from within a thread; its stack and all others are given up.
[[noreturn]] inline void stop() {
    _longjmp(scheduler, 1);
}

EATSS_UNSEEN_INLINE inline void resume(int thread) {
    current = thread;
    unsigned linear = (unsigned)thread;
    threadIdx.x = linear % blockDim.x;
    threadIdx.y = linear / blockDim.x % blockDim.y;
    threadIdx.z = linear / (blockDim.x * blockDim.y);
}

// What every fibre does: start threads until there are no more.
EATSS_UNSEEN static void fibre_main() {
    for (;;) {
        while (n_started < n_threads) {
            unsigned k = n_started++;
            int thread = (int)(reversed ? n_threads - 1 - k : k);
            threads[thread].state = State::runnable;
            steps += 20;
            resume(thread);
            body(body_argument);
            threads[current].state = State::finished;
        }
        idle[n_idle++] = running_fibre;
        if (_setjmp(fibres[running_fibre].at) == 0) _longjmp(scheduler, 2);
    }
}

EATSS_UNSEEN static int take_fibre() {
    if (n_idle) return idle[--n_idle];
    Fibre &fibre = fibres[n_fibres];
    if (!stacks) {
        void *memory = mmap(nullptr, STACKS_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) abort();
        stacks = (uintptr_t)memory;
    }
    if (!fibre.stack) {
        fibre.stack = (void *)(stacks + (size_t)n_fibres * STACK_BYTES);
        mprotect(fibre.stack, GUARD_BYTES, PROT_NONE);
    }
    fibre.fresh = true;
    return n_fibres++;
}

// Runs a fibre until it parks its thread or has no more to do; false after an error.
EATSS_UNSEEN static bool enter(int number) {
    int why = _setjmp(scheduler);
    if (why) return why == 2;
    running_fibre = number;
    Fibre &fibre = fibres[number];
    if (!fibre.fresh) _longjmp(fibre.at, 1);
    fibre.fresh = false;
    getcontext(&fibre.start);
    fibre.start.uc_stack.ss_sp = fibre.stack;
    fibre.start.uc_stack.ss_size = STACK_BYTES;
    fibre.start.uc_link = nullptr;
    makecontext(&fibre.start, fibre_main, 0);
    setcontext(&fibre.start);
    abort();
}

EATSS_UNSEEN static void park(State state, int line) {
    int thread = current;
    steps += 20;
    threads[thread].state = state;
    threads[thread].line = line;
    threads[thread].fibre = running_fibre;
    if (_setjmp(fibres[running_fibre].at) == 0) _longjmp(scheduler, 2);
    resume(thread);
}

EATSS_UNSEEN static bool run_runnable() {
    for (unsigned k = 0; k < n_threads; k++) {
        Thread &thread = threads[reversed ? n_threads - 1 - k : k];
        if (thread.state == State::runnable && !enter(thread.fibre)) return false;
    }
    return true;
}

// Lets the warps go on whose lanes have all come to a shuffle.
EATSS_UNSEEN static bool release_warps() {
    bool any = false;
    for (unsigned first = 0; first < n_threads; first += WARP) {
        unsigned end = first + WARP < n_threads ? first + WARP : n_threads;
        bool all = true;
        for (unsigned t = first; t < end; t++)
            all = all && threads[t].state == State::at_shuffle && threads[t].line == threads[first].line;
        for (unsigned t = first; all && t < end; t++) threads[t].state = State::runnable;
        any = any || all;
    }
    return any;
}

static void block_text(char *text, size_t size) {
    snprintf(text, size, "kernel %s, block (%u, %u, %u)", kernel_name, blockIdx.x, blockIdx.y,
             blockIdx.z);
}

// Says which barrier or shuffle some threads wait at in vain.
static void report_divergence() {
    char where[160];
    block_text(where, sizeof where);
    unsigned finished = 0;
    for (unsigned t = 0; t < n_threads; t++) finished += threads[t].state == State::finished;
    for (unsigned t = 0; t < n_threads; t++) {
        if (threads[t].state != State::at_shuffle) continue;
        unsigned first = t / WARP * WARP, lanes = 0, arrived = 0;
        for (unsigned k = first; k < n_threads && k < first + WARP; k++, lanes++)
            arrived += threads[k].state == State::at_shuffle && threads[k].line == threads[t].line;
        note(cudaErrorLaunchFailure, "barrier",
             "%s: %u of the %u threads of warp %u reach the shuffle in line %d", where, arrived,
             lanes, first / WARP, threads[t].line);
        return;
    }
    for (unsigned t = 0; t < n_threads; t++) {
        if (threads[t].state != State::at_barrier) continue;
        unsigned arrived = 0;
        for (unsigned k = 0; k < n_threads; k++)
            arrived += threads[k].state == State::at_barrier && threads[k].line == threads[t].line;
        note(cudaErrorLaunchFailure, "barrier",
             "%s: %u of %u threads reach the barrier in line %d, %u have finished", where, arrived,
             n_threads, threads[t].line, finished);
        return;
    }
}

EATSS_UNSEEN static bool run_block() {
    first_interval = ++interval;
    n_started = 0;
    if (abandoned) n_idle = n_fibres = 0;
    abandoned = true;
    while (n_started < n_threads)
        if (!enter(take_fibre())) return false;
    for (;;) {
        unsigned waiting = 0, finished = 0;
        bool same = true;
        for (unsigned t = 0; t < n_threads; t++) {
            finished += threads[t].state == State::finished;
            waiting += threads[t].state == State::at_barrier;
            same = same && threads[t].line == threads[0].line;
        }
        if (finished == n_threads) {
            abandoned = false;
            return true;
        }
        if (waiting == n_threads && same) {
            ++interval;
            for (unsigned t = 0; t < n_threads; t++) threads[t].state = State::runnable;
        } else if (!release_warps()) {
            report_divergence();
            return false;
        }
        if (!run_runnable()) return false;
    }
}

inline bool launchable(const void *kernel, dim3 grid, dim3 block) {
    uint64_t count = (uint64_t)block.x * block.y * block.z;
    const cudaError_t bad = cudaErrorInvalidConfiguration;
    if (count == 0 || count > MAX_THREADS || block.x > 1024 || block.y > 1024 || block.z > 64) {
        note(bad, "launch", "kernel %s: a block of (%u, %u, %u) threads; at most 1024 in all, 64 in z",
             kernel_name, block.x, block.y, block.z);
        return false;
    }
    if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
        note(bad, "launch", "kernel %s: a grid of (%u, %u, %u) blocks; from 1 to 2147483647 in x, to "
             "65535 in y and z", kernel_name, grid.x, grid.y, grid.z);
        return false;
    }
    size_t limit = SHARED_DEFAULT;
    for (int k = 0; k < n_attributes; k++)
        if (attributes[k].kernel == kernel && attributes[k].bytes > limit) limit = attributes[k].bytes;
    if (dynamic_bytes > limit) {
        note(cudaErrorInvalidValue, "launch",
             "kernel %s: %zu bytes of dynamic shared memory, %zu are allowed", kernel_name,
             dynamic_bytes, limit);
        return false;
    }
    return true;
}

// A block has left its part of a sum, and what it did in these intervals comes before what another
// one does that has waited for the part, in the intervals behind `joined_in`.
struct Left {
    const int *arrived;
    uint32_t first, last, joined_in;
};
static Left left_parts[1 << 17];  // two of each block; there are 65535 at most
static int n_left;

inline void launch(const char *name, const void *kernel, dim3 grid, dim3 block, size_t bytes,
                   void (*call)(void *), void *argument) {
    if (failed) return;
    kernel_name = name;
    dynamic_bytes = bytes;
    shared_bytes = bytes;
    if (!launchable(kernel, grid, block) || dry) return;
    Kernel &totals = kernel_called(name);
    if (reversed) {  // the other order has few blocks where they take strides
        if (strchr(totals.strides, 'x') && grid.x > 2) grid.x = 2;
        if (strchr(totals.strides, 'y') && grid.y > 2) grid.y = 2;
        if (strchr(totals.strides, 'z') && grid.z > 2) grid.z = 2;
    }
    gridDim = grid;
    blockDim = block;
    n_threads = block.x * block.y * block.z;
    body = call;
    body_argument = argument;
    launch_interval = interval + 1;
    n_left = 0;
    uint64_t count = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t number = reversed ? count - 1 - k : k;
        blockIdx.x = (unsigned)(number % grid.x);
        blockIdx.y = (unsigned)(number / grid.x % grid.y);
        blockIdx.z = (unsigned)(number / grid.x / grid.y);
        in_kernel = true;
        bool ended = run_block();
        in_kernel = false;
        if (!ended) return;
        totals.blocks++;
    }
}

template <class Call>
inline void launch_call(const char *name, const void *kernel, dim3 grid, dim3 block, size_t bytes,
                        Call call) {
    launch(name, kernel, grid, block, bytes, [](void *c) { (*(Call *)c)(); }, &call);
}

// Global memory ---------------------------------------------------------------------------

// The text is compiled with -fsanitize=thread, but not linked with its library: the compiler
// announces every access to memory, and what is done about it stands here. An element knows who
// wrote it last, who read it last, and when it was first read in this launch; intervals between
// barriers count on through blocks and launches.
struct Cell {
    uint32_t written_in, read_in, first_read_in;
    int16_t writer, reader;
    bool atomic;
};
struct Watched {
    const char *name;
    uintptr_t outer, begin, end, outer_end;
    size_t element;
    Cell *cells;
    uint32_t promised_in;  // the launch whose kernel says that nothing but its pointer changes it
};
static Watched watched[256];
static int n_watched, last_watched;
static uintptr_t lowest = UINTPTR_MAX, highest;
static char observed[512];  // the first thing seen, or nothing

inline void watch(const char *name, uintptr_t data, size_t bytes, size_t guard, size_t element) {
    if (n_watched == 256) return;
    void *cells = nullptr;
    size_t size = (bytes / element) * sizeof(Cell);
    if (size) {
        cells = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (cells == MAP_FAILED) return;
    }
    watched[n_watched++] = {name,  data - guard, data, data + bytes, data + bytes + guard,
                            element, (Cell *)cells, 0};
    if (data - guard < lowest) lowest = data - guard;
    if (data + bytes + guard > highest) highest = data + bytes + guard;
}
inline void unwatch(int k) {
    size_t size = (watched[k].end - watched[k].begin) / watched[k].element * sizeof(Cell);
    if (size) munmap(watched[k].cells, size);
    watched[k] = watched[--n_watched];
    last_watched = 0;
}

constexpr size_t NOWHERE = SIZE_MAX;  // of an element whose place is not known

EATSS_UNSEEN static void observe_that(const char *kind, const char *what, const char *name, size_t at) {
    if (*observed) return;
    char where[160];
    block_text(where, sizeof where);
    char place[32] = "";
    if (at != NOWHERE) snprintf(place, sizeof place, " (byte %zd)", (ssize_t)at);
    snprintf(observed, sizeof observed, "%s: %s: thread (%u, %u, %u) %s%s%s", kind, where,
             threadIdx.x, threadIdx.y, threadIdx.z, what, name, place);
}

EATSS_UNSEEN_INLINE inline bool was_waited_for(uint32_t then) {
    for (int k = 0; k < n_left; k++) {
        const Left &left = left_parts[k];
        if (then >= left.first && then <= left.last && left.joined_in >= first_interval &&
            left.joined_in < interval)
            return true;
    }
    return false;
}

// Whether an access in an interval is one of another block of this launch, without an order.
EATSS_UNSEEN_INLINE inline bool elsewhere(uint32_t then) {
    return then >= launch_interval && then < first_interval && !was_waited_for(then);
}

// Whether an access of the running thread and one in an interval may come in either order.
EATSS_UNSEEN_INLINE inline bool unordered(uint32_t then, int16_t thread) {
    return elsewhere(then) || (then >= launch_interval && then == interval && thread != current);
}

// Whether another thread of the block made an access earlier in this launch, before a barrier.
EATSS_UNSEEN_INLINE inline bool passed_on(uint32_t then, int16_t thread) {
    return then >= first_interval && then < interval && thread != current;
}

// A kernel says by `__restrict__` that nothing but a pointer of the running thread changes what it
// points to: a compiler may keep such a value over a barrier.
EATSS_UNSEEN static void promise(const void *pointer) {
    for (int k = 0; k < n_watched; k++)
        if ((uintptr_t)pointer >= watched[k].begin && (uintptr_t)pointer < watched[k].end)
            watched[k].promised_in = launch_interval;
}

EATSS_UNSEEN static void access_cell(const Watched &array, size_t number, bool write, bool atomic) {
    Cell &cell = array.cells[number];
    if (unordered(cell.written_in, cell.writer) && !(atomic && cell.atomic))
        observe_that("race", write ? "writes what another thread writes without an order, element of "
                                   : "reads what another thread writes without an order, element of ",
                     array.name, number * array.element);
    if (array.promised_in == launch_interval && !atomic &&
        (passed_on(cell.written_in, cell.writer) || (write && passed_on(cell.read_in, cell.reader))))
        observe_that("race", write ? "writes through __restrict__ what another thread used, element of "
                                   : "reads through __restrict__ what another thread wrote, element of ",
                     array.name, number * array.element);
    if (write) {
        if (elsewhere(cell.first_read_in) || unordered(cell.read_in, cell.reader))
            observe_that("race", "writes what another thread reads without an order, element of ",
                         array.name, number * array.element);
        bool again = cell.written_in == interval && cell.writer == current;
        cell.atomic = atomic && (!again || cell.atomic);
        cell.written_in = interval;
        cell.writer = (int16_t)current;
    } else {
        if (cell.first_read_in < launch_interval) cell.first_read_in = interval;
        cell.reader = cell.read_in == interval && cell.reader != current ? SEVERAL : (int16_t)current;
        cell.read_in = interval;
    }
}

EATSS_UNSEEN static void access_array(uintptr_t address, size_t size, bool write, bool atomic) {
    for (int tried = 0; tried < n_watched; tried++) {
        int k = last_watched + tried < n_watched ? last_watched + tried : last_watched + tried - n_watched;
        const Watched &array = watched[k];
        if (address < array.outer || address >= array.outer_end) continue;
        last_watched = k;
        if (address < array.begin || address + size > array.end) {
            if (address == array.begin + NOT_IN_ROW * array.element)
                observe_that("memory", write ? "writes beside a row of " : "reads beside a row of ",
                             array.name, NOWHERE);
            else
                observe_that("memory", write ? "writes beside " : "reads beside ", array.name,
                             address - array.begin);
            return;
        }
        size_t first = (address - array.begin) / array.element;
        size_t last = (address + size - 1 - array.begin) / array.element;
        for (size_t number = first; number <= last; number++) access_cell(array, number, write, atomic);
        return;
    }
}

// Most accesses are to variables of threads, on their stacks, and to tables of this file.
EATSS_UNSEEN_INLINE inline void access(uintptr_t address, size_t size, bool write,
                                                          bool atomic) {
    steps++;
    const uintptr_t tables = (uintptr_t)&__bss_start, tables_end = (uintptr_t)&_end;
    bool is_own = address - stacks < STACKS_BYTES || address - tables < tables_end - tables;
    if (!is_own && address >= lowest && address < highest && in_kernel)
        access_array(address, size, write, atomic);
}

// Shared memory ---------------------------------------------------------------------------

[[noreturn]] inline void shared_error(const char *what, size_t offset) {
    char where[160];
    block_text(where, sizeof where);
    note(cudaErrorLaunchFailure, "shared memory", "%s: thread (%u, %u, %u) %s (byte %zu)", where,
         threadIdx.x, threadIdx.y, threadIdx.z, what, offset);
    stop();
}

// A type as a parameter that is not deduced: an element of shared memory converts to it.
template <class T>
struct Itself {
    using type = T;
};

// A thread uses an element of a group of boxes that lies where those of other groups do: their
// values are lost, and its own are there only once it has been written again.
EATSS_UNSEEN static void own(size_t offset, size_t size, int16_t group, bool write) {
    for (size_t word = offset / 4; word <= (offset + size - 1) / 4; word++) {
        Owned &o = owned[word];
        if (o.used_in >= first_interval && o.group != group) {
            if (o.used_in == interval && o.user != current)
                shared_error(write ? "writes where another one used another box since the last barrier"
                                   : "reads where another one used another box since the last barrier",
                             offset);
            if (!write) shared_error("reads an element that another box has overwritten", offset);
        }
        bool again = o.used_in == interval && o.group == group && o.user != current;
        o.user = again ? SEVERAL : (int16_t)current;
        o.used_in = interval;
        o.group = group;
    }
}

// An element of shared memory. It is as large as T, so that sizes are those of the card; who
// wrote and read it stands in a table beside. Of a numbered group of boxes others lie in its place.
template <class T, int16_t group = 0>
struct Tracked {
    T value;

    EATSS_UNSEEN_INLINE Shadow &shadow() const {
        steps += 10;  // takes as long as so many others
        size_t offset = (size_t)((const unsigned char *)this - shared_memory);
        if (offset >= shared_bytes) shared_error("leaves the block's shared memory", offset);
        return sizeof(T) < 4 ? narrow[offset] : words[offset / 4];
    }
    EATSS_UNSEEN_INLINE size_t place() const { return (size_t)((const unsigned char *)this - shared_memory); }

    EATSS_UNSEEN_INLINE T read() const {
        Shadow &s = shadow();
        if (group) own(place(), sizeof(T), group, false);
        if (s.awaited_in == first_interval)
            shared_error("reads an element to which a copy is on the way", place());
        if (s.written_in < first_interval)
            shared_error("reads an element that no thread of the block wrote", place());
        if (s.written_in == interval && s.writer != current)
            shared_error("reads an element that another one wrote since the last barrier", place());
        if (s.read_in != interval) {
            s.read_in = interval;
            s.reader = (int16_t)current;
        } else if (s.reader != current) {
            s.reader = SEVERAL;
        }
        return value;
    }
    // A copy is on the way: it may come at any moment until it is waited for.
    EATSS_UNSEEN_INLINE void await() {
        Shadow &s = shadow();
        if (group) own(place(), sizeof(T), group, true);
        if (s.read_in == interval && s.reader != current)
            shared_error("copies to an element that another one read since the last barrier", place());
        s.awaited_in = first_interval;
    }
    EATSS_UNSEEN_INLINE void arrive(T next) {
        shadow().awaited_in = 0;
        write(next);
    }
    EATSS_UNSEEN_INLINE void write(T next) {
        Shadow &s = shadow();
        if (group) own(place(), sizeof(T), group, true);
        if (s.written_in == interval && s.writer != current)
            shared_error("writes an element that another one wrote since the last barrier", place());
        if (s.read_in == interval && s.reader != current)
            shared_error("writes an element that another one read since the last barrier", place());
        s.written_in = interval;
        s.writer = (int16_t)current;
        value = next;
    }

    operator T() const { return read(); }
    template <class U> explicit operator U() const { return (U)read(); }
    Tracked &operator=(T next) { write(next); return *this; }
    Tracked &operator=(const Tracked &other) { write(other.read()); return *this; }
    template <class U> Tracked &operator+=(const U &b) { write((T)(read() + b)); return *this; }
    template <class U> Tracked &operator-=(const U &b) { write((T)(read() - b)); return *this; }
    template <class U> Tracked &operator*=(const U &b) { write((T)(read() * b)); return *this; }
    template <class U> Tracked &operator/=(const U &b) { write((T)(read() / b)); return *this; }
};

template <class S>
inline S &static_shared() {
    static_assert(sizeof(S) <= SHARED_DEFAULT, "a block has at most 48 KiB of static shared memory");
    if (shared_bytes < sizeof(S)) shared_bytes = sizeof(S);
    return *(S *)shared_memory;
}

// One of several shared variables of a block, at a place of its own.
template <class S>
inline S &shared_at(size_t place) {
    static_assert(sizeof(S) <= SHARED_DEFAULT, "a block has at most 48 KiB of static shared memory");
    size_t end = place + sizeof(S);
    if (end > SHARED_DEFAULT) shared_error("has more static shared memory than 48 KiB", end);
    if (shared_bytes < end) shared_bytes = end;
    return *(S *)(shared_memory + place);
}

template <class S>
inline S &dynamic_shared() {
    if (dynamic_bytes < sizeof(S))
        shared_error("uses more dynamic shared memory than the launch gave the block", sizeof(S));
    return *(S *)shared_memory;
}

// Barriers, shuffles, atomics --------------------------------------------------------------

template <class T>
inline T shuffle(T value, int delta, int width, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    if (width < 1 || width > (int)WARP || (width & (width - 1)) != 0) {
        note(cudaErrorLaunchFailure, "barrier", "kernel %s: a shuffle over %d lanes in line %d; a power of "
             "two up to 32 is allowed", kernel_name, width, line);
        stop();
    }
    int thread = current;
    bool flip = threads[thread].flip;
    memcpy(&threads[thread].slot[flip], &value, sizeof(T));
    threads[thread].flip = !flip;
    park(State::at_shuffle, line);
    int lane = thread % (int)WARP, target = lane + delta;
    if (target < 0 || target / width != lane / width) return value;
    unsigned other = (unsigned)(thread + delta);
    if (other >= n_threads) return value;
    T result;
    memcpy(&result, &threads[other].slot[flip], sizeof(T));
    return result;
}

template <class T, class Other>
inline T lane_below(T value, int delta, int width, Other other, int line) {
    const T below = shuffle(value, -delta, width, line);
    return current % width < delta ? (T)other : below;
}

// Whether all threads of a block say so: all come here together, and the interval ends.
inline bool all_agree(bool own, int line) {
    static bool posted[MAX_THREADS][2];
    const unsigned slot = interval % 2;
    posted[current][slot] = own;
    park(State::at_barrier, line);
    for (unsigned t = 0; t < n_threads; t++)
        if (!posted[t][slot]) return false;
    return true;
}

// Copies that were sent ahead: read at once, written when they are waited for.
struct Sent {
    void (*write)(const Sent &);
    void *target;
    alignas(8) unsigned char value[8];
};
constexpr int MAX_GROUPS = 16;
struct Group {
    Sent *copies;
    int used, room;
};
static Group groups[MAX_THREADS][MAX_GROUPS];
static unsigned n_committed[MAX_THREADS], n_done[MAX_THREADS];
static uint32_t sent_in[MAX_THREADS];  // the block whose copies these are, by its first interval

EATSS_UNSEEN static Group &open_group() {
    if (sent_in[current] != first_interval) {
        sent_in[current] = first_interval;
        n_committed[current] = n_done[current] = 0;
        for (Group &group : groups[current]) group.used = 0;
    }
    return groups[current][n_committed[current] % MAX_GROUPS];
}
EATSS_UNSEEN static void send(const Sent &copy) {
    Group &group = open_group();
    if (group.used == group.room) {
        group.room = group.room ? 2 * group.room : 16;
        group.copies = (Sent *)realloc(group.copies, (size_t)group.room * sizeof(Sent));
        if (!group.copies) abort();
    }
    group.copies[group.used++] = copy;
}
EATSS_UNSEEN static void commit_copies() {
    open_group();
    n_committed[current]++;
    Group &next = open_group();
    if (n_committed[current] - n_done[current] >= (unsigned)MAX_GROUPS) abort();
    next.used = 0;
}
EATSS_UNSEEN static void wait_for_copies(unsigned pending) {
    open_group();
    while (n_done[current] + pending < n_committed[current]) {
        Group &group = groups[current][n_done[current]++ % MAX_GROUPS];
        for (int k = 0; k < group.used; k++) group.copies[k].write(group.copies[k]);
        group.used = 0;
    }
}

// What each lane of a warp holds, passed to all of them: all lanes come here together.
template <class T, int count>
struct Passed {
    static T posted[MAX_THREADS][2][count];
    unsigned lane, first;
    bool flip;
    EATSS_UNSEEN_INLINE Passed(const T *own, int line) {
        steps += 90;  // takes as long as so many others
        int thread = current;
        lane = (unsigned)thread % WARP;
        first = (unsigned)thread - lane;
        if (first + WARP > n_threads) {
            note(cudaErrorLaunchFailure, "barrier", "kernel %s: warp %u has not 32 lanes for line %d",
                 kernel_name, first / WARP, line);
            stop();
        }
        flip = threads[thread].flip;
        for (int k = 0; k < count; k++) posted[thread][flip][k] = own[k];
        threads[thread].flip = !flip;
        park(State::at_shuffle, line);
    }
    EATSS_UNSEEN_INLINE const T *of(int other) const { return posted[first + (unsigned)other][flip]; }
};
template <class T, int count>
T Passed<T, count>::posted[MAX_THREADS][2][count];

// What all lanes hold of a matrix is changed; texts of such instructions are not watched themselves.
template <class... T>
EATSS_UNSEEN_INLINE inline void changes(T &...held) {
    (access((uintptr_t)&held, sizeof(T), true, false), ...);
}

// Stops where 16 bytes do not begin at a multiple of them.
inline void whole_vector(const void *source) {
    if (((uintptr_t)source & 15) != 0) {
        note(cudaErrorMisalignedAddress, "address", "kernel %s: 16 bytes are copied from %p",
             kernel_name, source);
        stop();
    }
}

}  // namespace eatss

#define EATSS_LAUNCH(kernel, grid, block, bytes, stream, ...)                            \
    ((void)(stream), eatss::launch_call(#kernel, (const void *)&kernel, grid, block, bytes, \
                                        [&] { kernel(__VA_ARGS__); }))
#define EATSS_TRACKED(T) eatss::Tracked<T>
#define EATSS_OVERLAID(T, number) eatss::Tracked<T, number>
#define EATSS_SHARED(type, name) type &name = eatss::static_shared<type>()
#define EATSS_DYNAMIC_SHARED(type, name) type &name = eatss::dynamic_shared<type>()
#define EATSS_SHARED_AT(place, type, name, extents)  \
    typedef EATSS_TRACKED(type) name##_type extents; \
    name##_type &name = eatss::shared_at<name##_type>(place)
#define __syncthreads() eatss::park(eatss::State::at_barrier, __LINE__)
#define __syncthreads_and(own) eatss::all_agree((own), __LINE__)
#define __syncwarp() ((void)0)
#define eatss_shuffle_down(value, delta, width) \
    eatss::shuffle(value, delta, width, __LINE__)
#define eatss_lane_below(value, delta, width, other) \
    eatss::lane_below(value, delta, width, other, __LINE__)
#define eatss_of_lane(value, delta) eatss::shuffle(value, delta, (int)eatss::WARP, __LINE__)
#define eatss_from_lane(value, lane) \
    eatss::shuffle(value, (int)(lane) - eatss::current % (int)eatss::WARP, (int)eatss::WARP, __LINE__)

template <class T, int16_t group>
inline void eatss_copy_ahead(eatss::Tracked<T, group> *target, const T *source, bool reads) {
    eatss::Sent copy;
    copy.target = target;
    T value = reads ? *source : T();
    memcpy(copy.value, &value, sizeof(T));
    copy.write = [](const eatss::Sent &sent) {
        T value;
        memcpy(&value, sent.value, sizeof(T));
        ((eatss::Tracked<T, group> *)sent.target)->arrive(value);
    };
    target->await();
    eatss::send(copy);
}
inline bool eatss_is_aligned(const void *array) { return ((uintptr_t)array & 15) == 0; }
template <class T>
inline void eatss_store_wide(T *target, const T *source) {
    eatss::whole_vector(target);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        target[at] = source[at];
}
template <class T>
inline void eatss_load_wide(T *target, const T *source) {
    eatss::whole_vector(source);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        target[at] = source[at];
}
template <class T, int16_t group>
inline void eatss_copy_wide(eatss::Tracked<T, group> *target, const T *source) {
    eatss::whole_vector(source);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        target[at] = source[at];
}
template <class T, int16_t group>
inline void eatss_copy_wide_ahead(eatss::Tracked<T, group> *target, const T *source) {
    eatss::whole_vector(source);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        eatss_copy_ahead(&target[at], &source[at], true);
}
template <class T>
inline void eatss_load_wide_or_clear(T *target, const T *source, bool reads) {
    if (reads) return eatss_load_wide(target, source);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        target[at] = T(0);
}
template <class T, int16_t group>
inline void eatss_copy_wide_ahead_or_clear(eatss::Tracked<T, group> *target, const T *source, bool reads) {
    if (reads) return eatss_copy_wide_ahead(target, source);
    for (int at = 0; at < (int)(16 / sizeof(T)); at++)
        eatss_copy_ahead(&target[at], source, false);
}
inline void eatss_commit_copies() { eatss::commit_copies(); }
template <int pending>
inline void eatss_wait_for_copies() { eatss::wait_for_copies(pending); }

// Blocks run one after another here: those that came before the last one have left their parts.
EATSS_UNSEEN inline bool eatss_comes_last(int *arrived, int number) {
    eatss::access((uintptr_t)arrived, sizeof(int), true, true);
    return ++*arrived == number;
}
template <class T>
EATSS_UNSEEN void eatss_leave_part(T *target, T value) {
    eatss::access((uintptr_t)target, sizeof(T), true, false);
    *target = value;
}
EATSS_UNSEEN inline void eatss_parts_are_there(int *arrived) {
    eatss::access((uintptr_t)(arrived + 1), sizeof(int), true, true);
    ++arrived[1];
    eatss::left_parts[eatss::n_left++] = {arrived, eatss::first_interval, eatss::interval - 1, 0};
}
EATSS_UNSEEN inline void eatss_wait_for_parts(int *arrived, int number) {
    eatss::access((uintptr_t)(arrived + 1), sizeof(int), true, true);
    if (arrived[1] != number - 1) {
        eatss::note(cudaErrorLaunchFailure, "barrier", "kernel %s: %d blocks left their parts of a sum of %d",
                    eatss::kernel_name, arrived[1], number);
        eatss::stop();
    }
    for (int k = 0; k < eatss::n_left; k++)
        if (eatss::left_parts[k].arrived == arrived) eatss::left_parts[k].joined_in = eatss::interval;
    arrived[0] = arrived[1] = 0;
}
// Warps run one after another here: the tile before is done.
namespace eatss {
EATSS_UNSEEN inline int next_tile(unsigned long *taken, int tiles, unsigned int &run) {
    run = (unsigned int)(*taken / tiles);
    if (current != 0) return 0;
    access((uintptr_t)taken, sizeof(long), true, true);
    return (int)((*taken)++ % tiles);
}
template <class T, class Combine>
EATSS_UNSEEN T before_tile(unsigned long *found, unsigned int run, int tile, int first, T own, T neutral, Combine combine) {
    if (current != 0) return neutral;
    union { T value; unsigned int word[sizeof(T) / 4]; } words;
    const int count = sizeof(T) / 4;
    T before = neutral;
    for (int k = 0; k < count && tile > first; k++) {
        const unsigned long *const place = found + (long)count * (tile - 1) + k;
        access((uintptr_t)place, sizeof(long), false, true);
        if (*place >> 32 != (unsigned int)(4 * run + 2)) {
            note(cudaErrorLaunchFailure, "barrier", "kernel %s: tile %d is not done where the next one looks back",
                 kernel_name, tile - 1);
            stop();
        }
        words.word[k] = (unsigned int)*place;
        before = words.value;
    }
    words.value = combine(before, own);
    for (int k = 0; k < count; k++) {
        unsigned long *const place = found + (long)count * tile + k;
        access((uintptr_t)place, sizeof(long), true, true);
        *place = (unsigned long)(unsigned int)(4 * run + 2) << 32 | words.word[k];
    }
    return before;
}
}
#define eatss_next_tile(taken, tiles, run) \
    eatss::shuffle(eatss::next_tile(taken, tiles, run), -(int)threadIdx.x, (int)eatss::WARP, __LINE__)
#define eatss_before_tile(found, run, tile, first, own, neutral, ...) \
    eatss::shuffle(eatss::before_tile(found, run, tile, first, own, neutral, __VA_ARGS__), \
                   -(int)threadIdx.x, (int)eatss::WARP, __LINE__)
template <class T>
EATSS_UNSEEN T eatss_peek(const T *source) {
    return *source;
}
template <class T>
EATSS_UNSEEN T eatss_part(const T *source) {
    eatss::access((uintptr_t)source, sizeof(T), false, false);
    return *source;
}

template <class T>
inline T eatss_larger(T one, typename eatss::Itself<T>::type other) { return other > one ? other : one; }
template <class T>
inline T eatss_smaller(T one, typename eatss::Itself<T>::type other) { return other < one ? other : one; }
inline float eatss_fmax(float one, float other) { return fmaxf(one, other); }
inline double eatss_fmax(double one, double other) { return fmax(one, other); }
inline float eatss_fmin(float one, float other) { return fminf(one, other); }
inline double eatss_fmin(double one, double other) { return fmin(one, other); }

#define EATSS_ATOMIC(name, combined)                              \
    template <class T, class U>                                   \
    EATSS_UNSEEN void eatss_atomic_##name(T *pointer, U given) {  \
        eatss::access((uintptr_t)pointer, sizeof(T), true, true); \
        T value = (T)given;                                       \
        *pointer = (T)(combined);                                 \
    }                                                             \
    template <class T, class U>                                   \
    void eatss_atomic_##name(T *pointer, U given, T seen) {       \
        T after = seen;                                           \
        eatss_atomic_##name(&after, given);                       \
        if (after != seen) eatss_atomic_##name(pointer, given);   \
    }
EATSS_ATOMIC(add, *pointer + value)
EATSS_ATOMIC(multiply, *pointer * value)
EATSS_ATOMIC(and, *pointer & value)
EATSS_ATOMIC(or, *pointer | value)
EATSS_ATOMIC(xor, *pointer ^ value)
EATSS_ATOMIC(max, value > *pointer ? value : *pointer)
EATSS_ATOMIC(min, value < *pointer ? value : *pointer)
EATSS_ATOMIC(fmax, value > *pointer || *pointer != *pointer ? value : *pointer)
EATSS_ATOMIC(fmin, value < *pointer || *pointer != *pointer ? value : *pointer)
#undef EATSS_ATOMIC

// What the compiler calls before every access.
#define EATSS_ACCESS(bytes)                                                                      \
    extern "C" EATSS_UNSEEN void __tsan_read##bytes(void *p) {                                   \
        eatss::access((uintptr_t)p, bytes, false, false);                                        \
    }                                                                                            \
    extern "C" EATSS_UNSEEN void __tsan_write##bytes(void *p) {                                  \
        eatss::access((uintptr_t)p, bytes, true, false);                                         \
    }                                                                                            \
    extern "C" EATSS_UNSEEN void __tsan_unaligned_read##bytes(void *p) { __tsan_read##bytes(p); } \
    extern "C" EATSS_UNSEEN void __tsan_unaligned_write##bytes(void *p) { __tsan_write##bytes(p); }
EATSS_ACCESS(1) EATSS_ACCESS(2) EATSS_ACCESS(4) EATSS_ACCESS(8) EATSS_ACCESS(16)
#undef EATSS_ACCESS
extern "C" EATSS_UNSEEN void __tsan_read_range(void *p, size_t bytes) {
    eatss::access((uintptr_t)p, bytes, false, false);
}
extern "C" EATSS_UNSEEN void __tsan_write_range(void *p, size_t bytes) {
    eatss::access((uintptr_t)p, bytes, true, false);
}

// What the compiler calls (-fsanitize=bounds-strict) where a subscript leaves an array of known size,
// in registers or in shared memory; what it passes starts with the place in the text.
struct eatss_place {
    const char *file;
    unsigned line, column;
};
extern "C" EATSS_UNSEEN void __ubsan_handle_out_of_bounds(void *what, uintptr_t subscript) {
    eatss::note(cudaErrorLaunchFailure, "memory", "kernel %s: subscript %ld in line %u leaves its array",
                eatss::kernel_name, (long)subscript, ((eatss_place *)what)->line);
    if (eatss::in_kernel) eatss::stop();
}

extern "C" EATSS_UNSEEN void __tsan_vptr_update(void **, void *) {}
extern "C" EATSS_UNSEEN void __tsan_vptr_read(void **) {}
extern "C" EATSS_UNSEEN void __tsan_init() {}
extern "C" EATSS_UNSEEN void __tsan_func_entry(void *) {}
extern "C" EATSS_UNSEEN void __tsan_func_exit() {}

// The runtime ------------------------------------------------------------------------------

struct eatss_allocation {
    size_t bytes, magic;
    unsigned char pad[240];
};

inline unsigned char eatss_canary(size_t k) { return (unsigned char)(0xa5 ^ k); }

// Memory that nobody wrote reads as NaN, or as -1; what stands beside it is remembered.
inline cudaError_t eatss_allocate(void **pointer, size_t bytes, size_t element) {
    *pointer = nullptr;
    if (eatss::dry) return cudaSuccess;
    const size_t guard = 256, whole = (sizeof(eatss_allocation) + bytes + guard + 255) / 256 * 256;
    unsigned char *memory = (long long)bytes < 0 ? nullptr : (unsigned char *)aligned_alloc(256, whole);
    if (!memory) {
        eatss::last_error = cudaErrorMemoryAllocation;
        return cudaErrorMemoryAllocation;
    }
    memset(memory, 0xff, whole);
    for (size_t k = 8; k < sizeof(eatss_allocation); k++) memory[k] = eatss_canary(k);
    for (size_t k = 0; k < guard; k++) memory[sizeof(eatss_allocation) + bytes + k] = eatss_canary(k);
    *(size_t *)memory = bytes;
    *pointer = memory + sizeof(eatss_allocation);
    eatss::watch("a temporary array", (uintptr_t)*pointer, bytes, guard, element);
    return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    return eatss_allocate((void **)pointer, bytes, sizeof(T));
}

inline cudaError_t cudaFree(void *pointer) {
    if (!pointer) return cudaSuccess;
    unsigned char *data = (unsigned char *)pointer, *memory = data - sizeof(eatss_allocation);
    size_t bytes = *(size_t *)memory;
    for (size_t k = 0; k < 256; k++)
        if (data[bytes + k] != eatss_canary(k) || (k >= 8 && memory[k] != eatss_canary(k))) {
            eatss::note(cudaErrorLaunchFailure, "memory",
                        "kernel %s or one before it writes outside a temporary array of %zu bytes",
                        eatss::kernel_name, bytes);
            break;
        }
    for (int k = 0; k < eatss::n_watched; k++)
        if (eatss::watched[k].begin == (uintptr_t)data) {
            eatss::unwatch(k);
            break;
        }
    free(memory);
    return cudaSuccess;
}

inline cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
    if (!eatss::dry) memset(pointer, value, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t) {
    return cudaMemset(pointer, value, bytes);
}
inline cudaError_t cudaDeviceSynchronize() { return eatss::last_error; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return eatss::last_error; }
inline cudaError_t cudaPeekAtLastError() { return eatss::last_error; }
inline cudaError_t cudaGetLastError() {
    cudaError_t error = eatss::last_error;
    if (error != cudaErrorLaunchFailure) eatss::last_error = cudaSuccess;
    return error;
}

template <class Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute, int bytes) {
    if (bytes < 0 || (size_t)bytes > eatss::SHARED_OPT_IN) {
        eatss::note(cudaErrorInvalidValue, "launch",
                    "%d bytes of dynamic shared memory asked for, a block has at most %zu", bytes,
                    eatss::SHARED_OPT_IN);
        return cudaErrorInvalidValue;
    }
    for (int k = 0; k < eatss::n_attributes; k++)
        if (eatss::attributes[k].kernel == (const void *)kernel) {
            eatss::attributes[k].bytes = (size_t)bytes;
            return cudaSuccess;
        }
    if (eatss::n_attributes < 256)
        eatss::attributes[eatss::n_attributes++] = {(const void *)kernel, (size_t)bytes};
    return cudaSuccess;
}

// The calls of a launcher. Here each has memory of its own, and is run as it comes.
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
        void *memory[256] = {};
        cudaError_t error = arrays.size() > 256 ? cudaErrorMemoryAllocation : cudaSuccess;
        size_t n = 0;
        for (const eatss_temporary &one : arrays) {
            const size_t bytes = one.element_bytes * one.elements;
            if (error == cudaSuccess) error = eatss_allocate(&memory[n], bytes, one.element_bytes);
            if (error == cudaSuccess && one.zeroed) cudaMemset(memory[n], 0, bytes);
            n += error == cudaSuccess;
        }
        if (error == cudaSuccess) {
            eatss_stream own = {stream};
            work(own, memory);
            error = cudaGetLastError();
        }
        while (n > 0) cudaFree(memory[--n]);
        return (int)error;
    }
    int free() { return cudaSuccess; }
};

// What the host of the verification calls ----------------------------------------------------

// The first error since the last reset, "kind: sentence", or null.
extern "C" const char *eatss_cpu_error() { return eatss::failed ? eatss::message : nullptr; }
// What was observed besides since the last reset: races, and reads beside arrays.
extern "C" const char *eatss_cpu_observed() { return *eatss::observed ? eatss::observed : nullptr; }
extern "C" void eatss_cpu_reset(int reversed, int dry) {
    eatss::failed = false;
    eatss::last_error = cudaSuccess;
    eatss::reversed = reversed;
    eatss::dry = dry;
    *eatss::observed = 0;
    while (eatss::n_watched) eatss::unwatch(eatss::n_watched - 1);
    eatss::lowest = UINTPTR_MAX;
    eatss::highest = 0;
}
// Watches accesses to an array with guard zones on both sides.
extern "C" void eatss_cpu_watch(const char *name, void *data, size_t bytes, size_t guard,
                                size_t element) {
    eatss::watch(name, (uintptr_t)data, bytes, guard, element);
}
extern "C" EATSS_UNSEEN uint64_t eatss_cpu_steps() { return eatss::steps; }
extern "C" EATSS_UNSEEN const uint64_t *eatss_cpu_taken() { return (const uint64_t *)eatss::taken; }
extern "C" EATSS_UNSEEN uint64_t eatss_cpu_blocks(const char *name) {
    for (int k = 0; k < eatss::n_kernels; k++)
        if (!strcmp(eatss::kernels[k].name, name)) return eatss::kernels[k].blocks;
    return 0;
}
