// Diffusion on a torus: what is beyond an edge is on the other side.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4096
#endif
#ifndef STEPS
#define STEPS 20
#endif
void kernel(DATA_TYPE a[2][N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                a[(t + 1) % 2][i][j] = (DATA_TYPE)0.25 * (a[t % 2][(i + N - 1) % N][j] + a[t % 2][(i + 1) % N][j]
                    + a[t % 2][i][(j + N - 1) % N] + a[t % 2][i][(j + 1) % N]);
#pragma endscop
}
