/* star of radius four in three dimensions */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 320
#endif

void kernel_star25(DATA_TYPE B[N][N][N], DATA_TYPE A[N][N][N])
{
#pragma scop
    for (int i = 4; i < N - 4; i++)
        for (int j = 4; j < N - 4; j++)
            for (int k = 4; k < N - 4; k++)
                B[i][j][k] = 0.5 * A[i][j][k]
                    + 0.1 * (A[i - 1][j][k] + A[i + 1][j][k] + A[i][j - 1][k] + A[i][j + 1][k] + A[i][j][k - 1] + A[i][j][k + 1])
                    + 0.05 * (A[i - 2][j][k] + A[i + 2][j][k] + A[i][j - 2][k] + A[i][j + 2][k] + A[i][j][k - 2] + A[i][j][k + 2])
                    + 0.02 * (A[i - 3][j][k] + A[i + 3][j][k] + A[i][j - 3][k] + A[i][j + 3][k] + A[i][j][k - 3] + A[i][j][k + 3])
                    + 0.01 * (A[i - 4][j][k] + A[i + 4][j][k] + A[i][j - 4][k] + A[i][j + 4][k] + A[i][j][k - 4] + A[i][j][k + 4]);
#pragma endscop
}
