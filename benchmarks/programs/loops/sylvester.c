#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 400
#endif
void kernel_sylvester(DATA_TYPE X[N][N], DATA_TYPE L[N][N], DATA_TYPE U[N][N]) {
    int i, j, k;
#pragma scop
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
            for (k = 0; k < i; k++)
                X[i][j] -= L[i][k] * X[k][j];
            for (k = 0; k < j; k++)
                X[i][j] -= X[i][k] * U[k][j];
            X[i][j] /= L[i][i] + U[j][j];
        }
#pragma endscop
}
