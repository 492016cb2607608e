#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 4096
#endif
void kernel_rmsnorm(DATA_TYPE Y[N][M], DATA_TYPE X[N][M], DATA_TYPE g[M], DATA_TYPE s[N]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        s[i] = 0;
        for (j = 0; j < M; j++)
            s[i] += X[i][j] * X[i][j];
        for (j = 0; j < M; j++)
            Y[i][j] = X[i][j] / sqrtf(s[i] / M + 1e-5f) * g[j];
    }
#pragma endscop
}
