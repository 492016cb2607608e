// Two fields that diffuse and feed on each other (Gray and Scott).
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4800
#endif
#ifndef STEPS
#define STEPS 40
#endif
#define AROUND(f) (f[t % 2][i - 1][j] + f[t % 2][i + 1][j] + f[t % 2][i][j - 1] + f[t % 2][i][j + 1] - (DATA_TYPE)4.0 * f[t % 2][i][j])
#define REACTS (u[t % 2][i][j] * v[t % 2][i][j] * v[t % 2][i][j])
void kernel(DATA_TYPE u[2][N][N], DATA_TYPE v[2][N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                u[(t + 1) % 2][i][j] = u[t % 2][i][j] + (DATA_TYPE)0.16 * AROUND(u) - REACTS + (DATA_TYPE)0.04 * ((DATA_TYPE)1.0 - u[t % 2][i][j]);
                v[(t + 1) % 2][i][j] = v[t % 2][i][j] + (DATA_TYPE)0.08 * AROUND(v) + REACTS - (DATA_TYPE)0.1 * v[t % 2][i][j];
            }
#pragma endscop
}
