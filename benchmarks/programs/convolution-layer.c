/*
 * convolution-layer: of a neural network, over a batch of images
 *
 *   out[n][k][y][x] += sum over c, r, s of in[n][c][y+r][x+s] w[k][c][r][s]
 *
 * Stride 1, no padding: in is NN x NC x (NY + NR - 1) x (NX + NS - 1),
 * w is NK x NC x NR x NS, out is NN x NK x NY x NX.
 * Flops: 2 NN NK NC NY NX NR NS.
 */

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

#ifndef NN
#define NN 32
#endif
#ifndef NK
#define NK 64
#endif
#ifndef NC
#define NC 64
#endif
#ifndef NY
#define NY 56
#endif
#ifndef NX
#define NX 56
#endif
#ifndef NR
#define NR 3
#endif
#ifndef NS
#define NS 3
#endif

void kernel_convolution_layer(DATA_TYPE out[NN][NK][NY][NX],
                              DATA_TYPE in[NN][NC][NY + NR - 1][NX + NS - 1],
                              DATA_TYPE w[NK][NC][NR][NS])
{
    int n, k, c, y, x, r, s;

#pragma scop
    for (n = 0; n < NN; n++)
        for (k = 0; k < NK; k++)
            for (y = 0; y < NY; y++)
                for (x = 0; x < NX; x++)
                    for (c = 0; c < NC; c++)
                        for (r = 0; r < NR; r++)
                            for (s = 0; s < NS; s++)
                                out[n][k][y][x] += in[n][c][y + r][x + s] * w[k][c][r][s];
#pragma endscop
}
