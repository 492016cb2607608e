/* running sums along rows, in place */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 3000
#endif
#ifndef N
#define N 5000
#endif

void kernel_prefixrows(DATA_TYPE A[M][N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 1; j < N; j++)
            A[i][j] += A[i][j - 1];
#pragma endscop
}
