/*
 * trisolv: forward substitution
 *
 *   A x = c,  A lower triangular: x[i] = (c[i] - sum over j < i of A[i][j] x[j]) / A[i][i]
 *
 * A is N x N and is read on and below its diagonal; x and c have N elements.
 * Flops: N^2.
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
#define N SIZE(32, 500, 4000, 8000, 100000, 4000)
#endif

void kernel_trisolv(DATA_TYPE A[N][N], DATA_TYPE x[N], DATA_TYPE c[N])
{
    int i, j;

#pragma scop
    for (i = 0; i < N; i++) {
        x[i] = c[i];
        for (j = 0; j < i; j++)
            x[i] = x[i] - A[i][j] * x[j];
        x[i] = x[i] / A[i][i];
    }
#pragma endscop
}
