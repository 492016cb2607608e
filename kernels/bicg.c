/*
 * bicg: the two matrix-vector products of a biconjugate gradient step
 *
 *   s = A^T r,  q = A p
 *
 * A is NX x NY, s and p have NY elements, q and r have NX.
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

void kernel_bicg(DATA_TYPE A[NX][NY], DATA_TYPE s[NY], DATA_TYPE q[NX], DATA_TYPE p[NY],
                 DATA_TYPE r[NX])
{
    int i, j;

#pragma scop
    for (i = 0; i < NY; i++)
        s[i] = 0;
    for (i = 0; i < NX; i++) {
        q[i] = 0;
        for (j = 0; j < NY; j++) {
            s[j] = s[j] + r[i] * A[i][j];
            q[i] = q[i] + A[i][j] * p[j];
        }
    }
#pragma endscop
}
