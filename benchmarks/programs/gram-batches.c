/*
 * gram-batches: the Gram matrices of many sets of vectors
 *
 *   G[b] = X[b]' X[b] for every b < NB
 *
 * G is NB x N x N, X is NB x K x N: a vector a row.
 * Flops: 2 NB N^2 K.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NB
#define NB 64
#endif
#ifndef N
#define N 500
#endif
#ifndef K
#define K 700
#endif

void kernel_gram_batches(DATA_TYPE G[NB][N][N], DATA_TYPE X[NB][K][N])
{
    int b, i, j, k;

#pragma scop
    for (b = 0; b < NB; b++)
        for (i = 0; i < N; i++)
            for (j = 0; j < N; j++) {
                G[b][i][j] = 0;
                for (k = 0; k < K; k++)
                    G[b][i][j] += X[b][k][i] * X[b][k][j];
            }
#pragma endscop
}
