#ifndef N
#define N 40
#endif
void ul(double A[N][N], double x[N], double b[N])
{
#pragma scop
    for (int k = N - 1; k >= 0; k--) {
        for (int j = 0; j < k; j++)
            A[k][j] = A[k][j] / A[k][k];
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++)
                A[i][j] -= A[i][k] * A[k][j];
    }
    for (int i = N - 1; i >= 0; i--) {
        x[i] = b[i];
        for (int j = N - 1; j > i; j--)
            x[i] -= A[i][j] * x[j];
        x[i] = x[i] / A[i][i];
    }
#pragma endscop
}
