/*
 * cholesky: Cholesky factor of a symmetric positive definite matrix
 *
 *   A = L L^T
 *
 *   x[i][j] = A[i][j] - sum over k < i of L[j][k] L[i][k]    i <= j
 *   p[i]    = 1 / sqrt(x[i][i])                              (= 1 / L[i][i])
 *   L[j][i] = x[i][j] p[i]                                   i < j
 *
 * A is N x N; its upper triangle with the diagonal is read, L below the diagonal
 * is left in its lower triangle, the reciprocal diagonal of L in p. x is
 * workspace: one element for each partial sum, so that the sums of one column
 * may run in parallel.
 * Flops: N (N^2 - 1) / 3 + N (N - 1) / 2 + 2 N; about 1/3 N^3.
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
#define N SIZE(32, 128, 1024, 2000, 4000, 1000)
#endif

/* The square root of DATA_TYPE's own precision; declared here, so no header is needed. */
double sqrt(double);
float sqrtf(float);
#define SQRT_double sqrt
#define SQRT_float sqrtf
#define SQRT_PASTE(type) SQRT_##type
#define SQRT_FOR(type) SQRT_PASTE(type)
#define SQRT SQRT_FOR(DATA_TYPE)

void kernel_cholesky(DATA_TYPE A[N][N], DATA_TYPE p[N], DATA_TYPE x[N][N])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < N; i++) {
        for (j = i; j < N; j++) {
            x[i][j] = A[i][j];
            for (k = 0; k < i; k++)
                x[i][j] = x[i][j] - A[j][k] * A[i][k];
        }
        p[i] = 1 / SQRT(x[i][i]);
        for (j = i + 1; j < N; j++)
            A[j][i] = x[i][j] * p[i];
    }
#pragma endscop
}
