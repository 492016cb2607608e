"""Originals that do more than their region, or need what other files define, are compared with."""

from __future__ import annotations

from pathlib import Path

import eatss
from eatss.program import load_program
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.refusals import refusing

SIZES = ({"n": 37},)

PART = """
#include <math.h>
void *allocated(unsigned long elements);
void started(void);
#if !defined(N) && !defined(STEPS)
#define N 64
#define STEPS 3
#define ROUNDS(steps) ((steps) - 1)
#endif
#ifndef PADDING
#define PADDING 0
#endif
static void kernel(int n, double a[N + PADDING][N + PADDING], double mean[N + PADDING], double *out)
{
  double x[n][n];
  const double eps = 0.5;
  double sum = 0;
  int i, j;
  for (i = 0; i < n; i++) {
    mean[i] = 4.0;
    for (j = 0; j < n; j++) x[i][j] = a[i][j] = 1.0;
  }
#pragma scop
  for (i = 0; i < n; i++) {
    for (j = 0; j < n; j++) {
      x[i][j] += a[i][j] * eps;
      mean[i] += x[i][j];
    }
    sum += mean[i];
  }
#pragma endscop
  out[0] = sum;
  for (i = 0; i < n; i++) mean[i] = x[i][i] = 0;
}
int main(void)
{
  double (*a)[N] = allocated(N * N), *mean = allocated(ROUNDS(STEPS) * N), out;
  started();
  kernel(N, a, mean, &out);
  return 0;
}
"""


def generated(text: str, folder: Path, **defines: int) -> Path:
    eatss.codegen(text, gpu="h200", output=folder, defines=defines)
    return folder


def verified(folder: Path) -> Verification:
    return verify(folder, device="cpu", sizes=SIZES, timeout_s=30)


def test_a_region_is_compared_whatever_its_function_does_around_it(tmp_path: Path) -> None:
    found = verified(generated(PART, tmp_path))
    assert found.status == "ok", found.message
    assert found.results[0].compared > 37 * 37


def test_a_wrong_local_result_of_a_region_is_found(tmp_path: Path) -> None:
    folder = generated(PART, tmp_path)
    original = folder / "kernel.c"
    original.write_text(PART.replace("x[i][j] += a[i][j]", "x[i][j] += a[j][i]"))
    assert verified(folder).status == "wrong result"


BY_VALUE = """
void sums(float first, int n, float x[n], short count, float unused, double sum)
{
#pragma scop
  for (int i = 0; i < n; i++) {
    sum += first * x[i];
    count += i;
    x[i] = first;
  }
#pragma endscop
}
"""


def test_a_parameter_by_value_that_a_region_writes_is_compared(tmp_path: Path) -> None:
    folder = generated(BY_VALUE, tmp_path)
    assert verified(folder).status == "ok"
    (folder / "sums.c").write_text(BY_VALUE.replace("sum += first", "sum -= first"))
    assert verified(folder).status == "wrong result"
    arguments = load_program(folder).entries[0].arguments
    assert [one.name for one in arguments if one.source == "local"] == ["count", "sum"]
    assert [one.position for one in arguments] == [0, 1, 2, 3, 4, 5]


def test_a_function_that_may_end_before_its_region_is_not_compared(tmp_path: Path) -> None:
    text = PART.replace("#pragma scop", "if (n > 9) return;\n#pragma scop")
    with refusing("EATSS-V005", "'kernel' ends before its region at"):
        verified(generated(text, tmp_path))


def test_a_function_of_another_file_that_the_original_needs_is_named(tmp_path: Path) -> None:
    text = PART.replace("double sum = 0;", "double sum = 0; started();")
    with refusing("EATSS-V005", "it uses 'started', defined elsewhere"):
        verified(generated(text, tmp_path))


def test_a_size_that_the_function_computes_cannot_be_chosen(tmp_path: Path) -> None:
    text = PART.replace("int i, j;", "int i, j, m = n - 1;").replace(
        "i < n; i++) {\n    for (j = 0; j < n; j++) {",
        "i < m; i++) {\n    for (j = 0; j < n; j++) {",
    )
    with refusing("EATSS-V005", "size 'm' is a local variable of 'kernel'"):
        verified(generated(text, tmp_path))
