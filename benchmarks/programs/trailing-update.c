/*
 * trailing-update: what is left of a matrix when columns of it were eliminated
 *
 *   C[i][j] -= sum_k A[i][k] B[k][j]
 *
 * C is NI x NJ, A is NI x NK, B is NK x NJ.
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
#define NK 1000
#endif

void kernel_trailing_update(DATA_TYPE C[NI][NJ], DATA_TYPE A[NI][NK], DATA_TYPE B[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            for (k = 0; k < NK; k++)
                C[i][j] -= A[i][k] * B[k][j];
#pragma endscop
}
