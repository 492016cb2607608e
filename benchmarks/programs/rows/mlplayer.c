#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 4096
#endif
#ifndef M
#define M 4096
#endif
#ifndef K
#define K 1024
#endif
void kernel_mlplayer(DATA_TYPE Y[N][M], DATA_TYPE X[N][K], DATA_TYPE W[K][M], DATA_TYPE b[M]) {
    int i, j, k;
#pragma scop
    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++) {
            Y[i][j] = 0;
            for (k = 0; k < K; k++)
                Y[i][j] += X[i][k] * W[k][j];
        }
    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++)
            Y[i][j] = fmaxf(Y[i][j] + b[j], 0.0f);
#pragma endscop
}
