#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 5000
#endif
void kernel_gradients(DATA_TYPE G[N][N], DATA_TYPE H[N][N], DATA_TYPE A[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 1; i < N - 1; i++) for (j = 1; j < N - 1; j++) { G[i][j] = 0.5 * (A[i+1][j] - A[i-1][j]); H[i][j] = 0.5 * (A[i][j+1] - A[i][j-1]); }
#pragma endscop
}
