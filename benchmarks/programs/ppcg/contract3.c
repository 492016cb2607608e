#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 160
#endif
void kernel_contract3(DATA_TYPE C[N][N][N], DATA_TYPE A[N][N][N], DATA_TYPE B[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) for (k = 0; k < N; k++) { C[i][j][k] = 0;
      for (l = 0; l < N; l++) C[i][j][k] += A[i][l][k] * B[l][j]; }
#pragma endscop
}
