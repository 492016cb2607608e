"""The preamble compiles without warnings as CUDA and as C++ and defines what it says."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from eatss.cuda.preamble import preamble

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@nvcc
def test_a_file_that_uses_nothing_gets_no_more_than_the_launch(tmp_path: Path) -> None:
    text = preamble("")
    assert "EATSS_LAUNCH" in text
    for name in ("SHARED", "TRACKED", "shuffle", "atomic", "floordiv", "mod", "min"):
        assert name not in text
    (tmp_path / "none.cu").write_text(text + "__global__ void none(void) {}\n")
    subprocess.run(
        ["nvcc", "-Werror", "all-warnings", "-cubin", "none.cu"], check=True, cwd=tmp_path
    )


def test_integer_functions_round_as_python_does(tmp_path: Path) -> None:
    pairs = list(itertools.product(range(-9, 10), (1, 2, 3, 8)))
    checks = "\n".join(
        f"static_assert(eatss_floordiv({a}, {b}L) == {a // b} && eatss_mod({a}L, {b}) == {a % b}"
        f' && eatss_min({a}, {b}) == {min(a, b)} && eatss_max({a}, {b}L) == {max(a, b)}, "");'
        for a, b in pairs
    )
    words = "#define __host__\n#define __device__\n#define __forceinline__ inline\n"
    text = words + preamble(checks) + checks
    (tmp_path / "integers.cpp").write_text(text)
    subprocess.run(
        ["g++", "-std=c++17", "-DEATSS_CPU", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         "integers.cpp"],
        check=True, cwd=tmp_path,
    )  # fmt: skip
