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
void kernel_crossentropy(DATA_TYPE r[N], DATA_TYPE most[N], DATA_TYPE s[N], DATA_TYPE c[N],
                         DATA_TYPE X[N][M], DATA_TYPE P[N][M]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        most[i] = X[i][0];
        for (j = 1; j < M; j++)
            most[i] = fmaxf(most[i], X[i][j]);
        s[i] = 0;
        c[i] = 0;
        for (j = 0; j < M; j++) {
            s[i] += expf(X[i][j] - most[i]);
            c[i] += P[i][j] * X[i][j];
        }
        r[i] = most[i] + logf(s[i]) - c[i];
    }
#pragma endscop
}
