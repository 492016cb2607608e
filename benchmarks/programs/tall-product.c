/*
 * tall-product: of a matrix of many rows with a small one
 *
 *   C = A B
 *
 * A is NI x NK, B is NK x NJ, C is NI x NJ.
 * Flops: 2 NI NJ NK.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 1000000
#endif
#ifndef NJ
#define NJ 32
#endif
#ifndef NK
#define NK 32
#endif

void kernel_tall_product(DATA_TYPE C[NI][NJ],
                         DATA_TYPE A[NI][NK],
                         DATA_TYPE B[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            C[i][j] = 0;
            for (k = 0; k < NK; k++)
                C[i][j] += A[i][k] * B[k][j];
        }
#pragma endscop
}
