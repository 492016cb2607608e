// Waves in shallow water, linear: height and two velocities.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 6000
#endif
#ifndef STEPS
#define STEPS 40
#endif
void kernel(DATA_TYPE h[N][N], DATA_TYPE u[N][N], DATA_TYPE v[N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N - 1; i++)
            for (int j = 0; j < N; j++)
                u[i][j] -= (DATA_TYPE)0.3 * (h[i + 1][j] - h[i][j]);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N - 1; j++)
                v[i][j] -= (DATA_TYPE)0.3 * (h[i][j + 1] - h[i][j]);
        for (int i = 1; i < N; i++)
            for (int j = 1; j < N; j++)
                h[i][j] -= (DATA_TYPE)0.3 * (u[i][j] - u[i - 1][j] + v[i][j] - v[i][j - 1]);
    }
#pragma endscop
}
