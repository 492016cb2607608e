#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4000
#endif
#ifndef M
#define M 4000
#endif
void kernel_runproducts(DATA_TYPE Y[N][M], DATA_TYPE X[N][M])
{
    int i, j, k, l, m;
#pragma scop
    for (j = 0; j < M; j++) Y[0][j] = X[0][j];
    for (i = 1; i < N; i++) for (j = 0; j < M; j++) Y[i][j] = 0.5 * Y[i - 1][j] * X[i][j] + X[i][j];
#pragma endscop
}
