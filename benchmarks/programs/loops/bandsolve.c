#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 20000
#endif
#ifndef W
#define W 32
#endif
#ifndef M
#define M 64
#endif
void kernel_bandsolve(DATA_TYPE X[N][M], DATA_TYPE L[N][W + 1]) {
    int i, j, k;
#pragma scop
    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++) {
            for (k = 0; k < W; k++)
                if (i - W + k >= 0)
                    X[i][j] -= L[i][k] * X[i - W + k][j];
            X[i][j] /= L[i][W];
        }
#pragma endscop
}
