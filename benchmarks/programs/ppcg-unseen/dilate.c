/* largest of windows of seven along columns */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 5000
#endif
#ifndef N
#define N 4000
#endif

void kernel_dilate(DATA_TYPE Y[M][N], DATA_TYPE X[M + 6][N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            Y[i][j] = X[i][j];
            for (int k = 1; k < 7; k++)
                Y[i][j] = Y[i][j] > X[i + k][j] ? Y[i][j] : X[i + k][j];
        }
#pragma endscop
}
