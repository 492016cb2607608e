/*
 * mixed-values: values of several heads, mixed by weights
 *
 *   O[h][i][d] = sum_j P[h][i][j] V[h][j][d]
 *
 * P is NH x NI x NJ, V is NH x NJ x ND.
 * Flops: 2 NH NI NJ ND.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NH
#define NH 16
#endif
#ifndef NI
#define NI 1024
#endif
#ifndef NJ
#define NJ 1024
#endif
#ifndef ND
#define ND 64
#endif

void kernel_mixed_values(DATA_TYPE O[NH][NI][ND], DATA_TYPE P[NH][NI][NJ], DATA_TYPE V[NH][NJ][ND])
{
    int h, i, j, d;

#pragma scop
    for (h = 0; h < NH; h++)
        for (i = 0; i < NI; i++)
            for (d = 0; d < ND; d++) {
                O[h][i][d] = 0;
                for (j = 0; j < NJ; j++)
                    O[h][i][d] += P[h][i][j] * V[h][j][d];
            }
#pragma endscop
}
