/* layer normalisation of rows, with gain and bias */
#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef M
#define M 16384
#endif
#ifndef N
#define N 4096
#endif
void kernel_layernorm(DATA_TYPE y[M][N], DATA_TYPE x[M][N], DATA_TYPE g[N], DATA_TYPE b[N],
                      DATA_TYPE mean[M], DATA_TYPE var[M]) {
#pragma scop
    for (int i = 0; i < M; i++) {
        mean[i] = 0;
        for (int j = 0; j < N; j++)
            mean[i] += x[i][j];
        mean[i] /= N;
        var[i] = 0;
        for (int j = 0; j < N; j++)
            var[i] += (x[i][j] - mean[i]) * (x[i][j] - mean[i]);
        var[i] /= N;
        for (int j = 0; j < N; j++)
            y[i][j] = (x[i][j] - mean[i]) / sqrtf(var[i] + 1e-5f) * g[j] + b[j];
    }
#pragma endscop
}
