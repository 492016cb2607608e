#ifndef N
#define N 4
#endif
#ifndef K
#define K 64
#endif
#ifndef C
#define C 32
#endif
#ifndef H
#define H 28
#endif
#ifndef W
#define W 28
#endif

/* A layer of a network: a filter of 3 x 3 for each pair of channels. */
void convolution_layer(float out[N][K][H][W], float in[N][C][H + 2][W + 2], float w[K][C][3][3])
{
#pragma scop
  for (int n = 0; n < N; n++)
    for (int k = 0; k < K; k++)
      for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
          for (int c = 0; c < C; c++)
            for (int r = 0; r < 3; r++)
              for (int s = 0; s < 3; s++)
                out[n][k][y][x] += in[n][c][y + r][x + s] * w[k][c][r][s];
#pragma endscop
}
