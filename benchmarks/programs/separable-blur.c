/*
 * separable-blur: of images, five points along rows, then five along columns
 *
 *   across = 0.1 in(j-2) + 0.2 in(j-1) + 0.4 in + 0.2 in(j+1) + 0.1 in(j+2)
 *   out = the same of across along i
 *
 * in and out are NI x NJ.
 * Flops: 18 NI NJ, about.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NI
#define NI 8192
#endif
#ifndef NJ
#define NJ 8192
#endif

void kernel_separable_blur(DATA_TYPE in[NI][NJ], DATA_TYPE out[NI][NJ])
{
    DATA_TYPE across[NI][NJ];
    int i, j;

#pragma scop
    for (i = 0; i < NI; i++)
        for (j = 2; j < NJ - 2; j++)
            across[i][j] = (DATA_TYPE)0.1 * (in[i][j - 2] + in[i][j + 2]) +
                           (DATA_TYPE)0.2 * (in[i][j - 1] + in[i][j + 1]) + (DATA_TYPE)0.4 * in[i][j];
    for (i = 2; i < NI - 2; i++)
        for (j = 2; j < NJ - 2; j++)
            out[i][j] = (DATA_TYPE)0.1 * (across[i - 2][j] + across[i + 2][j]) +
                        (DATA_TYPE)0.2 * (across[i - 1][j] + across[i + 1][j]) +
                        (DATA_TYPE)0.4 * across[i][j];
#pragma endscop
}
