#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4000
#endif
void kernel_linesweep(DATA_TYPE X[N][N], DATA_TYPE B[N][N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 1; i < N; i++) for (j = 0; j < N; j++) X[i][j] = (B[i][j] - 0.4 * X[i - 1][j]) / 2.5;
#pragma endscop
}
