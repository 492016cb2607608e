// Diffusion in a medium that is not the same everywhere: five coefficients a cell.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 6000
#endif
#ifndef STEPS
#define STEPS 30
#endif
void kernel(DATA_TYPE a[N][N], DATA_TYPE b[N][N], DATA_TYPE c[N][N], DATA_TYPE n[N][N],
            DATA_TYPE s[N][N], DATA_TYPE w[N][N], DATA_TYPE e[N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++) {
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                b[i][j] = c[i][j] * a[i][j] + n[i][j] * a[i - 1][j] + s[i][j] * a[i + 1][j]
                    + w[i][j] * a[i][j - 1] + e[i][j] * a[i][j + 1];
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                a[i][j] = b[i][j];
    }
#pragma endscop
}
