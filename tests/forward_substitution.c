/*
 * X = alpha L^-1 B in place of B, L lower triangular with ones on its diagonal
 *
 * Rows need the rows before them: loop i runs in order, whatever is copied.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 4000
#endif

void forward(DATA_TYPE alpha, DATA_TYPE L[NI][NI], DATA_TYPE B[NI][NI])
{
    int i, j, k;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            for (k = 0; k < i; k++)
                B[i][j] -= L[i][k] * B[k][j];
    for (i = 0; i < NI; i++)
        for (j = 0; j < NI; j++)
            B[i][j] = alpha * B[i][j];
#pragma endscop
}
