// What a steady wind carries along; a source drops something into each cell.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 8192
#endif
#ifndef STEPS
#define STEPS 40
#endif
void kernel(DATA_TYPE a[N][N], DATA_TYPE b[N][N], DATA_TYPE f[N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++) {
        for (int i = 1; i < N; i++)
            for (int j = 1; j < N; j++)
                b[i][j] = a[i][j] - (DATA_TYPE)0.3 * (a[i][j] - a[i - 1][j]) - (DATA_TYPE)0.4 * (a[i][j] - a[i][j - 1]) + (DATA_TYPE)0.01 * f[i][j];
        for (int i = 1; i < N; i++)
            for (int j = 1; j < N; j++)
                a[i][j] = b[i][j];
    }
#pragma endscop
}
