#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 8192
#endif
void kernel_emarows(DATA_TYPE Y[N][M], DATA_TYPE X[N][M]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        Y[i][0] = X[i][0];
        for (j = 1; j < M; j++)
            Y[i][j] = 0.9f * Y[i][j - 1] + 0.1f * X[i][j];
    }
#pragma endscop
}
