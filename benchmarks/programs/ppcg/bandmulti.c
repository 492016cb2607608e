#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 20000
#endif
#ifndef W
#define W 17
#endif
#ifndef C
#define C 512
#endif
void kernel_bandmulti(DATA_TYPE Y[N][C], DATA_TYPE A[N][W], DATA_TYPE X[N + W][C])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < C; j++) { Y[i][j] = 0;
      for (k = 0; k < W; k++) Y[i][j] += A[i][k] * X[i + k][j]; }
#pragma endscop
}
