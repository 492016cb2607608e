/*
 * contraction-two: of two tensors of four dimensions over two indices
 *
 *   C[a][b][c][d] += sum over e, f of A[a][b][e][f] B[e][f][c][d]
 *
 * A is NA x NB x NE x NF, B is NE x NF x NC x ND, C is NA x NB x NC x ND.
 * Flops: 2 NA NB NC ND NE NF.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NA
#define NA 48
#endif
#ifndef NB
#define NB 48
#endif
#ifndef NC
#define NC 48
#endif
#ifndef ND
#define ND 48
#endif
#ifndef NE
#define NE 48
#endif
#ifndef NF
#define NF 48
#endif

void kernel_contraction_two(DATA_TYPE C[NA][NB][NC][ND],
                            DATA_TYPE A[NA][NB][NE][NF],
                            DATA_TYPE B[NE][NF][NC][ND])
{
    int a, b, c, d, e, f;

#pragma scop
    for (a = 0; a < NA; a++)
        for (b = 0; b < NB; b++)
            for (c = 0; c < NC; c++)
                for (d = 0; d < ND; d++)
                    for (e = 0; e < NE; e++)
                        for (f = 0; f < NF; f++)
                            C[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d];
#pragma endscop
}
