/*
 * atax: a matrix and its transpose applied to a vector
 *
 *   tmp = A x,  y = A^T tmp
 *
 * A is NX x NY, x and y have NY elements, tmp has NX.
 * Flops: 4 NX NY.
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

#ifndef NX
#define NX SIZE(32, 500, 4000, 8000, 100000, 16000)
#endif
#ifndef NY
#define NY SIZE(32, 500, 4000, 8000, 100000, 16000)
#endif

void kernel_atax(DATA_TYPE A[NX][NY], DATA_TYPE x[NY], DATA_TYPE y[NY], DATA_TYPE tmp[NX])
{
    int i, j;

#pragma scop
    for (i = 0; i < NY; i++)
        y[i] = 0;
    for (i = 0; i < NX; i++) {
        tmp[i] = 0;
        for (j = 0; j < NY; j++)
            tmp[i] = tmp[i] + A[i][j] * x[j];
        for (j = 0; j < NY; j++)
            y[j] = y[j] + A[i][j] * tmp[i];
    }
#pragma endscop
}
