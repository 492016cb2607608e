#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 65536
#endif
#ifndef M
#define M 512
#endif
void kernel_cosines(DATA_TYPE r[N], DATA_TYPE p[N], DATA_TYPE q[N], DATA_TYPE d[N],
                    DATA_TYPE X[N][M], DATA_TYPE Y[N][M]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        p[i] = 0;
        q[i] = 0;
        d[i] = 0;
        for (j = 0; j < M; j++) {
            p[i] += X[i][j] * X[i][j];
            q[i] += Y[i][j] * Y[i][j];
            d[i] += X[i][j] * Y[i][j];
        }
        r[i] = d[i] / sqrtf(p[i] * q[i] + 1e-9f);
    }
#pragma endscop
}
