"""What is said of loops that generated code runs in few threads: what binds and what frees them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import Severity
from eatss.frontend.options import Reading
from eatss.session.session import Session
from tests.end_to_end.in_process import eatss as command_line

SQUARE = "int n, double A[n][n], double B[n][n], double x[n], double y[n]"
LONG = "double x[4000000], double y[4000000]"

BACK = """
for (int i = n - 1; i >= 0; i--) {
  x[i] = y[i];
  for (int j = i + 1; j < n; j++) x[i] -= A[i][j] * x[j];
  x[i] /= A[i][i];
}"""
MAXIMUM = """
y[0] = A[0][0];
for (int i = 0; i < n; i++)
  for (int j = 0; j < n; j++) y[0] = y[0] > A[i][j] ? y[0] : A[i][j];"""

SLOW = {
    "sum in the wrong order": (SQUARE, BACK, "runs in one thread because of 'x'"),
    "recurrence": (
        LONG,
        "for (int i = 1; i < 4000000; i++) y[i] = x[i] + 0.5 * y[i - 1];",
        "its iterations depend on one another",
    ),
    "maximum of another form": (SQUARE, MAXIMUM, "runs in one thread because of 'y'"),
}
FAST = {
    "sum in the right order": (
        SQUARE,
        BACK.replace("j = i + 1; j < n; j++", "j = n - 1; j > i; j--"),
    ),
    "recurrence of rows": (
        SQUARE,
        "for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) A[i][j] += A[i][j - 1];",
    ),
    "few rows of running sums": (
        "float A[4][1000000]",
        "for (int i = 0; i < 4; i++) for (int j = 1; j < 1000000; j++) A[i][j] += A[i][j - 1];",
    ),
    "sweeps": (
        SQUARE,
        "for (int t = 0; t < n; t++) {"
        "for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + x[i + 1];"
        "for (int i = 1; i < n - 1; i++) x[i] = y[i]; }",
    ),
}


def source(arguments: str, loops: str) -> str:
    return (
        f"#include <math.h>\nvoid f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    )


def notes(text: str) -> tuple[eatss.Diagnostic, ...]:
    return Session(text, Reading(), cut="eatss").notes


@pytest.mark.parametrize("case", SLOW)
def test_a_slow_loop_is_told_with_what_binds_it_and_what_frees_it(case: str) -> None:
    arguments, loops, why = SLOW[case]
    (note,) = notes(source(arguments, loops))
    assert (note.code, note.severity) == ("EATSS-A010", Severity.NOTE)
    assert why in note.message
    assert "write it as a scan" in (note.hint or "")


@pytest.mark.parametrize("case", FAST)
def test_nothing_is_told_of_others(case: str) -> None:
    assert notes(source(*FAST[case])) == ()


def test_code_and_selection_tell_it(tmp_path: Path) -> None:
    path = tmp_path / "most.c"
    path.write_text(source(SQUARE, MAXIMUM))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        selection = eatss.select(path, gpu="h200", target="cuda")
    text = "runs in one thread because of 'y' (line 7)"
    assert sum(text in str(one.message) for one in told) == 1
    assert sum(text in one.message for one in selection.warnings) == 1
    run = command_line("codegen", path, "-g", "h200", "-f", "json")
    assert text in " ".join(run.stderr.split())
    (kernel,) = [one for one in json.loads(run.stdout)["kernels"] if "S1" in one["statements"]]
    (note,) = [one for one in kernel["notes"] if "the loop" in one]
    assert text in note
    assert "else run inner loops from what is computed first to what is last" in note
