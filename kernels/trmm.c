/*
 * trmm: product with the transpose of a unit lower triangular matrix, in place
 *
 *   B = alpha A^T B,  A[i][i] taken as 1, A[i][k] as 0 for i < k
 *
 *   B[i][j] = alpha (B[i][j] + sum over k > i of A[k][i] B[k][j])
 *
 * A and B are NI x NI; A is read below its diagonal only.
 * Flops: NI^3.
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

#ifndef NI
#define NI SIZE(32, 128, 1024, 2000, 4000, 4000)
#endif

void kernel_trmm(DATA_TYPE alpha, DATA_TYPE A[NI][NI], DATA_TYPE B[NI][NI])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++) {
            for (k = i + 1; k < NI; k++)
                B[i][j] += A[k][i] * B[k][j];
            B[i][j] = alpha * B[i][j];
        }
#pragma endscop
}
