/* Kronecker product of two matrices */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 72
#endif
#ifndef N
#define N 80
#endif

void kernel_kronecker(DATA_TYPE K[M * N][M * N], DATA_TYPE A[M][M], DATA_TYPE B[N][N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < M; k++)
                for (int l = 0; l < N; l++)
                    K[N * i + j][N * k + l] = A[i][k] * B[j][l];
#pragma endscop
}
