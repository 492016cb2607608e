#include <math.h>
#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 1024
#endif
#ifndef M
#define M 1024
#endif
#ifndef K
#define K 256
#endif
void kernel_chisquare(DATA_TYPE R[N][M], DATA_TYPE A[N][K], DATA_TYPE B[M][K])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < M; j++) { R[i][j] = 0;
      for (k = 0; k < K; k++) R[i][j] += (A[i][k] - B[j][k]) * (A[i][k] - B[j][k]) / (fabs(A[i][k]) + fabs(B[j][k]) + 1.0); }
#pragma endscop
}
