/* A matrix product written with macros of PolyBench's shape, for these tests. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "polybench_shape.h"

static void init(int ni, DATA_TYPE *alpha, DATA_TYPE POLYBENCH_2D(C, NI, NJ, ni, ni))
{
  *alpha = 1.5;
  C[0][ni - 1] = (DATA_TYPE)(ni % 7) / ni;
}

static void kernel(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta,
                   DATA_TYPE POLYBENCH_2D(C, NI, NJ, ni, nj),
                   DATA_TYPE POLYBENCH_2D(A, NI, NK, ni, nk),
                   DATA_TYPE POLYBENCH_2D(B, NK, NJ, nk, nj),
                   DATA_TYPE POLYBENCH_1D(norm, NI, ni))
{
  int i, j, k;

#pragma scop
  for (i = 0; i < _PB_NI; i++) {
    norm[i] = SCALAR_VAL(0.0);
    for (j = 0; j < _PB_NJ; j++)
      C[i][j] *= beta;
    for (k = 0; k < _PB_NK; k++)
      for (j = 0; j < _PB_NJ; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
    for (j = 0; j < _PB_NJ; j++)
      norm[i] += C[i][j] * C[i][j];
    norm[i] = SQRT_FUN(norm[i]) <= SCALAR_VAL(0.1) ? SCALAR_VAL(1.0) : SQRT_FUN(norm[i]);
  }
#pragma endscop
}

int main(int argc, char **argv)
{
  int ni = NI, nj = NJ, nk = NK;
  POLYBENCH_2D_ARRAY_DECL(C, DATA_TYPE, NI, NJ, ni, nj);
  POLYBENCH_2D_ARRAY_DECL(A, DATA_TYPE, NI, NK, ni, nk);
  POLYBENCH_2D_ARRAY_DECL(B, DATA_TYPE, NK, NJ, nk, nj);
  DATA_TYPE alpha, norm[NI];
  init(ni, &alpha, POLYBENCH_ARRAY(C));
  kernel(ni, nj, nk, alpha, 1.2, POLYBENCH_ARRAY(C), POLYBENCH_ARRAY(A), POLYBENCH_ARRAY(B), norm);
  if (argc > 42 && !strcmp(argv[0], ""))
    fprintf(stderr, "%0.2lf\n", (*C)[0][0]);
  free((void *)C);
  return 0;
}
