"""``eatss.codegen`` in Python."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import eatss
from eatss.verify import verify

SCALE = """\
void scale(int n, double a[n], double b[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = 2 * b[i];
#pragma endscop
}
"""


@pytest.mark.parametrize("first", ["import eatss.cuda.generate"])
def test_function_and_package_share_their_name_whatever_is_imported_first(first: str) -> None:
    script = (
        f"{first}\nimport eatss, inspect\nfrom eatss import codegen\n"
        f"program = eatss.codegen({SCALE!r}, gpu='h200')\n"
        f"assert program == codegen({SCALE!r}, gpu='h200')\n"
        "import eatss.lower.recipe as options\n"
        "assert options.CodegenOptions() and 'gpu' in inspect.signature(codegen).parameters\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_threads_generate_the_same_text() -> None:
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(lambda _: eatss.codegen(SCALE, gpu="h200"), range(8)))
    assert all(program == programs[0] for program in programs)


def test_an_arm_that_is_not_taken_restricts_no_size(tmp_path: Path) -> None:
    text = (
        "void f(int n, double A[n], double B[n], double C[n][n]) {\n#pragma scop\n"
        "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++)\n"
        "      C[i][j] += (i > 0 ? A[i - 1] : 0.5) * (j + 1 < n ? B[j + 1] : B[0]);\n"
        "#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    assert not any("arrays" in a.message for a in program.entries[0].assumptions)
    found = verify(tmp_path, device="cpu", sizes=({"n": 1}, {"n": 70}))
    assert [(r.status, r.compared > 0) for r in found.results] == [("ok", True)] * 2


def test_code_for_a_given_size_refuses_others(tmp_path: Path) -> None:
    text = (
        "void f(int n, int m, double A[n][m]) {\n#pragma scop\n"
        "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n"
        "      A[i][j] += 1;\n#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", parameters={"n": 40}, output=tmp_path)
    said = [one.message for one in program.entries[0].assumptions]
    assert "this code is for n = 40 only" in said
    assert not any("m =" in one for one in said)
    found = verify(tmp_path, device="cpu", sizes=({"n": 40, "m": 7}, {"n": 39, "m": 7}))
    assert [(r.status, r.refused) for r in found.results] == [("ok", False), ("ok", True)]


def test_a_temporary_that_nothing_needs_at_some_sizes_is_no_error_there(tmp_path: Path) -> None:
    text = (
        "void f(int n, int m, double B[n][6], double C[n][6]) {\n#pragma scop\n"
        "  for (int i = n - 1; i > -1; i--)\n"
        "    if (-1 == i * 3 + m * 3 + 5) {\n      double t = 0;\n"
        "      for (int c = 0; c < 6; c++) t += B[i][c];\n"
        "      for (int c = 0; c < 6; c++) C[i][c] = t * B[i][c];\n    }\n#pragma endscop\n}\n"
    )
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    assert program.entries[0].temporaries
    found = verify(tmp_path, device="cpu", sizes=({"n": 6, "m": 4}, {"n": 6, "m": -3}))
    assert [(r.status, r.compared > 0) for r in found.results] == [("ok", True)] * 2
