#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 6000
#endif
void kernel_transadd(DATA_TYPE B[N][N], DATA_TYPE A[N][N], DATA_TYPE C[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) B[j][i] = A[i][j] + 0.5 * C[j][i];
#pragma endscop
}
