/* rows divided by their largest element */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 4000
#endif
#ifndef N
#define N 4000
#endif

void kernel_peaknorm(DATA_TYPE Y[M][N], DATA_TYPE X[M][N], DATA_TYPE m[M])
{
#pragma scop
    for (int i = 0; i < M; i++) {
        m[i] = X[i][0];
        for (int j = 1; j < N; j++)
            m[i] = m[i] > X[i][j] ? m[i] : X[i][j];
        for (int j = 0; j < N; j++)
            Y[i][j] = X[i][j] / (m[i] + 1);
    }
#pragma endscop
}
