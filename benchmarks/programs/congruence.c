/*
 * congruence: a matrix seen in other coordinates
 *
 *   M = A' (W A)
 *
 * W is NI x NI, A is NI x NJ, T = W A is NI x NJ, M is NJ x NJ.
 * Flops: 2 NI NI NJ + 2 NI NJ NJ.
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

void kernel_congruence(DATA_TYPE M[NJ][NJ], DATA_TYPE T[NI][NJ], DATA_TYPE W[NI][NI],
                       DATA_TYPE A[NI][NJ])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++) {
            T[i][j] = 0;
            for (k = 0; k < NI; k++)
                T[i][j] += W[i][k] * A[k][j];
        }
    for (i = 0; i < NJ; i++)
        for (j = 0; j < NJ; j++) {
            M[i][j] = 0;
            for (k = 0; k < NI; k++)
                M[i][j] += A[k][i] * T[k][j];
        }
#pragma endscop
}
