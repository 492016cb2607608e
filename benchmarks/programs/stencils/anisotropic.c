// Perona and Malik's diffusion: edges of an image stay.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4096
#endif
#ifndef STEPS
#define STEPS 40
#endif
void kernel(DATA_TYPE a[2][N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                a[(t + 1) % 2][i][j] = a[t % 2][i][j]
                    + (DATA_TYPE)0.2 * ((a[t % 2][i - 1][j] - a[t % 2][i][j]) / ((DATA_TYPE)1.0 + (a[t % 2][i - 1][j] - a[t % 2][i][j]) * (a[t % 2][i - 1][j] - a[t % 2][i][j]))
                        + (a[t % 2][i + 1][j] - a[t % 2][i][j]) / ((DATA_TYPE)1.0 + (a[t % 2][i + 1][j] - a[t % 2][i][j]) * (a[t % 2][i + 1][j] - a[t % 2][i][j]))
                        + (a[t % 2][i][j - 1] - a[t % 2][i][j]) / ((DATA_TYPE)1.0 + (a[t % 2][i][j - 1] - a[t % 2][i][j]) * (a[t % 2][i][j - 1] - a[t % 2][i][j]))
                        + (a[t % 2][i][j + 1] - a[t % 2][i][j]) / ((DATA_TYPE)1.0 + (a[t % 2][i][j + 1] - a[t % 2][i][j]) * (a[t % 2][i][j + 1] - a[t % 2][i][j])));
#pragma endscop
}
