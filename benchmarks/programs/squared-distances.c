/*
 * squared-distances: how far rows of one matrix are from those of another
 *
 *   D[i][j] = n[i] + m[j] - 2 sum_k X[i][k] Y[j][k]
 *
 * X is NI x NK, Y is NJ x NK; n and m are the squared lengths of their rows.
 * Flops: 2 NI NJ NK.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 2000
#endif
#ifndef NJ
#define NJ 2000
#endif
#ifndef NK
#define NK 2000
#endif

void kernel_squared_distances(DATA_TYPE D[NI][NJ],
                              DATA_TYPE X[NI][NK],
                              DATA_TYPE Y[NJ][NK],
                              DATA_TYPE n[NI],
                              DATA_TYPE m[NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            D[i][j] = 0;
            for (k = 0; k < NK; k++)
                D[i][j] += X[i][k] * Y[j][k];
            D[i][j] = n[i] + m[j] - 2 * D[i][j];
        }
#pragma endscop
}
