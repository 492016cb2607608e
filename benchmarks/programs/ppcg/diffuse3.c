#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 300
#endif
void kernel_diffuse3(DATA_TYPE B[N][N][N], DATA_TYPE A[N][N][N], DATA_TYPE K[N][N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 1; i < N - 1; i++) for (j = 1; j < N - 1; j++) for (k = 1; k < N - 1; k++)
      B[i][j][k] = A[i][j][k] + 0.1 * ((K[i][j][k] + K[i+1][j][k]) * (A[i+1][j][k] - A[i][j][k]) - (K[i][j][k] + K[i-1][j][k]) * (A[i][j][k] - A[i-1][j][k])
       + (K[i][j][k] + K[i][j+1][k]) * (A[i][j+1][k] - A[i][j][k]) - (K[i][j][k] + K[i][j-1][k]) * (A[i][j][k] - A[i][j-1][k])
       + (K[i][j][k] + K[i][j][k+1]) * (A[i][j][k+1] - A[i][j][k]) - (K[i][j][k] + K[i][j][k-1]) * (A[i][j][k] - A[i][j][k-1]));
#pragma endscop
}
