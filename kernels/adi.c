/*
 * adi: alternating-direction sweeps over a plane, TSTEPS steps
 *
 * Each step first eliminates along every row,
 *
 *   X[i][j] -= X[i][j-1] A[i][j] / B[i][j-1]       0 < j
 *   B[i][j] -= A[i][j]^2 / B[i][j-1]               0 < j
 *   X[i][N-1] /= B[i][N-1]
 *
 * and sweeps the row backwards, j = N - 2 down to 1, over entries of X that the
 * backward sweep itself has not reached yet,
 *
 *   X[i][j] = (X[i][j] - X[i][j-1] A[i][j-1]) / B[i][j-1]
 *
 * and then does the same along every column, there with
 *
 *   X[i][j] = (X[i][j] - X[i-1][j] A[i-1][j]) / B[i][j]   i = N - 2 down to 1.
 *
 * X, A, B are N x N. These are the recurrences of PolyBench 3.2, whose backward
 * sweep is not the substitution of a tridiagonal solver.
 * Flops: TSTEPS (12 N (N - 1) + 2 N + 6 N (N - 2)).
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
#define TSTEPS SIZE(2, 10, 50, 50, 100, 2)
#endif
#ifndef N
#define N SIZE(32, 500, 1024, 2000, 4000, 4000)
#endif

void kernel_adi(DATA_TYPE X[N][N], DATA_TYPE A[N][N], DATA_TYPE B[N][N])
{
    int t, i, j;

#pragma scop
    for (t = 0; t < TSTEPS; t++) {
        /* along the rows */
        for (i = 0; i < N; i++)
            for (j = 1; j < N; j++) {
                X[i][j] = X[i][j] - X[i][j - 1] * A[i][j] / B[i][j - 1];
                B[i][j] = B[i][j] - A[i][j] * A[i][j] / B[i][j - 1];
            }
        for (i = 0; i < N; i++)
            X[i][N - 1] = X[i][N - 1] / B[i][N - 1];
        for (i = 0; i < N; i++)
            for (j = 0; j < N - 2; j++)
                X[i][N - 2 - j]
                    = (X[i][N - 2 - j] - X[i][N - 3 - j] * A[i][N - 3 - j]) / B[i][N - 3 - j];

        /* along the columns */
        for (i = 1; i < N; i++)
            for (j = 0; j < N; j++) {
                X[i][j] = X[i][j] - X[i - 1][j] * A[i][j] / B[i - 1][j];
                B[i][j] = B[i][j] - A[i][j] * A[i][j] / B[i - 1][j];
            }
        for (j = 0; j < N; j++)
            X[N - 1][j] = X[N - 1][j] / B[N - 1][j];
        for (i = 0; i < N - 2; i++)
            for (j = 0; j < N; j++)
                X[N - 2 - i][j]
                    = (X[N - 2 - i][j] - X[N - 3 - i][j] * A[N - 3 - i][j]) / B[N - 2 - i][j];
    }
#pragma endscop
}
