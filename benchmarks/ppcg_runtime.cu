/*
 * Runs programs that PPCG wrote, one after the other, each again and again, its device part only.
 *
 * The first call of a function allocates, fills the arrays that it uploads with seeded numbers
 * on the card, and remembers which array of the card is which argument. Later calls get the same
 * memory in the same order and copy nothing, unless eatss_load was told that the host works too.
 * Libraries of programs are linked against this one.
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST 64
#define MOST_HELD 1024
#define CHUNKS 4096
#define SAMPLES 16384

struct Array {
    void *host, *device;
    long long count, columns, rows, longest;
    int size, flavour, number, uploaded, downloaded;
};

static Array arrays[MOST];
static int array_count;
static void *arguments[MOST];
static struct { void *pointer; size_t bytes; } allocations[MOST];
static struct { void *pointer; size_t bytes; int used; } held[MOST_HELD];
static int holding, allocated, next_allocation, first = 1, host_works, repeated, out_of_step;
static cudaError_t launch_error;
static cudaEvent_t begin, end;
static void (*call)(void **arguments);

__host__ __device__ static unsigned long long mixed(unsigned long long x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

template <class T> __global__ void fill(T *to, Array array)
{
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < array.count; i += step) {
        unsigned long long bits = mixed(i ^ ((unsigned long long)(array.number + 1) << 48));
        double value = 0.5 + (double)(bits >> 11) * (1.0 / 9007199254740992.0);
        if (array.flavour == 1 && (i / array.columns) % array.rows == i % array.columns)
            value += 2.0 * array.longest;
        if (array.flavour == 2)
            value /= array.longest;
        to[i] = (T)value;
    }
}

template <class T> __global__ void sums(const T *from, long long count, double *to)
{
    __shared__ double total[256], absolute[256];
    long long chunk = (count + CHUNKS - 1) / CHUNKS, begin = chunk * blockIdx.x, end = begin + chunk;
    double mine = 0, mine_absolute = 0;
    for (long long i = begin + threadIdx.x; i < end && i < count; i += 256) {
        mine += from[i];
        mine_absolute += fabs((double)from[i]);
    }
    total[threadIdx.x] = mine;
    absolute[threadIdx.x] = mine_absolute;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            total[threadIdx.x] += total[threadIdx.x + half];
            absolute[threadIdx.x] += absolute[threadIdx.x + half];
        }
    }
    if (!threadIdx.x) {
        to[blockIdx.x] = total[0];
        to[CHUNKS + blockIdx.x] = absolute[0];
    }
}

template <class T> __global__ void samples(const T *from, long long count, double *to)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < SAMPLES)
        to[k] = from[mixed(k) % count];
}

__global__ void burn(double *to, int rounds)
{
    double a = threadIdx.x, b = 1.0 - 1e-9, c = 1e-9, d = a + 1, e = a + 2, f = a + 3;
    for (int i = 0; i < rounds; i++) {
        a = a * b + c;
        d = d * b + c;
        e = e * b + c;
        f = f * b + c;
    }
    if (a + d + e + f == 12345.678)
        *to = a;
}

static void filled(Array &array)
{
    if (array.size == 8)
        fill<<<2048, 256>>>((double *)array.device, array);
    else
        fill<<<2048, 256>>>((float *)array.device, array);
}

static Array *found(const void *host)
{
    for (int i = 0; i < array_count; i++)
        if (arrays[i].host == host)
            return &arrays[i];
    return NULL;
}

extern "C" cudaError_t eatss_malloc(void **pointer, size_t bytes)
{
    if (!first) {
        if (next_allocation >= allocated || allocations[next_allocation].bytes != bytes) {
            out_of_step = 1;
            return cudaErrorInvalidValue;
        }
        *pointer = allocations[next_allocation++].pointer;
        return cudaSuccess;
    }
    if (allocated == MOST)
        return cudaErrorMemoryAllocation;
    /* memory of the programs before is taken over: to allocate it takes longer than many runs */
    int at = 0;
    while (at < holding && (held[at].used || held[at].bytes != bytes))
        at++;
    if (at == holding) {
        if (holding == MOST_HELD)
            return cudaErrorMemoryAllocation;
        cudaError_t error = cudaMalloc(&held[at].pointer, bytes);
        if (error != cudaSuccess)
            return error;
        held[at].bytes = bytes;
        holding++;
    }
    held[at].used = 1;
    *pointer = allocations[allocated].pointer = held[at].pointer;
    allocations[allocated++].bytes = bytes;
    return cudaMemset(*pointer, 0, bytes);
}

extern "C" cudaError_t eatss_memcpy(void *to, const void *from, size_t bytes, int kind)
{
    bool up = kind == cudaMemcpyHostToDevice;
    Array *array = found(up ? from : to);
    if (first && array) {
        if (up ? array->uploaded : array->downloaded)
            repeated = 1;
        array->device = up ? to : (void *)from;
        /* PPCG allocates only as many leading planes of an array as the region touches */
        if ((long long)(bytes / array->size) < array->count)
            array->count = bytes / array->size;
        (up ? array->uploaded : array->downloaded) = 1;
        if (up && !host_works)
            filled(*array);
    }
    cudaError_t error = cudaSuccess;
    if (host_works || (first && !array))
        error = cudaMemcpy(to, from, bytes, (cudaMemcpyKind)kind);
    if (first && up && !host_works)
        cudaEventRecord(begin); /* the first run begins when its memory is ready */
    return error;
}

extern "C" cudaError_t eatss_free(void *pointer)
{
    return cudaSuccess;
}

/* The first launch that was refused is an answer of eatss_timed. */
extern "C" cudaError_t eatss_launched(void)
{
    cudaError_t error = cudaGetLastError();
    if (launch_error == cudaSuccess)
        launch_error = error;
    return cudaSuccess;
}

extern "C" int eatss_open(void)
{
    cudaError_t error = cudaEventCreate(&begin);
    return (int)(error == cudaSuccess ? cudaEventCreate(&end) : error);
}

/* Begin with another program. The host's memory holds the same numbers where the host works. */
extern "C" void eatss_load(void (*program)(void **), int host)
{
    call = program;
    host_works = host;
    array_count = allocated = next_allocation = repeated = out_of_step = 0;
    first = 1;
    launch_error = cudaSuccess;
    for (int i = 0; i < holding; i++)
        held[i].used = 0;
}

extern "C" const char *eatss_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

extern "C" void eatss_scalar(int position, void *address)
{
    arguments[position] = address;
}

extern "C" int eatss_array(
    int position, void *host, int size, long long count, long long rows, long long columns,
    long long longest, int flavour)
{
    Array array = {host, NULL, count, columns, rows, longest, size, flavour, position, 0, 0};
    arguments[position] = host;
    if (host_works) {
        cudaError_t error = cudaMalloc(&array.device, count * size);
        if (error != cudaSuccess)
            return (int)error;
        filled(array);
        error = cudaMemcpy(host, array.device, count * size, cudaMemcpyDeviceToHost);
        cudaFree(array.device);
        array.device = NULL;
        if (error != cudaSuccess)
            return (int)error;
    }
    arrays[array_count++] = array;
    return 0;
}

/* Make the arrays that a run reads and writes what they were. */
static void restored(void)
{
    for (int i = 0; i < array_count; i++)
        if (arrays[i].uploaded && arrays[i].downloaded)
            filled(arrays[i]);
}

extern "C" int eatss_restore(void)
{
    if (!host_works)
        restored();
    return (int)cudaDeviceSynchronize();
}

extern "C" long long eatss_restored_bytes(void)
{
    long long bytes = 0;
    for (int i = 0; i < array_count; i++)
        if (arrays[i].uploaded && arrays[i].downloaded)
            bytes += arrays[i].count * arrays[i].size;
    return bytes;
}

/* Runs, and the milliseconds by the card's events; returns an error. */
extern "C" int eatss_timed(int runs, int restoring, float *milliseconds)
{
    cudaEventRecord(begin);
    for (int run = 0; run < runs; run++) {
        if (restoring && !host_works)
            restored();
        next_allocation = 0;
        call(arguments);
        first = 0;
    }
    cudaEventRecord(end);
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = launch_error;
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(milliseconds, begin, end);
    return out_of_step ? -1 : repeated && !host_works ? -2 : (int)error;
}

/* Sums and absolute sums of pieces, and single elements; 0 if the array is not a result. */
extern "C" int eatss_digest(int number, double *to)
{
    Array &array = arrays[number];
    if (!array.downloaded)
        return 0;
    double *room;
    if (cudaMalloc(&room, (2 * CHUNKS + SAMPLES) * sizeof(double)) != cudaSuccess)
        return -1;
    if (array.size == 8) {
        sums<<<CHUNKS, 256>>>((double *)array.device, array.count, room);
        samples<<<SAMPLES / 256, 256>>>((double *)array.device, array.count, room + 2 * CHUNKS);
    } else {
        sums<<<CHUNKS, 256>>>((float *)array.device, array.count, room);
        samples<<<SAMPLES / 256, 256>>>((float *)array.device, array.count, room + 2 * CHUNKS);
    }
    cudaError_t error = cudaMemcpy(
        to, room, (2 * CHUNKS + SAMPLES) * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(room);
    return error == cudaSuccess ? 1 : -1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

extern "C" int eatss_burn(double lasting)
{
    double end = seconds() + lasting, *room;
    cudaError_t error = cudaMalloc(&room, sizeof(double));
    while (error == cudaSuccess && seconds() < end) {
        burn<<<132 * 8, 256>>>(room, 200000);
        error = cudaDeviceSynchronize();
    }
    cudaFree(room);
    return (int)error;
}
