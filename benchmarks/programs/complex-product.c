/*
 * complex-product: a product of matrices of complex numbers, real and imaginary parts apart
 *
 *   C = A B, where C = Cr + i Ci, A = Ar + i Ai, B = Br + i Bi
 *
 * Cr and Ci are NI x NJ, Ar and Ai are NI x NK, Br and Bi are NK x NJ.
 * Flops: 8 NI NJ NK.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 1500
#endif
#ifndef NJ
#define NJ 1500
#endif
#ifndef NK
#define NK 1500
#endif

void kernel_complex_product(DATA_TYPE Cr[NI][NJ],
                            DATA_TYPE Ci[NI][NJ],
                            DATA_TYPE Ar[NI][NK],
                            DATA_TYPE Ai[NI][NK],
                            DATA_TYPE Br[NK][NJ],
                            DATA_TYPE Bi[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            Cr[i][j] = 0;
            Ci[i][j] = 0;
            for (k = 0; k < NK; k++) {
                Cr[i][j] += Ar[i][k] * Br[k][j] - Ai[i][k] * Bi[k][j];
                Ci[i][j] += Ar[i][k] * Bi[k][j] + Ai[i][k] * Br[k][j];
            }
        }
#pragma endscop
}
