#ifndef DATA_TYPE
#define DATA_TYPE double
#endif
#ifndef N
#define N 4000
#endif
#ifndef M
#define M 2000
#endif
#ifndef P
#define P 12
#endif
void kernel_polynomials(DATA_TYPE Y[N][M], DATA_TYPE X[M], DATA_TYPE C[N][P])
{
    int i, j, k, l, m;
#pragma scop
    for (i = 0; i < N; i++) for (j = 0; j < M; j++) { Y[i][j] = C[i][P - 1];
      for (k = 1; k < P; k++) Y[i][j] = Y[i][j] * X[j] + C[i][P - 1 - k]; }
#pragma endscop
}
