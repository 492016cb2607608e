#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 12000
#endif
#ifndef M
#define M 8000
#endif
void kernel_frobenius(DATA_TYPE r[1], DATA_TYPE X[N][M], DATA_TYPE Y[N][M]) {
    int i, j;
#pragma scop
    r[0] = 0;
    for (i = 0; i < N; i++)
        for (j = 0; j < M; j++)
            r[0] += X[i][j] * Y[i][j];
#pragma endscop
}
