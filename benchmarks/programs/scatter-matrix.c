/*
 * scatter-matrix: how features of many points vary together around given means
 *
 *   S[i][j] = sum_k (X[k][i] - m[i]) (X[k][j] - m[j])
 *
 * X is NK x NI, m are NI means.
 * Flops: 2 NI NI NK and what the differences take.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 1500
#endif
#ifndef NK
#define NK 2000
#endif

void kernel_scatter_matrix(DATA_TYPE S[NI][NI], DATA_TYPE X[NK][NI], DATA_TYPE m[NI])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++) {
            S[i][j] = 0;
            for (k = 0; k < NK; k++)
                S[i][j] += (X[k][i] - m[i]) * (X[k][j] - m[j]);
        }
#pragma endscop
}
