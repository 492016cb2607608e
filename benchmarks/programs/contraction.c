/*
 * contraction: of two tensors of three dimensions, with four free indices
 *
 *   C[a][b][c][d] += sum over e of A[a][e][b] B[e][c][d]
 *
 * A is NA x NE x NB, B is NE x NC x ND, C is NA x NB x NC x ND.
 * Flops: 2 NA NB NC ND NE.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NA
#define NA 96
#endif
#ifndef NB
#define NB 96
#endif
#ifndef NC
#define NC 96
#endif
#ifndef ND
#define ND 96
#endif
#ifndef NE
#define NE 96
#endif

void kernel_contraction(DATA_TYPE C[NA][NB][NC][ND],
                        DATA_TYPE A[NA][NE][NB],
                        DATA_TYPE B[NE][NC][ND])
{
    int a, b, c, d, e;

#pragma scop
    for (a = 0; a < NA; a++)
        for (b = 0; b < NB; b++)
            for (c = 0; c < NC; c++)
                for (d = 0; d < ND; d++)
                    for (e = 0; e < NE; e++)
                        C[a][b][c][d] += A[a][e][b] * B[e][c][d];
#pragma endscop
}
