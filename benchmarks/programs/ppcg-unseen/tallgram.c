/* Gram matrix of a tall matrix */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 40000
#endif
#ifndef N
#define N 96
#endif

void kernel_tallgram(DATA_TYPE G[N][N], DATA_TYPE A[M][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            G[i][j] = 0;
            for (int k = 0; k < M; k++)
                G[i][j] += A[k][i] * A[k][j];
        }
#pragma endscop
}
