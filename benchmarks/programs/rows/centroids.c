#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 65536
#endif
#ifndef K
#define K 256
#endif
#ifndef D
#define D 16
#endif
void kernel_centroids(DATA_TYPE best[N], DATA_TYPE X[N][D], DATA_TYPE C[K][D]) {
    int i, j, k;
#pragma scop
    for (i = 0; i < N; i++) {
        best[i] = 1e30f;
        for (j = 0; j < K; j++) {
            DATA_TYPE e = 0;
            for (k = 0; k < D; k++)
                e += (X[i][k] - C[j][k]) * (X[i][k] - C[j][k]);
            best[i] = fminf(best[i], e);
        }
    }
#pragma endscop
}
