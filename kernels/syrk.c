/*
 * syrk: symmetric rank-k update, the whole of C written
 *
 *   C = alpha A A^T + beta C
 *
 * A is NI x NJ, C is NI x NI.
 * Flops: 3 NI^2 NJ + NI^2.
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

void kernel_syrk(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NI], DATA_TYPE A[NI][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            C[i][j] *= beta;
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            for (k = 0; k < NJ; k++)
                C[i][j] += alpha * A[i][k] * A[j][k];
#pragma endscop
}
