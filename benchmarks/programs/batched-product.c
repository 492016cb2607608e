/*
 * batched-product: products of many small matrices
 *
 *   C[b] = A[b] B[b] for every b < NB
 *
 * A, B and C are NB x N x N.
 * Flops: 2 NB N^3.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NB
#define NB 16000
#endif
#ifndef N
#define N 48
#endif

void kernel_batched_product(DATA_TYPE C[NB][N][N],
                            DATA_TYPE A[NB][N][N],
                            DATA_TYPE B[NB][N][N])
{
    int b, i, j, k;

#pragma scop
    for (b = 0; b < NB; b++)
        for (i = 0; i < N; i++)
            for (j = 0; j < N; j++) {
                C[b][i][j] = 0;
                for (k = 0; k < N; k++)
                    C[b][i][j] += A[b][i][k] * B[b][k][j];
            }
#pragma endscop
}
