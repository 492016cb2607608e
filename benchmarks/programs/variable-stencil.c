/*
 * variable-stencil: five points with coefficients of their own everywhere
 *
 *   B[i][j] = c0 A[i][j] + c1 A[i-1][j] + c2 A[i+1][j] + c3 A[i][j-1] + c4 A[i][j+1]
 *
 * and back from B to A, TSTEPS times. All arrays are N x N.
 * Flops: 18 TSTEPS (N - 2)^2.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef TSTEPS
#define TSTEPS 2
#endif
#ifndef N
#define N 4000
#endif

void kernel_variable_stencil(DATA_TYPE A[N][N],
                             DATA_TYPE B[N][N],
                             DATA_TYPE c0[N][N],
                             DATA_TYPE c1[N][N],
                             DATA_TYPE c2[N][N],
                             DATA_TYPE c3[N][N],
                             DATA_TYPE c4[N][N])
{
    int t, i, j;

#pragma scop
    for (t = 0; t < TSTEPS; t++) {
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                B[i][j] = c0[i][j] * A[i][j] + c1[i][j] * A[i - 1][j] + c2[i][j] * A[i + 1][j] +
                          c3[i][j] * A[i][j - 1] + c4[i][j] * A[i][j + 1];
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                A[i][j] = c0[i][j] * B[i][j] + c1[i][j] * B[i - 1][j] + c2[i][j] * B[i + 1][j] +
                          c3[i][j] * B[i][j - 1] + c4[i][j] * B[i][j + 1];
    }
#pragma endscop
}
