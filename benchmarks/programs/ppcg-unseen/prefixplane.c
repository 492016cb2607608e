/* an integral image by running sums along both loops */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4096
#endif

void kernel_prefixplane(DATA_TYPE S[N][N], DATA_TYPE X[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 1; j < N; j++)
            X[i][j] += X[i][j - 1];
    for (int i = 1; i < N; i++)
        for (int j = 0; j < N; j++)
            S[i][j] = S[i - 1][j] + X[i][j];
#pragma endscop
}
