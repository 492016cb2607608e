/*
 * heat-3d: explicit heat equation in a cube, TSTEPS steps of two sweeps
 *
 *   B = A + 1/8 (second differences of A in i, j and k)
 *   A = B + 1/8 (second differences of B in i, j and k)      0 < i, j, k < N - 1
 *
 * where the second difference of A in i is A[i+1] - 2 A[i] + A[i-1]. A and B are
 * N x N x N; their borders stay as given.
 * Flops: 30 TSTEPS (N - 2)^3.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#if defined(MINI_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) mini
#elif defined(SMALL_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) small
#elif defined(STANDARD_DATASET) || defined(MEDIUM_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) standard
#elif defined(LARGE_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) large
#elif defined(EXTRALARGE_DATASET)
#define SIZE(mini, small, standard, large, extralarge, usual) extralarge
#else
#define SIZE(mini, small, standard, large, extralarge, usual) usual
#endif

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000, 20)
#endif
#ifndef N
#define N SIZE(10, 20, 40, 120, 200, 200)
#endif

#define EIGHTH ((DATA_TYPE)0.125)

void kernel_heat_3d(DATA_TYPE A[N][N][N], DATA_TYPE B[N][N][N])
{
    int t, i, j, k;

#pragma scop
    for (t = 1; t <= TSTEPS; t++) {
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                for (k = 1; k < N - 1; k++)
                    B[i][j][k]
                        = EIGHTH * (A[i + 1][j][k] - 2 * A[i][j][k] + A[i - 1][j][k])
                          + EIGHTH * (A[i][j + 1][k] - 2 * A[i][j][k] + A[i][j - 1][k])
                          + EIGHTH * (A[i][j][k + 1] - 2 * A[i][j][k] + A[i][j][k - 1])
                          + A[i][j][k];
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                for (k = 1; k < N - 1; k++)
                    A[i][j][k]
                        = EIGHTH * (B[i + 1][j][k] - 2 * B[i][j][k] + B[i - 1][j][k])
                          + EIGHTH * (B[i][j + 1][k] - 2 * B[i][j][k] + B[i][j - 1][k])
                          + EIGHTH * (B[i][j][k + 1] - 2 * B[i][j][k] + B[i][j][k - 1])
                          + B[i][j][k];
    }
#pragma endscop
}
