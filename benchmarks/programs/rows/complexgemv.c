#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 8192
#endif
void kernel_complexgemv(DATA_TYPE yr[N], DATA_TYPE yi[N], DATA_TYPE Ar[N][M], DATA_TYPE Ai[N][M],
                        DATA_TYPE xr[M], DATA_TYPE xi[M]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        yr[i] = 0;
        yi[i] = 0;
        for (j = 0; j < M; j++) {
            yr[i] += Ar[i][j] * xr[j] - Ai[i][j] * xi[j];
            yi[i] += Ar[i][j] * xi[j] + Ai[i][j] * xr[j];
        }
    }
#pragma endscop
}
