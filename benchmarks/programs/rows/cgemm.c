/* product of complex matrices, parts side by side in memory */
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef N
#define N 2048
#endif
void kernel_cgemm(DATA_TYPE C[N][N][2], DATA_TYPE A[N][N][2], DATA_TYPE B[N][N][2]) {
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            C[i][j][0] = 0;
            C[i][j][1] = 0;
            for (int k = 0; k < N; k++) {
                C[i][j][0] += A[i][k][0] * B[k][j][0] - A[i][k][1] * B[k][j][1];
                C[i][j][1] += A[i][k][0] * B[k][j][1] + A[i][k][1] * B[k][j][0];
            }
        }
#pragma endscop
}
