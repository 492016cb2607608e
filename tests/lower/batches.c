#ifndef N
#define N 40
#endif
#ifndef M
#define M 5
#endif
void batches(double A[M][N][N])
{
#pragma scop
    for (int m = 0; m < M; m++)
        for (int k = 0; k < N; k++) {
            for (int i = k + 1; i < N; i++)
                A[m][i][k] /= A[m][k][k];
            for (int i = k + 1; i < N; i++)
                for (int j = k + 1; j < N; j++)
                    A[m][i][j] -= A[m][i][k] * A[m][k][j];
        }
#pragma endscop
}
