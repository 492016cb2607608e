#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4096
#endif
#ifndef M
#define M 4096
#endif
void kernel_prefix2d(DATA_TYPE Y[N][M], DATA_TYPE X[N][M]) {
    int i, j;
#pragma scop
    for (i = 1; i < N; i++)
        for (j = 1; j < M; j++)
            Y[i][j] = X[i][j] + Y[i - 1][j] + Y[i][j - 1] - Y[i - 1][j - 1];
#pragma endscop
}
