/* a step of Haar's wavelets along rows */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 6000
#endif
#ifndef N
#define N 3000
#endif

void kernel_haar(DATA_TYPE L[M][N], DATA_TYPE H[M][N], DATA_TYPE X[M][2 * N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            L[i][j] = 0.5 * (X[i][2 * j] + X[i][2 * j + 1]);
            H[i][j] = 0.5 * (X[i][2 * j] - X[i][2 * j + 1]);
        }
#pragma endscop
}
