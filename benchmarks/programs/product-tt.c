/*
 * product-tt: matrix product of which both operands are transposed
 *
 *   C += A^T B^T
 *
 * C is NI x NJ, A is NK x NI, B is NJ x NK.
 * Flops: 2 NI NJ NK.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 3000
#endif
#ifndef NJ
#define NJ 3000
#endif
#ifndef NK
#define NK 3000
#endif

void kernel_product_tt(DATA_TYPE C[NI][NJ],
                       DATA_TYPE A[NK][NI],
                       DATA_TYPE B[NJ][NK])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            for (k = 0; k < NK; k++)
                C[i][j] += A[k][i] * B[j][k];
#pragma endscop
}
