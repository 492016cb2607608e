/*
 * lu: LU decomposition in place, without pivoting, the row of U scaled first
 *
 *   A = L U     L lower triangular, U upper triangular with unit diagonal
 *
 * Step k divides row k of U by the pivot A[k][k], then subtracts the product of
 * column k of L and row k of U from what lies to the right and below. L (with
 * its diagonal) is left in the lower triangle of A, U above the diagonal.
 * Flops: N (N - 1) / 2 + N (N - 1) (2 N - 1) / 3; about 2/3 N^3.
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

#ifndef N
#define N SIZE(32, 128, 1024, 2000, 4000, 2000)
#endif

void kernel_lu(DATA_TYPE A[N][N])
{
    int i, j, k;

#pragma scop
    for (k = 0; k < N; k++) {
        for (j = k + 1; j < N; j++)
            A[k][j] = A[k][j] / A[k][k];
        for (i = k + 1; i < N; i++)
            for (j = k + 1; j < N; j++)
                A[i][j] = A[i][j] - A[i][k] * A[k][j];
    }
#pragma endscop
}
