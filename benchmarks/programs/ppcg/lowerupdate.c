#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 2000
#endif
#ifndef M
#define M 400
#endif
void kernel_lowerupdate(DATA_TYPE C[N][N], DATA_TYPE A[N][M])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j <= i; j++) for (k = 0; k < M; k++) C[i][j] -= A[i][k] * A[j][k];
#pragma endscop
}
