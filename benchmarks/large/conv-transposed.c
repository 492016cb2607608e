void f(int NB, int K, int C, int H, int W, int R, int S, float out[NB][K][2 * H + R][2 * W + S], float in[NB][C][H][W], float w[C][K][R][S]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int c = 0; c < C; c++)
for (int k = 0; k < K; k++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
out[n][k][2 * y + r][2 * x + s] += in[n][c][y][x] * w[c][k][r][s];
#pragma endscop
}
