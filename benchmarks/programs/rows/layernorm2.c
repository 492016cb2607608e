#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 2048
#endif
void kernel_layernorm2(DATA_TYPE Y[N][M], DATA_TYPE X[N][M], DATA_TYPE g[M], DATA_TYPE b[M],
                       DATA_TYPE s[N], DATA_TYPE q[N]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        s[i] = 0;
        q[i] = 0;
        for (j = 0; j < M; j++) {
            s[i] += X[i][j];
            q[i] += X[i][j] * X[i][j];
        }
        s[i] = s[i] / M;
        q[i] = q[i] / M - s[i] * s[i];
        for (j = 0; j < M; j++)
            Y[i][j] = (X[i][j] - s[i]) / sqrtf(q[i] + 1e-5f) * g[j] + b[j];
    }
#pragma endscop
}
