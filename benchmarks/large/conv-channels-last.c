void f(int NB, int K, int C, int H, int W, int R, int S, float out[NB][H][W][K], float in[NB][H + R][W + S][C], float w[R][S][C][K]) {
#pragma scop
for (int n = 0; n < NB; n++)
for (int y = 0; y < H; y++)
for (int x = 0; x < W; x++)
for (int k = 0; k < K; k++)
for (int r = 0; r < R; r++)
for (int s = 0; s < S; s++)
for (int c = 0; c < C; c++)
out[n][y][x][k] += in[n][y + r][x + s][c] * w[r][s][c][k];
#pragma endscop
}
