/*
 * jacobi-1d: three-point averaging of a line, TSTEPS times
 *
 *   B[i] = (A[i-1] + A[i] + A[i+1]) / 3,  A[i] = B[i]        0 < i < N - 1
 *
 * Each step computes the whole inner line from the previous one; the ends of A
 * stay as given.
 * Flops: 3 TSTEPS (N - 2).
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
#define TSTEPS SIZE(2, 10, 100, 1000, 1000, 100)
#endif
#ifndef N
#define N SIZE(500, 1000, 10000, 100000, 1000000, 4000000)
#endif

#define THIRD ((DATA_TYPE)0.33333333333333333)

void kernel_jacobi_1d(DATA_TYPE A[N], DATA_TYPE B[N])
{
    int t, i;

#pragma scop
    for (t = 0; t < TSTEPS; t++) {
        for (i = 1; i < N - 1; i++)
            B[i] = THIRD * (A[i - 1] + A[i] + A[i + 1]);
        for (i = 1; i < N - 1; i++)
            A[i] = B[i];
    }
#pragma endscop
}
