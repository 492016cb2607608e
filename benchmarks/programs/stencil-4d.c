/*
 * stencil-4d: nine points in four dimensions
 *
 *   B = 1/2 A + 1/16 of the eight neighbours in A
 *
 * A and B are N x N x N x N.
 * Flops: 10 (N - 2)^4.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef N
#define N 80
#endif

void kernel_stencil_4d(DATA_TYPE A[N][N][N][N],
                       DATA_TYPE B[N][N][N][N])
{
    int i, j, k, l;

#pragma scop
    for (i = 1; i < N - 1; i++)
        for (j = 1; j < N - 1; j++)
            for (k = 1; k < N - 1; k++)
                for (l = 1; l < N - 1; l++)
                    B[i][j][k][l] =
                        (DATA_TYPE)0.5 * A[i][j][k][l] +
                        (DATA_TYPE)0.0625 *
                            (A[i - 1][j][k][l] + A[i + 1][j][k][l] + A[i][j - 1][k][l] +
                             A[i][j + 1][k][l] + A[i][j][k - 1][l] + A[i][j][k + 1][l] +
                             A[i][j][k][l - 1] + A[i][j][k][l + 1]);
#pragma endscop
}
