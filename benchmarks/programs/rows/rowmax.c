#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 32768
#endif
#ifndef M
#define M 4096
#endif
void kernel_rowmax(DATA_TYPE r[N], DATA_TYPE X[N][M]) {
    int i, j;
#pragma scop
    for (i = 0; i < N; i++) {
        r[i] = X[i][0];
        for (j = 1; j < M; j++)
            if (X[i][j] > r[i])
                r[i] = X[i][j];
    }
#pragma endscop
}
