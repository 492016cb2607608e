#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1000
#endif
void kernel_ldlt(DATA_TYPE A[N][N]) {
    int i, j, k;
#pragma scop
    for (k = 0; k < N; k++)
        for (i = k + 1; i < N; i++) {
            for (j = k + 1; j <= i; j++)
                A[i][j] -= A[i][k] * A[j][k] / A[k][k];
        }
    for (k = 0; k < N; k++)
        for (i = k + 1; i < N; i++)
            A[i][k] /= A[k][k];
#pragma endscop
}
