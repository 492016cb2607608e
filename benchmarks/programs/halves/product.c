/*
 * product: matrix product of halves, added up in floats
 *
 *   C = A B
 *
 * C is NI x NJ, A is NI x NK, B is NK x NJ.
 * Flops: 2 NI NJ NK.
 */

#ifndef DATA_TYPE
#define DATA_TYPE _Float16
#endif

#ifndef NI
#define NI 4096
#endif
#ifndef NJ
#define NJ 4096
#endif
#ifndef NK
#define NK 4096
#endif

void kernel_product(float C[NI][NJ],
                    DATA_TYPE A[NI][NK],
                    DATA_TYPE B[NK][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            float sum = 0;
            for (k = 0; k < NK; k++)
                sum += (float) A[i][k] * (float) B[k][j];
            C[i][j] = sum;
        }
#pragma endscop
}
