/* a bilinear form x' A y */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 16384
#endif
void kernel_quad(DATA_TYPE s[1], DATA_TYPE A[N][N], DATA_TYPE x[N], DATA_TYPE y[N]) {
#pragma scop
    s[0] = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            s[0] += x[i] * A[i][j] * y[j];
#pragma endscop
}
