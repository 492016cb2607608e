/*
 * horizontal-diffusion-local: as horizontal-diffusion, with temporaries that nobody sees afterwards
 *
 *   lap = 4 in - in(i-1) - in(i+1) - in(j-1) - in(j+1)
 *   flux along i: lap(i+1) - lap, but 0 where it is up the gradient of in; along j alike
 *   out = in - coefficient (flux_i - flux_i(i-1) + flux_j - flux_j(j-1))
 *
 * All arrays are NK x NI x NJ.
 * Flops: 19 NK NI NJ, about.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NK
#define NK 64
#endif
#ifndef NI
#define NI 512
#endif
#ifndef NJ
#define NJ 512
#endif

void kernel_horizontal_diffusion_local(DATA_TYPE in[NK][NI][NJ],
                                       DATA_TYPE coefficient[NK][NI][NJ],
                                       DATA_TYPE out[NK][NI][NJ])
{
    DATA_TYPE lap[NK][NI][NJ];
    DATA_TYPE fli[NK][NI][NJ];
    DATA_TYPE flj[NK][NI][NJ];
    int k, i, j;

#pragma scop
    for (k = 0; k < NK; k++) {
        for (i = 1; i < NI - 1; i++)
            for (j = 1; j < NJ - 1; j++)
                lap[k][i][j] = (DATA_TYPE)4 * in[k][i][j] - in[k][i - 1][j] - in[k][i + 1][j] -
                               in[k][i][j - 1] - in[k][i][j + 1];
        for (i = 1; i < NI - 2; i++)
            for (j = 1; j < NJ - 1; j++)
                fli[k][i][j] =
                    (lap[k][i + 1][j] - lap[k][i][j]) * (in[k][i + 1][j] - in[k][i][j]) > 0
                        ? 0
                        : lap[k][i + 1][j] - lap[k][i][j];
        for (i = 1; i < NI - 1; i++)
            for (j = 1; j < NJ - 2; j++)
                flj[k][i][j] =
                    (lap[k][i][j + 1] - lap[k][i][j]) * (in[k][i][j + 1] - in[k][i][j]) > 0
                        ? 0
                        : lap[k][i][j + 1] - lap[k][i][j];
        for (i = 2; i < NI - 2; i++)
            for (j = 2; j < NJ - 2; j++)
                out[k][i][j] = in[k][i][j] - coefficient[k][i][j] * (fli[k][i][j] - fli[k][i - 1][j] +
                                                                     flj[k][i][j] - flj[k][i][j - 1]);
    }
#pragma endscop
}
