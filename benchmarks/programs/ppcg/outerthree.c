#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 512
#endif
void kernel_outerthree(DATA_TYPE T[N][N][N], DATA_TYPE a[N], DATA_TYPE b[N], DATA_TYPE c[N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) for (k = 0; k < N; k++) T[i][j][k] = a[i] * b[j] * c[k] + T[i][j][k];
#pragma endscop
}
