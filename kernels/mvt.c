/*
 * mvt: a matrix and its transpose, each applied to a vector of its own
 *
 *   x1 += A y1,  x2 += A^T y2
 *
 * A is NI x NI, all vectors have NI elements.
 * Flops: 4 NI^2.
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
#define NI SIZE(32, 500, 4000, 8000, 100000, 16000)
#endif

void kernel_mvt(DATA_TYPE x1[NI], DATA_TYPE x2[NI], DATA_TYPE y1[NI], DATA_TYPE y2[NI],
                DATA_TYPE A[NI][NI])
{
    int i, j;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            x1[i] = x1[i] + A[i][j] * y1[j];
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            x2[i] = x2[i] + A[j][i] * y2[j];
#pragma endscop
}
