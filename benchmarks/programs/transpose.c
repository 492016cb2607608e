/*
 * transpose: of a matrix that is not square
 *
 *   B = A^T
 *
 * A is NI x NJ, B is NJ x NI.
 * Flops: none.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 8000
#endif
#ifndef NJ
#define NJ 6000
#endif

void kernel_transpose(DATA_TYPE A[NI][NJ],
                      DATA_TYPE B[NJ][NI])
{
    int i, j;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NJ; j++)
            B[j][i] = A[i][j];
#pragma endscop
}
