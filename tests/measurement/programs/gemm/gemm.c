/*
 * gemm: general matrix product with scaled output
 *
 *   C = alpha A B + beta C
 *
 * C is NI x NJ, A is NI x NK, B is NK x NJ.
 * Flops: 3 NI NJ NK + NI NJ; alpha multiplies every product of the sum.
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
#ifndef NK
#define NK SIZE(32, 128, 1024, 2000, 4000, 4000)
#endif

void kernel_gemm(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NJ], DATA_TYPE A[NI][NK],
                 DATA_TYPE B[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            C[i][j] *= beta;
            for (k = 0; k < NK; k++)
                C[i][j] += alpha * A[i][k] * B[k][j];
        }
#pragma endscop
}
