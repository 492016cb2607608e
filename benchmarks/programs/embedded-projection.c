/*
 * embedded-projection: inputs of several sequences, with what is added at each place, projected
 *
 *   Y[b][i][j] = sum_k (X[b][i][k] + P[i][k]) W[k][j]
 *
 * X is NB x NI x NK, P is NI x NK, W is NK x NJ.
 * Flops: 2 NB NI NJ NK and what the sums take.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NB
#define NB 8
#endif
#ifndef NI
#define NI 512
#endif
#ifndef NJ
#define NJ 512
#endif
#ifndef NK
#define NK 512
#endif

void kernel_embedded_projection(DATA_TYPE Y[NB][NI][NJ], DATA_TYPE X[NB][NI][NK],
                                DATA_TYPE P[NI][NK], DATA_TYPE W[NK][NJ])
{
    int b, i, j, k;

#pragma scop
    for (b = 0; b < NB; b++)
        for (i = 0; i < NI; i++)
            for (j = 0; j < NJ; j++) {
                Y[b][i][j] = 0;
                for (k = 0; k < NK; k++)
                    Y[b][i][j] += (X[b][i][k] + P[i][k]) * W[k][j];
            }
#pragma endscop
}
