"""Small programs and kernels, each with one difficulty of its own, verified on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.api import codegen
from eatss.base.diagnostics import InputError
from eatss.program import Program
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.lower.checking import checked, right

PROGRAMS = {
    "assignments inside each other, that convert": """
        void f(int n, double x[n], float z[n], int k[n]) {
        #pragma scop
          for (int i = 0; i < n; i++) {
            x[i] += z[i] = k[i] = 2.75 * i;
            z[i] = (x[i] *= 0.1);
          }
        #pragma endscop
        }""",
    "a subscript divided in a loop that starts at a quotient": """
        void f(int N, int M, double A[M + N][M + N]) {
        #pragma scop
          for (int i = M / 2; i < M / 2 + 1; ++i)
            for (int k = i; k < N; k++) A[k / 2][1] = 1;
        #pragma endscop
        }""",
    "a size with the name of an operator of isl": """
        #define MIN(a, b) ((a) < (b) ? (a) : (b))
        #ifndef min
        #define min 40
        #endif
        void f(int A[min + 2], int D[min + 2]) {
        #pragma scop
          for (int i = 1; i < min; ++i) {
            A[i] = 1;
            for (int l = 1; l < MIN(min, i); l++) D[l] += 1;
          }
        #pragma endscop
        }""",
    "a scalar set before a split sum and used after it": """
        void f(int n, int m, double A[n][m], double x[n], double y[n]) {
        #pragma scop
          for (int i = 0; i < n; i++) {
            double t = x[i] * 3;
            y[i] = 0;
            for (int j = 0; j < m; j++) y[i] += A[i][j];
            y[i] *= t;
          }
        #pragma endscop
        }""",
    "a read before the sum that overwrites what it reads": """
        void f(int n, int m, double A[n][m], double x[n], double y[n]) {
        #pragma scop
          for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++) y[i] += A[i][j] * x[i];
            x[i] = 1;
          }
        #pragma endscop
        }""",
    "initialisations that the serial loop alone puts in order": """
        #ifndef N
        #define N 24
        #endif
        void f(float A[N + 4][N + 4], float B[N + 4][N + 4], float C[N + 4],
               float x[N + 4][N + 4]) {
        #pragma scop
          for (int q = 0; q < N; q++)
            for (int k = 0; k <= q; k++)
              if (q == k) {
                A[k + 2][q] += A[k + 2][k] - C[k];
                C[q + 1] += (float)(k + 0) + x[q][k + 1];
              } else {
                float t = (A[k + 1][q] - 2.0) / (A[q][k] + 4);
                B[k + 1][k + 2] = t * 1.25f + A[k][k];
              }
        #pragma endscop
        }""",
    "a size that must be at least one for the first column to exist": """
        void f(int n, int m, double A[n][m], double mx[n]) {
        #pragma scop
          for (int i = 0; i < n; i++) {
            mx[i] = A[i][0];
            for (int j = 1; j < m; j++)
              if (j < 2 * i) mx[i] = mx[i] > A[i][j] ? mx[i] : A[i][j];
          }
        #pragma endscop
        }""",
    "statements in no loop beside sums over loops that become one": """
        void f(int n, int m, double X[n][m], double Y[n][m], double a[1], double b[1]) {
        #pragma scop
          a[0] = 0;
          b[0] = 0;
          for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[0] += X[i][j];
          for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) b[0] += Y[i][j];
          a[0] = a[0] / 2;
          b[0] = b[0] / 3;
        #pragma endscop
        }""",
    "an array whose number of elements has a remainder": """
        void f(int n, int m, double *C) {
        #pragma scop
          for (int i = 0; i < n; i += 2)
            for (int j = 0; j < m; j++)
              C[i * m + j] = 1;
        #pragma endscop
        }""",
    "an unsigned size": """
        void f(unsigned n, double a[n], double b[n]) {
        #pragma scop
          for (unsigned i = 0; i < n; i++) a[i] = b[i] * 2;
        #pragma endscop
        }""",
    "unsigned sizes in bounds with offsets": """
        void f(unsigned n, unsigned long m, float A[n], float B[n], float C[m], float D[m]) {
        #pragma scop
          for (unsigned i = 0; i < n; i++) {
            A[i] = A[i] + 1.0f;
            if (i + 5 < n) B[i] = A[i] * 2.0f;
          }
          for (unsigned long i = 0; i < m; i++) {
            C[i] = C[i] + 1.0f;
            for (unsigned long j = 0; j + 7 < m; j++) D[i] = D[i] + C[i] * 0.5f;
          }
        #pragma endscop
        }""",
    "a sum that every step rounds to float": """
        void f(int n, int m, double A[n][m], double z[n]) {
        #pragma scop
          for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) z[i] = (float)(z[i] + A[i][j]);
        #pragma endscop
        }""",
    "a scalar set anew in every serial iteration": """
        #ifndef N
        #define N 20
        #endif
        void f(int A[N + 9][N + 9], int B[N + 9][N + 9], int c[N + 9]) {
        #pragma scop
          for (int s = 0; s < N; s++)
            for (int t = 1; t < N; t++)
              for (int i = 1; i < N; i += 2) {
                int v = A[i][i];
                B[i + 1][2] = v + c[s % 3];
              }
        #pragma endscop
        }""",
    "a dot product": """
        #ifndef N
        #define N 100000
        #endif
        void f(const double a[N], const double b[N], double out[1]) {
        #pragma scop
          out[0] = 0;
          for (int i = 0; i < N; i++) out[0] += a[i] * b[i];
        #pragma endscop
        }""",
    "names that the generated text would like for itself": """
        void f(int n, double stream[n], double sh[n][n], double eatss_x[n], double status[n]) {
        #pragma scop
          for (int t0 = 0; t0 < n; t0++)
            for (int threadIdx = 0; threadIdx < n; threadIdx++)
              sh[t0][threadIdx] += stream[t0] * eatss_x[threadIdx] + status[t0];
        #pragma endscop
        }""",
    "four parallel loops, counting down, in steps": """
        #ifndef N
        #define N 9
        #endif
        void f(int A[N][N][N][N], int B[N][N][N][N]) {
        #pragma scop
          for (int i = N - 1; i >= 0; i--)
            for (int j = 0; j < N; j += 2)
              for (int k = 0; k < N; k++)
                for (int l = i; l < N; l++)
                  A[i][j][k][l] = B[l][k][j][i] - i + 3 * l;
        #pragma endscop
        }""",
    "two regions, one of which sums": """
        void f(int n, double a[n], double s[1]) {
        #pragma scop
          for (int i = 0; i < n; i++) s[0] -= a[i];
        #pragma endscop
        }
        void g(int n, double a[n][n]) {
        #pragma scop
          for (int i = 1; i < n; i++)
            for (int j = 0; j < n; j++) a[j][i] = a[j][i - 1] + 1;
        #pragma endscop
        }""",
    "a split sum in a scalar of the iteration": """
        void f(int n, int B[n + 4][n + 13], int D[2 * n + 1][n + 6], int x[n + 13], int y[n + 13]) {
        #pragma scop
          for (int i = 0; i < n; i++) {
            int s = D[2 * i][i + 5];
            for (int j = 0; j < n; j++) s -= B[j + 3][i] + x[j];
            y[i] = s;
            for (int j = 2; j < 13; j++) B[i][j] = x[j] * y[i + j];
          }
        #pragma endscop
        }""",
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_it_computes_what_the_original_computes(title: str, tmp_path: Path) -> None:
    program = codegen(PROGRAMS[title], gpu="h200", output=tmp_path / "out")
    most = 70 if all(parameter.kind == "argument" for parameter in program.parameters) else 20
    names = [parameter.name for parameter in program.parameters]
    sizes = [{name: least + 2 * k for k, name in enumerate(names)} for least in (1, 9, most)]
    right(verify(tmp_path / "out", device="cpu", sizes=sizes))


@pytest.mark.parametrize(
    ("array", "loop", "code"),
    [
        ("a[9]", "for (int i = 0; i < 0; i++) a[i] = 0;", "EATSS-P006"),  # does nothing
        ("D[0][4]", "for (int i = 0; i < n; i++) D[0][0] += 1;", "EATSS-P007"),  # no elements
    ],
)
def test_what_has_nothing_to_do_is_refused(array: str, loop: str, code: str) -> None:
    text = f"void f(int n, double {array}) {{\n#pragma scop\n{loop}\n#pragma endscop\n}}\n"
    with pytest.raises(InputError) as caught:
        codegen(text, gpu="h200")
    assert [finding.code for finding in caught.value.diagnostics] == [code]


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
GUARDED = """\
static float third(double x) { return x / 3; }
static double narrow(float x) { return x; }
static int at(int i, int n) { return n - 1 - i; }
void f(int n, int m, double a[n], double b[n][n], double c[n]) {
#pragma scop
  for (int i = 0; i < n; i++) if (i != m) {
    c[i] += third(a[i]) + narrow(narrow(a[at(i, n)]) + 0.1);
    if (c[i] > 1) { double t = c[i] - 1; b[i][0] = t; a[i] = -t; }
    else if (m > 3) b[i][i] += 2;
    for (int j = n - 1; j >= 0; j--) if (2 * j >= i) b[i][j] *= 2;
  }
  for (int i = 1; i < m; i++) c[i] *= 2;
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


ORDINARY_PROGRAMS = {
    "carried": (CARRIED, {"w": 4, "h": 9, "flag": 84}),
    "extrema": (EXTREMA, {"n": 70}),
    "gemm": (GEMM, {"m": 5, "n": 7, "k": 3, "lda": 9, "ldb": 3, "ldc": 6}),
    "leaving": (GUARDED, {"n": 37, "m": 4}),
    "trsm": (TRSM, {"m": 6, "n": 5, "unit": 0, "lda": 7, "ldb": 8}),
}


@pytest.mark.parametrize("name", ORDINARY_PROGRAMS)
def test_generated_code_does_what_the_c_does(name: str, tmp_path: Path) -> None:
    text, sizes = ORDINARY_PROGRAMS[name]
    checked(text, tmp_path, [sizes, {size: min(value, 1) for size, value in sizes.items()}])


@pytest.mark.parametrize(
    ("kernel", "dtype", "gpu", "sizes"),
    [
        ("trmm", "float", "a100", [{"NI": 0}, {"NI": 7}, {"NI": 73}]),
        ("atax", "double", "h200", [{"NX": 0, "NY": 0}, {"NX": 259, "NY": 132}]),
        ("lu", "double", "h200", [{"N": 0}, {"N": 7}, {"N": 73}]),
    ],
)
def test_a_kernel_equals_the_original_where_its_text_was_not_verified_before(
    kernel: str,
    dtype: str,
    gpu: str,
    sizes: list[dict[str, int]],
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    found = right(verify_kernel(generate(kernel, dtype=dtype, gpu=gpu), sizes))
    assert found.results[-1].compared > 0
