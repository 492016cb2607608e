"""The preamble compiles without warnings as CUDA and as C++ and defines what it says."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from eatss.cuda.preamble import preamble
from eatss.lower.instructions.reductions import ATOMIC_ADD, SHUFFLE_DOWN_ADD
from eatss.lower.kernel.uses import Needs
from eatss.polyhedral.expression import ElementType
from eatss.program import Operator

INTEGERS = Needs(operators=frozenset({Operator.FLOORDIV, Operator.MOD, Operator.MIN}))
FLOAT, DOUBLE_ADD = ElementType.FLOAT, (ATOMIC_ADD, ElementType.DOUBLE)
ALL = INTEGERS.joined(
    Needs(
        what=frozenset({"boxes", "static", "dynamic"}),
        instructions=frozenset({(SHUFFLE_DOWN_ADD, ElementType.INT32), DOUBLE_ADD}),
    )
)


nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@nvcc
def test_a_file_that_uses_nothing_gets_no_more_than_the_launch(tmp_path: Path) -> None:
    text = preamble(Needs())
    assert "EATSS_LAUNCH" in text
    for name in ("SHARED", "TRACKED", "shuffle", "atomic", "floordiv", "mod", "min"):
        assert name not in text
    (tmp_path / "none.cu").write_text(text + "__global__ void none(void) {}\n")
    subprocess.run(
        ["nvcc", "-Werror", "all-warnings", "-cubin", "none.cu"], check=True, cwd=tmp_path
    )


@pytest.mark.parametrize(
    ("needs", "word"),
    [
        (Needs(what=frozenset({"static"})), "define EATSS_SHARED"),
        (Needs(what=frozenset({"dynamic"})), "define EATSS_DYNAMIC_SHARED"),
        (Needs(instructions=frozenset({(SHUFFLE_DOWN_ADD, FLOAT)})), "eatss_shuffle_down"),
        (Needs(instructions=frozenset({DOUBLE_ADD})), "eatss_atomic_add"),
        (Needs(operators=frozenset({Operator.FLOORDIV})), "eatss_floordiv"),
        (Needs(operators=frozenset({Operator.MOD})), "eatss_mod"),
        (Needs(operators=frozenset({Operator.MAX})), "eatss_max"),
        (Needs(what=frozenset({"together"})), "eatss_comes_last"),
        (Needs(what=frozenset({"together"})), "eatss_wait_for_parts"),
    ],
)
def test_a_file_gets_the_definitions_it_needs_and_no_other(needs: Needs, word: str) -> None:
    assert word in preamble(needs)
    assert len(preamble(Needs())) < len(preamble(needs)) < len(preamble(ALL))


def test_integer_functions_round_as_python_does(tmp_path: Path) -> None:
    pairs = list(itertools.product(range(-9, 10), (1, 2, 3, 8)))
    checks = "\n".join(
        f"static_assert(eatss_floordiv({a}, {b}L) == {a // b} && eatss_mod({a}L, {b}) == {a % b}"
        f' && eatss_min({a}, {b}) == {min(a, b)} && eatss_max({a}, {b}L) == {max(a, b)}, "");'
        for a, b in pairs
    )
    words = "#define __host__\n#define __device__\n#define __forceinline__ inline\n"
    text = words + preamble(INTEGERS) + checks
    (tmp_path / "integers.cpp").write_text(text)
    subprocess.run(
        ["g++", "-std=c++17", "-DEATSS_CPU", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         "integers.cpp"],
        check=True, cwd=tmp_path,
    )  # fmt: skip
