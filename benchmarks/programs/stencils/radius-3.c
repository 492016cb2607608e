// A star of radius 3.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 8192
#endif
#ifndef STEPS
#define STEPS 40
#endif
void kernel(DATA_TYPE a[2][N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 3; i < N - 3; i++)
            for (int j = 3; j < N - 3; j++)
                a[(t + 1) % 2][i][j] = (DATA_TYPE)0.4 * a[t % 2][i][j]
                    + (DATA_TYPE)0.08 * (a[t % 2][i - 1][j] + a[t % 2][i + 1][j] + a[t % 2][i][j - 1] + a[t % 2][i][j + 1])
                    + (DATA_TYPE)0.05 * (a[t % 2][i - 2][j] + a[t % 2][i + 2][j] + a[t % 2][i][j - 2] + a[t % 2][i][j + 2])
                    + (DATA_TYPE)0.02 * (a[t % 2][i - 3][j] + a[t % 2][i + 3][j] + a[t % 2][i][j - 3] + a[t % 2][i][j + 3]);
#pragma endscop
}
