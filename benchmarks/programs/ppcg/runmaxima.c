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
void kernel_runmaxima(DATA_TYPE Y[N][M], DATA_TYPE X[N][M])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) { Y[i][0] = X[i][0];
      for (j = 1; j < M; j++) Y[i][j] = fmax(Y[i][j - 1], X[i][j]); }
#pragma endscop
}
