// The largest of nine neighbours, which fades.
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 8192
#endif
#ifndef STEPS
#define STEPS 48
#endif
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define ROW(p, i, j) MAX(MAX(a[p][i][j - 1], a[p][i][j]), a[p][i][j + 1])
void kernel(DATA_TYPE a[2][N][N])
{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                a[(t + 1) % 2][i][j] = (DATA_TYPE)0.99 * MAX(MAX(ROW(t % 2, i - 1, j), ROW(t % 2, i, j)), ROW(t % 2, i + 1, j));
#pragma endscop
}
