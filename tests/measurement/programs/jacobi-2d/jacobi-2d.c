/*
 * jacobi-2d: five-point averaging of a plane, TSTEPS times
 *
 *   B[i][j] = (A[i][j] + A[i][j-1] + A[i][j+1] + A[i+1][j] + A[i-1][j]) / 5
 *   A[i][j] = B[i][j]                                0 < i, j < N - 1
 *
 * Each step computes the whole inner plane from the previous one; the border of
 * A stays as given.
 * Flops: 5 TSTEPS (N - 2)^2.
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
#define TSTEPS SIZE(2, 10, 20, 20, 100, 20)
#endif
#ifndef N
#define N SIZE(32, 500, 1000, 2000, 4000, 4000)
#endif

void kernel_jacobi_2d(DATA_TYPE A[N][N], DATA_TYPE B[N][N])
{
    int t, i, j;

#pragma scop
    for (t = 0; t < TSTEPS; t++) {
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                B[i][j] = (DATA_TYPE)0.2
                          * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                A[i][j] = B[i][j];
    }
#pragma endscop
}
