/*
 * syr2k: symmetric rank-2k update, the whole of C written
 *
 *   C = alpha A B^T + alpha B A^T + beta C
 *
 * A and B are NI x NJ, C is NI x NI.
 * Flops: 6 NI^2 NJ + NI^2.
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

void kernel_syr2k(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NI], DATA_TYPE A[NI][NJ],
                  DATA_TYPE B[NI][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            C[i][j] *= beta;
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            for (k = 0; k < NJ; k++) {
                C[i][j] += alpha * A[i][k] * B[j][k];
                C[i][j] += alpha * B[i][k] * A[j][k];
            }
#pragma endscop
}
