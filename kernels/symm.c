/*
 * symm: product with a symmetric matrix, scaled output
 *
 *   C = alpha A B + beta C,  A = A^T
 *
 * Only the lower triangle of A is read: A[i][k] with k < i serves row i through
 * acc[i][j] (the sum of B[k][j] A[i][k]) and row k directly.
 * A is NI x NI, B and C are NI x NJ; acc holds one sum for each element of C.
 * Flops: 5/2 NI (NI - 1) NJ + 6 NI NJ.
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
#ifndef NJ
#define NJ SIZE(32, 128, 1024, 2000, 4000, 4000)
#endif

void kernel_symm(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NJ], DATA_TYPE A[NI][NI],
                 DATA_TYPE B[NI][NJ], DATA_TYPE acc[NI][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            acc[i][j] = 0;
            for (k = 0; k < i; k++) {
                C[k][j] += alpha * A[i][k] * B[i][j];
                acc[i][j] += B[k][j] * A[i][k];
            }
            C[i][j] = beta * C[i][j] + alpha * A[i][i] * B[i][j] + alpha * acc[i][j];
        }
#pragma endscop
}
