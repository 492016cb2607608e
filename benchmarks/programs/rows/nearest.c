/* squared distance to the nearest of M points */
#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 16384
#endif
#ifndef K
#define K 32
#endif
void kernel_nearest(DATA_TYPE best[N], DATA_TYPE X[N][K], DATA_TYPE Y[M][K]) {
#pragma scop
    for (int i = 0; i < N; i++) {
        best[i] = 1e30f;
        for (int j = 0; j < M; j++) {
            DATA_TYPE d = 0;
            for (int k = 0; k < K; k++)
                d += (X[i][k] - Y[j][k]) * (X[i][k] - Y[j][k]);
            best[i] = fminf(best[i], d);
        }
    }
#pragma endscop
}
