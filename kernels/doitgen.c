/*
 * doitgen: every row of a three-dimensional array multiplied by one matrix
 *
 *   sum[r][q][p] = sum over s < NP of A[r][q][s] C4[s][p],  then A = sum
 *
 * A and sum are NR x NQ x NP, C4 is NP x NP.
 * Flops: 2 NR NQ NP^2.
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

#ifndef NR
#define NR SIZE(10, 32, 128, 256, 1000, 256)
#endif
#ifndef NQ
#define NQ SIZE(10, 32, 128, 256, 1000, 256)
#endif
#ifndef NP
#define NP SIZE(10, 32, 128, 256, 1000, 256)
#endif

void kernel_doitgen(DATA_TYPE A[NR][NQ][NP], DATA_TYPE C4[NP][NP], DATA_TYPE sum[NR][NQ][NP])
{
    int r, q, p, s;

#pragma scop
    for (r = 0; r < NR; r++)
        for (q = 0; q < NQ; q++) {
            for (p = 0; p < NP; p++) {
                sum[r][q][p] = 0;
                for (s = 0; s < NP; s++)
                    sum[r][q][p] = sum[r][q][p] + A[r][q][s] * C4[s][p];
            }
            for (p = 0; p < NP; p++)
                A[r][q][p] = sum[r][q][p];
        }
#pragma endscop
}
