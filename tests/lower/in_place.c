#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 40
#endif
void in_place(DATA_TYPE A[N][N])
{
#pragma scop
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                A[i][j] = A[i][j] - A[i][k] * A[k][j];
#pragma endscop
}
