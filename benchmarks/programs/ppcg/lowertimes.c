#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1600
#endif
#ifndef M
#define M 1600
#endif
void kernel_lowertimes(DATA_TYPE Y[N][M], DATA_TYPE L[N][N], DATA_TYPE X[N][M])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < M; j++) { Y[i][j] = 0;
      for (k = 0; k <= i; k++) Y[i][j] += L[i][k] * X[k][j]; }
#pragma endscop
}
