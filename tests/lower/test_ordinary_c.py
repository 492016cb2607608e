"""What ordinary C gives: whole kernels from small sources.

Control flow, functions and layouts of ordinary C: what is generated does what the C does.

Every kernel with its selected sizes computes what the original C computes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest

from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

GEMM = """\
void f(int m, int n, int k, double alpha, double beta, const double *A, int lda, const double *B,
       int ldb, double *C, int ldc) {
#pragma scop
  for (int j = 0; j < n; j++) {
    if (beta == 0.0) for (int i = 0; i < m; i++) C[i + j * ldc] = 0.0;
    else if (beta != 1.0) for (int i = 0; i < m; i++) C[i + j * ldc] *= beta;
    for (int l = 0; l < k; l++)
      for (int i = 0; i < m; i++)
        C[i + j * ldc] += alpha * B[l + j * ldb] * A[i + l * lda];
  }
#pragma endscop
}
"""
SYRK = """\
void f(int n, int k, double alpha, const double *A, int lda, double beta, double *C, int ldc) {
#pragma scop
  for (int j = 0; j < n; j++) {
    if (beta != 1.0) for (int i = 0; i <= j; i++) C[i + j * ldc] = beta * C[i + j * ldc];
    for (int l = 0; l < k; l++)
      if (A[j + l * lda] != 0.0) {
        double t = alpha * A[j + l * lda];
        for (int i = 0; i <= j; i++) C[i + j * ldc] += t * A[i + l * lda];
      }
  }
#pragma endscop
}
"""
TRSM = """\
void f(int m, int n, int unit, double alpha, const double *a, int lda, double *b, int ldb) {
#pragma scop
  for (int j = 0; j < n; j++) {
    if (alpha != 1.0) for (int i = 0; i < m; i++) b[i + j * ldb] *= alpha;
    for (int k = 0; k < m; k++)
      if (b[k + j * ldb] != 0.0) {
        if (!unit) b[k + j * ldb] /= a[k + k * lda];
        for (int i = k + 1; i < m; i++) b[i + j * ldb] -= b[k + j * ldb] * a[i + k * lda];
      }
  }
#pragma endscop
}
"""
GEMV = """\
void f(int m, int n, double alpha, const double *a, int lda, const double *x, int incx, double *y,
       int incy) {
#pragma scop
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) y[i * incy] += alpha * a[i + j * lda] * x[j * incx];
#pragma endscop
}
"""
EXTREMA = """\
float fabsf(float);
void f(int n, float a[n], float b[n], float most[1], int where[1], float sum[1]) {
#pragma scop
  for (int i = 0; i < n; i++) if (fabsf(b[i]) > most[0]) most[0] = fabsf(b[i]);
  for (int i = 0; i < n; i++) {
    if (b[i] > 0) sum[0] += b[i];
    if (a[i] > a[0]) { a[0] = a[i]; where[0] = i; }
  }
#pragma endscop
}
"""
LEAVING = """\
static float third(double x) { return x / 3; }
static double narrow(float x) { return x; }
static int at(int i, int n) { return n - 1 - i; }
static void twice(double *x, int from, int n) { for (int i = from; i < n; i++) x[i] *= 2; }
void f(int n, int m, double a[n], double b[n][n], double c[n]) {
#pragma scop
  for (int i = 0; i < n; i++) {
    if (i == m) continue;
    c[i] += third(a[i]) + narrow(narrow(a[at(i, n)]) + 0.1);
    if (c[i] > 1) { double t = c[i] - 1; b[i][0] = t; a[i] = -t; }
    else if (m > 3) b[i][i] += 2;
    for (int j = n - 1; j >= 0; j--) {
      if (2 * j < i) break;
      b[i][j] *= 2;
    }
  }
  twice(c, 1, m);
#pragma endscop
}
"""
CARRIED = """\
void f(int w, int h, int flag, float in[w][h], float y[w][h], float z[w][h]) {
  float p, q;
#pragma scop
  for (int i = 0; i < w; i++) {
    q = 0; p = 0;
    for (int j = 0; j < h; j++) { y[i][j] = in[i][j] + p + q; q = p; p = y[i][j]; }
  }
  for (int i = 0; i < w; i++) {
    p = 0;
    for (int j = h - 1; j >= 0; j--) { z[i][j] = p; p = in[i][j] * q; }
    if (flag == 84) for (int j = 0; j < h; j++) y[i][j] = in[i][h - 1 - j];
  }
#pragma endscop
}
"""
"""The second nest reads what the first left in ``q``; flags are no 4096."""

COUNTED_DOWN = """\
void f(int n, int m, double a[n][m], int out[4]) {
#pragma scop
  int j = 9;
  for (int i = 0; i < n; i++)
    for (j = m; j-- > 0;) a[i][j] += i;
  out[1] = j;
#pragma endscop
}
"""
"""The schedule counts upwards: values of ``j`` that nothing reads change places."""

PROGRAMS = {
    "carried": (CARRIED, {"w": 4, "h": 9, "flag": 84}),
    "counted-down": (COUNTED_DOWN, {"n": 5, "m": 9}),
    "extrema": (EXTREMA, {"n": 70}),
    "gemm": (GEMM, {"m": 5, "n": 7, "k": 3, "lda": 9, "ldb": 3, "ldc": 6}),
    "leaving": (LEAVING, {"n": 37, "m": 4}),
    "syrk": (SYRK, {"n": 6, "k": 4, "lda": 8, "ldc": 7}),
    "gemv": (GEMV, {"m": 5, "n": 9, "lda": 6, "incx": 2, "incy": 3}),
    "trsm": (TRSM, {"m": 6, "n": 5, "unit": 0, "lda": 7, "ldb": 8}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_generated_code_does_what_the_c_does(
    name: str, verify_text: Callable[..., Verification]
) -> None:
    text, sizes = PROGRAMS[name]
    small = {size: min(value, 1) for size, value in sizes.items()}
    assert verify_text(text, CodegenOptions(), [sizes, small]).ok


LOOPS_WORK = 4e5
"""Points of the box of the sizes up to which a run takes milliseconds."""


def small_sizes(program: Program) -> list[dict[str, int]]:
    """Return no extent at all, less than a tile, and up to a tile and a rest where affordable."""
    names = [parameter.name for parameter in program.parameters]
    tiles = {parameter.name: parameter.tile for parameter in program.parameters}
    small = {name: 7 + 2 * k for k, name in enumerate(names)}
    large = {name: max(tiles[name] + 3 + k, 19) for k, name in enumerate(names)}
    while points(large) > LOOPS_WORK:
        widest = max(large, key=lambda name: large[name])
        large[widest] = large[widest] * 3 // 4
    nothing = dict.fromkeys(names, 0)
    if any(kernel.reassociates for kernel in program.kernels):
        return [nothing, large]  # the bounds on rounding take a compilation for each size
    return [nothing, small, large]


def points(sizes: dict[str, int]) -> int:
    """Return the points of three loops over the longest sizes, or of a loop over each."""
    longest = sorted(sizes.values(), reverse=True)
    return (
        int(prod(longest)) if len(longest) > 2 else longest[0] ** (4 - len(longest)) * longest[-1]
    )


@pytest.mark.parametrize(
    ("kernel", "dtype", "gpu"),
    [
        ("trmm", "float", "a100"),
        *((one, "double", "h200") for one in ("atax", "jacobi-2d", "lu", "seidel-2d")),
    ],
)
def test_a_kernel_equals_the_original_where_its_text_was_not_verified_before(
    kernel: str,
    dtype: str,
    gpu: str,
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    program = generate(kernel, dtype=dtype, gpu=gpu)
    found = verify_kernel(program, small_sizes(program))
    assert (found.status, found.message) == ("ok", "")
    assert found.results[-1].compared > 0
