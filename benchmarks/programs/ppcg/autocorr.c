#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef B
#define B 512
#endif
#ifndef N
#define N 4096
#endif
#ifndef L
#define L 64
#endif
void kernel_autocorr(DATA_TYPE R[B][L], DATA_TYPE X[B][N + L])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < B; i++) for (j = 0; j < L; j++) { R[i][j] = 0;
      for (k = 0; k < N; k++) R[i][j] += X[i][k] * X[i][k + j]; }
#pragma endscop
}
