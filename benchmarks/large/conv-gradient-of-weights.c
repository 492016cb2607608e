void f(int NB, int K, int C, int H, int W, int R, int S, float out[NB][K][H][W], float in[NB][C][H + R][W + S], float w[K][C][R][S]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int k = 0; k < K; k++)
for (int c = 0; c < C; c++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
w[k][c][r][s] += out[n][k][y][x] * in[n][c][y + r][x + s];
#pragma endscop
}
