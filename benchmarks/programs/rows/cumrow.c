/* running sums along rows */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef M
#define M 16384
#endif
#ifndef N
#define N 8192
#endif
void kernel_cumrow(DATA_TYPE s[M][N], DATA_TYPE x[M][N]) {
#pragma scop
    for (int i = 0; i < M; i++) {
        s[i][0] = x[i][0];
        for (int j = 1; j < N; j++)
            s[i][j] = s[i][j - 1] + x[i][j];
    }
#pragma endscop
}
