/* a matrix changed by an outer product, and its rows scaled */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 6000
#endif
#ifndef N
#define N 5000
#endif

void kernel_rankone(DATA_TYPE A[M][N], DATA_TYPE x[M], DATA_TYPE y[N], DATA_TYPE s[M])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            A[i][j] = s[i] * (A[i][j] - x[i] * y[j]);
#pragma endscop
}
