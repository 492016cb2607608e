/*
 * weighted-scores: how alike rows of two matrices are, columns weighted, over a product of means
 *
 *   S[i][j] = u[i] v[j] + sum_k A[i][k] w[k] B[j][k]
 *
 * A is NI x NK, B is NJ x NK; w are NK weights, u and v are NI and NJ means.
 * Flops: 2 NI NJ NK and what the weights take.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 2000
#endif
#ifndef NJ
#define NJ 1500
#endif
#ifndef NK
#define NK 1500
#endif

void kernel_weighted_scores(DATA_TYPE S[NI][NJ], DATA_TYPE A[NI][NK], DATA_TYPE B[NJ][NK],
                            DATA_TYPE w[NK], DATA_TYPE u[NI], DATA_TYPE v[NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            S[i][j] = u[i] * v[j];
            for (k = 0; k < NK; k++)
                S[i][j] += A[i][k] * w[k] * B[j][k];
        }
#pragma endscop
}
