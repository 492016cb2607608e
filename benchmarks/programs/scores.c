/*
 * scores: how well queries fit keys, in several heads, with a bias for each key
 *
 *   S[h][i][j] = scale * sum_d Q[h][i][d] K[h][j][d] + b[h][j]
 *
 * Q is NH x NI x ND, K is NH x NJ x ND, b is NH x NJ.
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

void kernel_scores(DATA_TYPE scale,
                   DATA_TYPE S[NH][NI][NJ],
                   DATA_TYPE Q[NH][NI][ND],
                   DATA_TYPE K[NH][NJ][ND],
                   DATA_TYPE b[NH][NJ])
{
    int h, i, j, d;

#pragma scop
    for (h = 0; h < NH; h++)
        for (i = 0; i < NI; i++)
            for (j = 0; j < NJ; j++) {
                S[h][i][j] = b[h][j];
                for (d = 0; d < ND; d++)
                    S[h][i][j] += scale * Q[h][i][d] * K[h][j][d];
            }
#pragma endscop
}
