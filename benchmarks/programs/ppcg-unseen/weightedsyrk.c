/* lower half of A diag(w) A' */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 2200
#endif
#ifndef K
#define K 1800
#endif

void kernel_weightedsyrk(DATA_TYPE C[N][N], DATA_TYPE A[N][K], DATA_TYPE w[K])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            for (int k = 0; k < K; k++)
                C[i][j] += A[i][k] * w[k] * A[j][k];
#pragma endscop
}
