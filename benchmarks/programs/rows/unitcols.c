#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 20000
#endif
#ifndef M
#define M 2000
#endif
void kernel_unitcols(DATA_TYPE Y[N][M], DATA_TYPE X[N][M], DATA_TYPE s[M]) {
    int i, j;
#pragma scop
    for (j = 0; j < M; j++) {
        s[j] = 0;
        for (i = 0; i < N; i++)
            s[j] += X[i][j] * X[i][j];
        for (i = 0; i < N; i++)
            Y[i][j] = X[i][j] / sqrtf(s[j] + 1e-9f);
    }
#pragma endscop
}
