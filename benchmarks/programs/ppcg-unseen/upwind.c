/* transport by a velocity field, two steps */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef T
#define T 2
#endif
#ifndef N
#define N 4000
#endif

void kernel_upwind(DATA_TYPE Q[N][N], DATA_TYPE R[N][N], DATA_TYPE U[N][N], DATA_TYPE V[N][N])
{
#pragma scop
    for (int t = 0; t < T; t++) {
        for (int i = 1; i < N; i++)
            for (int j = 1; j < N; j++)
                R[i][j] = Q[i][j] - U[i][j] * (Q[i][j] - Q[i - 1][j]) - V[i][j] * (Q[i][j] - Q[i][j - 1]);
        for (int i = 1; i < N; i++)
            for (int j = 1; j < N; j++)
                Q[i][j] = R[i][j];
    }
#pragma endscop
}
