// Sound in a medium, of fourth order: three levels of time and a velocity a cell.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 6000
#endif
#ifndef STEPS
#define STEPS 48
#endif
void kernel(DATA_TYPE p[3][N][N], DATA_TYPE c[N][N])
{
#pragma scop
    for (int t = 1; t < STEPS; t++)
        for (int i = 2; i < N - 2; i++)
            for (int j = 2; j < N - 2; j++)
                p[(t + 1) % 3][i][j] = (DATA_TYPE)2.0 * p[t % 3][i][j] - p[(t + 2) % 3][i][j] + (DATA_TYPE)0.02 * c[i][j] * c[i][j]
                    * ((DATA_TYPE)16.0 * (p[t % 3][i - 1][j] + p[t % 3][i + 1][j] + p[t % 3][i][j - 1] + p[t % 3][i][j + 1])
                        - (p[t % 3][i - 2][j] + p[t % 3][i + 2][j] + p[t % 3][i][j - 2] + p[t % 3][i][j + 2]) - (DATA_TYPE)60.0 * p[t % 3][i][j]);
#pragma endscop
}
