#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 8000
#endif
#ifndef M
#define M 2000
#endif
void kernel_unitrows(DATA_TYPE Y[N][M], DATA_TYPE X[N][M], DATA_TYPE s[N])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) { s[i] = 0;
      for (j = 0; j < M; j++) s[i] += X[i][j] * X[i][j];
      for (j = 0; j < M; j++) Y[i][j] = X[i][j] / sqrt(s[i] + 1e-9); }
#pragma endscop
}
