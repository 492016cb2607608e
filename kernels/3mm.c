/*
 * 3mm: product of two matrix products
 *
 *   E = A B,  F = C D,  G = E F
 *
 * A is NI x NK, B is NK x NJ, C is NJ x NM, D is NM x NL, E is NI x NJ,
 * F is NJ x NL, G is NI x NL.
 * Flops: 2 NI NJ NK + 2 NJ NL NM + 2 NI NL NJ.
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
#ifndef NM
#define NM SIZE(32, 128, 1024, 2000, 4000, 4000)
#endif

void kernel_3mm(DATA_TYPE E[NI][NJ], DATA_TYPE A[NI][NK], DATA_TYPE B[NK][NJ],
                DATA_TYPE F[NJ][NL], DATA_TYPE C[NJ][NM], DATA_TYPE D[NM][NL],
                DATA_TYPE G[NI][NL])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            E[i][j] = 0;
            for (k = 0; k < NK; k++)
                E[i][j] += A[i][k] * B[k][j];
        }
    for (i = 0; i < NJ; i++)
        for (j = 0; j < NL; j++) {
            F[i][j] = 0;
            for (k = 0; k < NM; k++)
                F[i][j] += C[i][k] * D[k][j];
        }
    for (i = 0; i < NI; i++)
        for (j = 0; j < NL; j++) {
            G[i][j] = 0;
            for (k = 0; k < NJ; k++)
                G[i][j] += E[i][k] * F[k][j];
        }
#pragma endscop
}
