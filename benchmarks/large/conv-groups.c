void f(int G, int NB, int K, int C, int H, int W, int R, int S, float out[NB][G][K][H][W], float in[NB][G][C][H + R][W + S], float w[G][K][C][R][S]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int g = 0; g < G; g++)
for (int k = 0; k < K; k++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++)
for (int c = 0; c < C; c++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
out[n][g][k][y][x] += in[n][g][c][y + r][x + s] * w[g][k][c][r][s];
#pragma endscop
}
