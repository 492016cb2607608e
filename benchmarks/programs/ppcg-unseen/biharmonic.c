/* thirteen points of the biharmonic operator */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 5000
#endif

void kernel_biharmonic(DATA_TYPE B[N][N], DATA_TYPE A[N][N])
{
#pragma scop
    for (int i = 2; i < N - 2; i++)
        for (int j = 2; j < N - 2; j++)
            B[i][j] = 20 * A[i][j] - 8 * (A[i - 1][j] + A[i + 1][j] + A[i][j - 1] + A[i][j + 1])
                + 2 * (A[i - 1][j - 1] + A[i - 1][j + 1] + A[i + 1][j - 1] + A[i + 1][j + 1])
                + A[i - 2][j] + A[i + 2][j] + A[i][j - 2] + A[i][j + 2];
#pragma endscop
}
