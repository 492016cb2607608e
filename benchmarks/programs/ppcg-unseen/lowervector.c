/* a lower triangle times a vector */
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 9000
#endif

void kernel_lowervector(DATA_TYPE y[N], DATA_TYPE L[N][N], DATA_TYPE x[N])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        y[i] = 0;
        for (int j = 0; j <= i; j++)
            y[i] += L[i][j] * x[j];
    }
#pragma endscop
}
