/*
 * cost-volume: how much all points of one picture are like those of another, in all channels
 *
 *   V[n][i][j] = sum_c X[n][c][i] Y[n][c][j]
 *
 * X is NN x NC x NI, Y is NN x NC x NJ.
 * Flops: 2 NN NI NJ NC.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NN
#define NN 8
#endif
#ifndef NC
#define NC 128
#endif
#ifndef NI
#define NI 1024
#endif
#ifndef NJ
#define NJ 1024
#endif

void kernel_cost_volume(DATA_TYPE V[NN][NI][NJ], DATA_TYPE X[NN][NC][NI], DATA_TYPE Y[NN][NC][NJ])
{
    int n, i, j, c;

#pragma scop
    for (n = 0; n < NN; n++)
        for (i = 0; i < NI; i++)
            for (j = 0; j < NJ; j++) {
                V[n][i][j] = 0;
                for (c = 0; c < NC; c++)
                    V[n][i][j] += X[n][c][i] * Y[n][c][j];
            }
#pragma endscop
}
