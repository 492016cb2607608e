/* pressure and two velocities, four steps */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef T
#define T 4
#endif
#ifndef N
#define N 3000
#endif

void kernel_acoustics(DATA_TYPE P[N][N], DATA_TYPE U[N][N], DATA_TYPE V[N][N], DATA_TYPE K[N][N])
{
#pragma scop
    for (int t = 0; t < T; t++) {
        for (int i = 0; i < N - 1; i++)
            for (int j = 0; j < N - 1; j++) {
                U[i][j] -= 0.4 * (P[i + 1][j] - P[i][j]);
                V[i][j] -= 0.4 * (P[i][j + 1] - P[i][j]);
            }
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                P[i][j] -= K[i][j] * (U[i][j] - U[i - 1][j] + V[i][j] - V[i][j - 1]);
    }
#pragma endscop
}
