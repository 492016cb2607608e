/*
 * mttkrp: matricised tensor times Khatri-Rao product, first mode
 *
 *   A[i][r] += sum over j < NJ, k < NK of T[i][j][k] B[j][r] C[k][r]
 *
 * T is NI x NJ x NK, A is NI x NR, B is NJ x NR, C is NK x NR.
 * Flops: 3 NI NJ NK NR.
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
#define NI SIZE(10, 128, 384, 384, 384, 384)
#endif
#ifndef NJ
#define NJ SIZE(10, 128, 384, 384, 384, 384)
#endif
#ifndef NK
#define NK SIZE(10, 128, 384, 384, 384, 384)
#endif
#ifndef NR
#define NR SIZE(10, 128, 384, 384, 384, 384)
#endif

void kernel_mttkrp(DATA_TYPE A[NI][NR], DATA_TYPE T[NI][NJ][NK], DATA_TYPE B[NJ][NR],
                   DATA_TYPE C[NK][NR])
{
    int i, j, k, r;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            for (k = 0; k < NK; k++)
                for (r = 0; r < NR; r++)
                    A[i][r] += T[i][j][k] * B[j][r] * C[k][r];
#pragma endscop
}
