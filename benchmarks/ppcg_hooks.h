/* Comes before the text that PPCG wrote: its calls for memory go to ppcg_runtime.cu, and what a
 * launch returns, since PPCG's own check would end the process. */
#include <cuda_runtime.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>

extern "C" cudaError_t eatss_malloc(void **pointer, size_t bytes);
extern "C" cudaError_t eatss_memcpy(void *to, const void *from, size_t bytes, int kind);
extern "C" cudaError_t eatss_free(void *pointer);
extern "C" cudaError_t eatss_launched(void);

#define cudaMalloc(pointer, bytes) eatss_malloc((void **)(pointer), (bytes))
#define cudaMemcpy(to, from, bytes, kind) eatss_memcpy((void *)(to), (from), (bytes), (kind))
#define cudaFree(pointer) eatss_free((void *)(pointer))
#define cudaGetLastError() eatss_launched()
#define cudaDeviceSynchronize() cudaSuccess

/* An argument of the original function, of whatever type it is declared with. */
struct EatssArgument {
    void *address;
    template <class T> operator T *() const { return (T *)address; }
    operator double() const { return *(double *)address; }
    operator float() const { return *(float *)address; }
};
