/* contraction over one index of two tensors of three */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef A1
#define A1 96
#endif
#ifndef B1
#define B1 112
#endif
#ifndef C1
#define C1 80
#endif
#ifndef D1
#define D1 192
#endif

void kernel_tensorpair(DATA_TYPE R[A1][B1][C1], DATA_TYPE X[A1][D1][C1], DATA_TYPE Y[D1][B1])
{
#pragma scop
    for (int a = 0; a < A1; a++)
        for (int b = 0; b < B1; b++)
            for (int c = 0; c < C1; c++) {
                R[a][b][c] = 0;
                for (int d = 0; d < D1; d++)
                    R[a][b][c] += X[a][d][c] * Y[d][b];
            }
#pragma endscop
}
