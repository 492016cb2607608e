// Sound in a box.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 400
#endif
#ifndef STEPS
#define STEPS 24
#endif
void kernel(DATA_TYPE p[3][N][N][N])
{
#pragma scop
    for (int t = 1; t < STEPS; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                for (int k = 1; k < N - 1; k++)
                    p[(t + 1) % 3][i][j][k] = (DATA_TYPE)1.4 * p[t % 3][i][j][k] - p[(t + 2) % 3][i][j][k]
                        + (DATA_TYPE)0.1 * (p[t % 3][i - 1][j][k] + p[t % 3][i + 1][j][k] + p[t % 3][i][j - 1][k] + p[t % 3][i][j + 1][k] + p[t % 3][i][j][k - 1] + p[t % 3][i][j][k + 1]);
#pragma endscop
}
