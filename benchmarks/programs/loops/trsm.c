/* L X = B for many right-hand sides, in place */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 2048
#endif
#ifndef M
#define M 4096
#endif
void kernel_trsm(DATA_TYPE X[N][M], DATA_TYPE L[N][N]) {
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            for (int k = 0; k < i; k++)
                X[i][j] -= L[i][k] * X[k][j];
            X[i][j] /= L[i][i];
        }
#pragma endscop
}
