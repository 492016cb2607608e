#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 800
#endif
void kernel_matrixchain(DATA_TYPE M[N][N], DATA_TYPE p[N + 1]) {
    int i, k, l;
#pragma scop
    for (i = 0; i < N; i++)
        M[i][i] = 0;
    for (l = 1; l < N; l++)
        for (i = 0; i < N - l; i++) {
            M[i][i + l] = 1e30;
            for (k = i; k < i + l; k++)
                M[i][i + l] =
                    fmin(M[i][i + l], M[i][k] + M[k + 1][i + l] + p[i] * p[k + 1] * p[i + l + 1]);
        }
#pragma endscop
}
