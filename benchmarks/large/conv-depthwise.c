void f(int NB, int C, int H, int W, int R, int S, float out[NB][C][H][W], float in[NB][C][H + R][W + S], float w[C][R][S]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int c = 0; c < C; c++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
out[n][c][y][x] += in[n][c][y + r][x + s] * w[c][r][s];
#pragma endscop
}
