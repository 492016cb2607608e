#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1600
#endif
void kernel_diagproduct(DATA_TYPE C[N][N], DATA_TYPE A[N][N], DATA_TYPE s[N], DATA_TYPE B[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) { C[i][j] = 0;
      for (k = 0; k < N; k++) C[i][j] += A[i][k] * s[k] * B[k][j]; }
#pragma endscop
}
