/*
 * seidel-2d: nine-point averaging of a plane in place, TSTEPS times
 *
 *   A[i][j] = 1/9 sum of A over the 3 x 3 block around (i, j)
 *                                                    0 < i, j < N - 1
 *
 * in row order, so a point sees its upper and left neighbours already averaged.
 * A is N x N; its border stays as given.
 * Flops: 9 TSTEPS (N - 2)^2.
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
#define TSTEPS SIZE(2, 10, 20, 20, 100, 2)
#endif
#ifndef N
#define N SIZE(32, 500, 1000, 2000, 4000, 1000)
#endif

void kernel_seidel_2d(DATA_TYPE A[N][N])
{
    int t, i, j;

#pragma scop
    for (t = 0; t < TSTEPS; t++)
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j]
                           + A[i][j + 1] + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1])
                          / 9;
#pragma endscop
}
