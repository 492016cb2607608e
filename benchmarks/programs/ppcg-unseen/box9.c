/* mean of nine neighbours, one sweep */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 6000
#endif

void kernel_box9(DATA_TYPE B[N][N], DATA_TYPE A[N][N])
{
#pragma scop
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            B[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1]
                       + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) * 0.111;
#pragma endscop
}
