#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef T
#define T 2
#endif
#ifndef N
#define N 4000
#endif
void kernel_wave4(DATA_TYPE P[N][N], DATA_TYPE Q[N][N], DATA_TYPE V[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (m = 0; m < T; m++) {
      for (i = 2; i < N - 2; i++) for (j = 2; j < N - 2; j++)
        Q[i][j] = 2 * P[i][j] - Q[i][j] + V[i][j] * (16 * (P[i-1][j] + P[i+1][j] + P[i][j-1] + P[i][j+1]) - P[i-2][j] - P[i+2][j] - P[i][j-2] - P[i][j+2] - 60 * P[i][j]);
      for (i = 2; i < N - 2; i++) for (j = 2; j < N - 2; j++)
        P[i][j] = 2 * Q[i][j] - P[i][j] + V[i][j] * (16 * (Q[i-1][j] + Q[i+1][j] + Q[i][j-1] + Q[i][j+1]) - Q[i-2][j] - Q[i+2][j] - Q[i][j-2] - Q[i][j+2] - 60 * Q[i][j]); }
#pragma endscop
}
