#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1024
#endif
#ifndef L
#define L 15
#endif
void kernel_correlate(DATA_TYPE R[N][N], DATA_TYPE X[N + L][N + L], DATA_TYPE W[L][L])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) { R[i][j] = 0;
      for (k = 0; k < L; k++) for (l = 0; l < L; l++) R[i][j] += X[i + k][j + l] * W[k][l]; }
#pragma endscop
}
