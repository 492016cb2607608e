// The CUDA runtime without a card: streams that do all at once, captures, graphs, pools, failures.
#pragma once
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define __host__
#define __device__
#define __forceinline__ inline

typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaDevAttrMemoryPoolsSupported = 115 };
enum { cudaMemAllocationTypePinned = 1, cudaMemLocationTypeDevice = 1, cudaMemPoolAttrReleaseThreshold = 4 };
struct cudaMemPoolProps {
    int allocType;
    struct {
        int type, id;
    } location;
};
struct dim3 {
    dim3(long = 1, long = 1, long = 1) {}
};

struct Graph {
    std::vector<std::function<void()>> steps;
    std::vector<void *> memory;
};
struct Stream {
    Graph *captured;
    bool global;
};
struct Replay {
    Graph *graph;
    bool busy;
};
typedef Stream *cudaStream_t;
typedef Graph *cudaGraph_t;
typedef Replay *cudaGraphExec_t;
typedef int *cudaEvent_t;
typedef int *cudaMemPool_t;

static std::recursive_mutex fake_lock;
static std::set<void *> held, alive; // what is to be given back, and memory that may be used
static std::string fake_log;
static int calls = 0, fails_at = 0, captures = 0, device = 0, pools_supported = 1;
static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

#define FAKE_CALL()                                        \
    const std::lock_guard<std::recursive_mutex> guard(fake_lock); \
    if (++calls == fails_at) return 700
// What would spoil a capture that another thread has begun.
#define FAKE_UNSAFE()                                      \
    FAKE_CALL();                                           \
    if (captures && mode != cudaStreamCaptureModeRelaxed) return cudaErrorStreamCaptureUnsupported

template <typename T> T *made(T *one)
{
    held.insert(one);
    return one;
}
template <typename T> int gone(T *one)
{
    if (!held.erase(one)) abort();
    delete one;
    return 0;
}
inline int cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *other)
{
    std::swap(mode, *other);
    return 0;
}
inline int cudaGetLastError() { FAKE_CALL(); return 0; }
inline int cudaGetDevice(int *number) { FAKE_CALL(); *number = device; return 0; }
inline int cudaDeviceGetAttribute(int *value, int, int) { FAKE_CALL(); *value = pools_supported; return 0; }
inline int cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    FAKE_CALL();
    const bool on = stream && stream->captured;
    *status = on ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return 0;
}
inline int cudaStreamCreateWithFlags(cudaStream_t *stream, int)
{
    FAKE_CALL();
    *stream = made(new Stream{nullptr, false});
    return 0;
}
inline int cudaStreamDestroy(cudaStream_t stream) { return gone(stream); }
inline int cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode how)
{
    FAKE_CALL();
    stream->captured = made(new Graph);
    stream->global = how != cudaStreamCaptureModeRelaxed;
    captures += stream->global;
    return 0;
}
inline int cudaGraphDestroy(cudaGraph_t graph)
{
    for (void *one : graph->memory) std::free(one);
    return gone(graph);
}
inline int cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const std::lock_guard<std::recursive_mutex> guard(fake_lock);
    captures -= stream->global;
    *graph = stream->captured;
    stream->captured = nullptr;
    if (++calls != fails_at) return 0;
    cudaGraphDestroy(*graph);
    *graph = nullptr;
    return 700;
}
inline int cudaGraphInstantiateWithFlags(cudaGraphExec_t *replay, cudaGraph_t graph, int)
{
    FAKE_CALL();
    *replay = made(new Replay{graph, false});
    return 0;
}
inline int cudaGraphExecDestroy(cudaGraphExec_t replay) { return gone(replay); }
inline int cudaGraphLaunch(cudaGraphExec_t replay, cudaStream_t stream)
{
    if (replay->busy) abort(); // not to be launched by two threads at once
    struct Busy {
        bool &flag;
        ~Busy() { flag = false; }
    } busy = {replay->busy = true};
    std::this_thread::sleep_for(std::chrono::microseconds(10));
    FAKE_CALL();
    if (stream && stream->captured) abort();
    fake_log += "graph ";
    for (const auto &step : replay->graph->steps) step();
    return 0;
}
inline int cudaEventCreateWithFlags(cudaEvent_t *event, int) { FAKE_CALL(); *event = made(new int(0)); return 0; }
inline int cudaEventDestroy(cudaEvent_t event) { return gone(event); }
inline int cudaEventRecord(cudaEvent_t event, cudaStream_t) { FAKE_CALL(); ++*event; return 0; }
inline int cudaEventSynchronize(cudaEvent_t) { FAKE_UNSAFE(); fake_log += "wait "; return 0; }
inline int cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *made_for)
{
    FAKE_CALL();
    *pool = made(new int(made_for->location.id));
    return 0;
}
inline int cudaMemPoolSetAttribute(cudaMemPool_t, int, void *bytes)
{
    FAKE_CALL();
    return *(unsigned long long *)bytes == ~0ULL ? 0 : 1;
}
inline int cudaMemPoolDestroy(cudaMemPool_t pool) { FAKE_CALL(); return gone(pool); }

inline void enqueue(cudaStream_t stream, std::function<void()> step)
{
    const std::lock_guard<std::recursive_mutex> guard(fake_lock);
    if (stream && stream->captured) stream->captured->steps.push_back(step);
    else step();
}
inline void begin(char *memory, size_t bytes)
{
    memset(memory, 0xff, bytes);
    if (!alive.insert(memory).second) abort();
}
inline void end(char *memory) { if (!alive.erase(memory)) abort(); }
inline int cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    FAKE_CALL();
    if (*pool != device) abort();
    char *memory = (char *)malloc(bytes);
    if (stream && stream->captured) stream->captured->memory.push_back(memory);
    else held.insert(memory);
    enqueue(stream, [=] { begin(memory, bytes); });
    *pointer = memory;
    return 0;
}
inline int cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    const std::lock_guard<std::recursive_mutex> guard(fake_lock);
    enqueue(stream, [=] { end((char *)pointer); });
    if (!stream || !stream->captured) {
        if (!held.erase(pointer)) abort();
        free(pointer);
    }
    return ++calls == fails_at ? 700 : 0;
}
inline int cudaMalloc(void **pointer, size_t bytes)
{
    FAKE_UNSAFE();
    *pointer = malloc(bytes);
    held.insert(*pointer);
    begin((char *)*pointer, bytes);
    fake_log += "malloc ";
    return 0;
}
inline int cudaFree(void *pointer)
{
    end((char *)pointer);
    held.erase(pointer);
    free(pointer);
    return 0;
}
inline int cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    FAKE_CALL();
    enqueue(stream, [=] { memset(pointer, value, bytes); });
    return 0;
}
template <typename Call> void launched(cudaStream_t stream, Call call)
{
    enqueue(stream, [=] { fake_log += "k"; call(); });
}

extern "C" const char *fake_told(int fails, int on, int pools)
{
    static std::string told;
    told = fake_log;
    fake_log.clear();
    calls = 0, fails_at = fails, device = on, pools_supported = pools;
    return told.c_str();
}
extern "C" int fake_held() { return (int)(held.size() + alive.size()) + 1000 * (mode != cudaStreamCaptureModeGlobal); }
extern "C" int fake_calls() { return calls; }
extern "C" Stream *fake_stream() { return new Stream{nullptr, false}; }
extern "C" void fake_capture(Stream *stream) { cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); }
extern "C" Graph *fake_captured(Stream *stream)
{
    Graph *graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    return graph;
}
extern "C" void fake_replay(Graph *graph)
{
    for (const auto &step : graph->steps) step();
}
extern "C" void fake_destroy(Graph *graph) { cudaGraphDestroy(graph); }
