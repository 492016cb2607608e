#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 32768
#endif
#ifndef M
#define M 2048
#endif
void kernel_colmax(DATA_TYPE r[M], DATA_TYPE X[N][M]) {
    int i, j;
#pragma scop
    for (j = 0; j < M; j++) {
        r[j] = X[0][j];
        for (i = 1; i < N; i++)
            r[j] = fmaxf(r[j], X[i][j]);
    }
#pragma endscop
}
