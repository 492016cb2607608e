/*
 * matmul: dense matrix product added to its output
 *
 *   Out[i][j] += sum over k < NK of In[i][k] * Ker[k][j]     i < NI, j < NJ
 *
 * Out is NI x NJ, In is NI x NK, Ker is NK x NJ.
 * Flops: 2 NI NJ NK.
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

void kernel_matmul(DATA_TYPE Out[NI][NJ], DATA_TYPE In[NI][NK], DATA_TYPE Ker[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            for (k = 0; k < NK; k++)
                Out[i][j] += In[i][k] * Ker[k][j];
#pragma endscop
}
