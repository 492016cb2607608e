/* a quadratic form for many vectors */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 60000
#endif
#ifndef D
#define D 48
#endif

void kernel_quadratic(DATA_TYPE q[N], DATA_TYPE X[N][D], DATA_TYPE M[D][D])
{
#pragma scop
    for (int n = 0; n < N; n++) {
        q[n] = 0;
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++)
                q[n] += X[n][i] * M[i][j] * X[n][j];
    }
#pragma endscop
}
