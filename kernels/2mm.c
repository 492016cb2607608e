/*
 * 2mm: two matrix products in a row
 *
 *   tmp = alpha A B,  D = tmp C + beta D
 *
 * A is NI x NK, B is NK x NJ, tmp is NI x NJ, C is NJ x NL, D is NI x NL.
 * Flops: 3 NI NJ NK + 2 NI NJ NL + NI NL.
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
#ifndef NL
#define NL SIZE(32, 128, 1024, 2000, 4000, 4000)
#endif

void kernel_2mm(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE tmp[NI][NJ], DATA_TYPE A[NI][NK],
                DATA_TYPE B[NK][NJ], DATA_TYPE C[NJ][NL], DATA_TYPE D[NI][NL])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            tmp[i][j] = 0;
            for (k = 0; k < NK; k++)
                tmp[i][j] += alpha * A[i][k] * B[k][j];
        }
    for (i = 0; i < NI; i++)
        for (j = 0; j < NL; j++) {
            D[i][j] *= beta;
            for (k = 0; k < NJ; k++)
                D[i][j] += tmp[i][k] * C[k][j];
        }
#pragma endscop
}
