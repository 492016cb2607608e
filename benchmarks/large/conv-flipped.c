void f(int NB, int K, int C, int H, int W, int R, int S, float out[NB][K][H][W], float in[NB][C][1 * H + R][1 * W + S], float w[K][C][R][S], float bias[K]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int k = 0; k < K; k++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++) {
out[n][k][y][x] = 0;
for (int c = 0; c < C; c++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
out[n][k][y][x] += in[n][c][y + R - 1 - r][x + S - 1 - s] * w[k][c][r][s];
}
#pragma endscop
}
