/*
 * weighted-product: a product of matrices with a weight for each step of its sums
 *
 *   C = beta C + A diag(w) B'
 *
 * A is NI x NK, B is NJ x NK, w has NK elements.
 * Flops: 3 NI NJ NK.
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

void kernel_weighted_product(DATA_TYPE beta,
                             DATA_TYPE C[NI][NJ],
                             DATA_TYPE A[NI][NK],
                             DATA_TYPE B[NJ][NK],
                             DATA_TYPE w[NK])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            C[i][j] *= beta;
            for (k = 0; k < NK; k++)
                C[i][j] += A[i][k] * w[k] * B[j][k];
        }
#pragma endscop
}
