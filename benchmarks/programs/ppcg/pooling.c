#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef B
#define B 64
#endif
#ifndef N
#define N 512
#endif
void kernel_pooling(DATA_TYPE Y[B][N / 2][N / 2], DATA_TYPE X[B][N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (m = 0; m < B; m++) for (i = 0; i < N / 2; i++) for (j = 0; j < N / 2; j++)
      Y[m][i][j] = 0.25 * (X[m][2 * i][2 * j] + X[m][2 * i + 1][2 * j] + X[m][2 * i][2 * j + 1] + X[m][2 * i + 1][2 * j + 1]);
#pragma endscop
}
