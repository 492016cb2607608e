#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4096
#endif
#ifndef M
#define M 4096
#endif
void kernel_thomaslines(DATA_TYPE X[M][N], DATA_TYPE C[M][N], DATA_TYPE A[M][N],
                        DATA_TYPE B[M][N]) {
    int i, j;
#pragma scop
    for (i = 0; i < M; i++) {
        C[i][0] = C[i][0] / B[i][0];
        X[i][0] = X[i][0] / B[i][0];
        for (j = 1; j < N; j++) {
            C[i][j] = C[i][j] / (B[i][j] - A[i][j] * C[i][j - 1]);
            X[i][j] = (X[i][j] - A[i][j] * X[i][j - 1]) / (B[i][j] - A[i][j] * C[i][j - 1]);
        }
        for (j = N - 2; j >= 0; j--)
            X[i][j] -= C[i][j] * X[i][j + 1];
    }
#pragma endscop
}
