"""How each node of a kernel is spelled; the preamble defines what texts use, and no more."""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.cuda.kernel_printer import kernel_text
from eatss.cuda.preamble import preamble
from eatss.lower.instructions import COMBINES, SHUFFLES
from eatss.lower.kernel.nodes import (
    Argument,
    Copy,
    Declare,
    Init,
    Intrinsic,
    Let,
    Node,
    Source,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, Name, Operator
from tests.lower.small_kernels import N, at, buffer, kernel

AT = Name("i")
A = buffer("A", "global", N, Name("m"), of=ElementType.DOUBLE)
CELL, SCALAR = buffer("c", "global"), buffer("alpha", "argument")
TILE, R = buffer("T", "shared", 8, 33), buffer("r", "register", 4, of=ElementType.DOUBLE)


def lines(*body: Node, bits: int = 32, line_info: bool = False) -> list[str]:
    own = replace(kernel(*body), index_bits=64 if bits == 64 else 32)
    head, *found, end = kernel_text(own, "some.c", line_info=line_info).splitlines()
    assert head == 'extern "C" __global__ void __launch_bounds__(32)'
    assert end == "}"
    return [line[4:] if line.startswith("    ") else line for line in found[2:]]


BLOCK = Let(name="t", value=Apply(Operator.MUL, (Constant(32), Name("blockIdx.x"))))


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (BLOCK, "const int t = 32 * (int)blockIdx.x;"),
        (Declare(buffer=R), "double r[4];"),
        (
            Copy(target=at(A, AT, N), source=at(R, AT)),
            "A[i * m + n] = r[i];",
        ),
        (
            Intrinsic(
                instruction=COMBINES["fmin"],
                operands=(("target", (at(CELL),)), ("value", (at(SCALAR),))),
            ),
            "c[0] = eatss_fmin(c[0], alpha);",
        ),
        (Init(target=at(R, AT), value=-math.inf), "r[i] = -(1e308 * 1e308);"),
        (Init(target=at(R, AT), value=math.nan), "r[i] = (1e308 * 1e308 * 0.0);"),
        (
            Copy(target=at(TILE, AT, N), source=at(CELL), condition=AT),
            "if (i) sh.T[i][n] = c[0];",
        ),
        (
            Intrinsic(
                instruction=SHUFFLES["add"],
                operands=(("sum", (at(R, AT),)),),
                immediates=(("delta", 8), ("width", 16)),
            ),
            "r[i] += eatss_shuffle_down(r[i], 8, 16);",
        ),
        (Source(line=7, text="x = 1;"), "// some.c:7: x = 1;"),
    ],
)
def test_a_node_is_a_line(node: Node, said: str) -> None:
    assert lines(node) == [said]


def test_indices_of_64_bits_are_long_but_for_narrow_ones() -> None:
    assert lines(BLOCK, bits=64) == ["const long t = 32 * (long)blockIdx.x;"]
    assert lines(Let(name="p", value=AT, narrow=True), bits=64) == ["const int p = i;"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_shared_memory_and_arguments_stand_in_front(*, dynamic: bool) -> None:
    passed = (
        Argument(name="n"), Argument(name="A", buffer=A),
        Argument(name="c", buffer=CELL, read_only=True),
        Argument(name="alpha", buffer=SCALAR, read_only=True),
    )  # fmt: skip
    own = kernel(arguments=passed, shared=(TILE,))
    own = replace(own, static_shared_bytes=0 if dynamic else 49152, index_bits=64)
    macro = "EATSS_DYNAMIC_SHARED" if dynamic else "EATSS_SHARED"
    assert kernel_text(own, "some.c", line_info=False) == (
        "struct f_shared {\n    EATSS_TRACKED(float) T[8][33];\n};\n\n"
        'extern "C" __global__ void __launch_bounds__(32)\n'
        "f(long n, double *__restrict__ A, const float *__restrict__ c, float alpha)\n{\n"
        f"    {macro}(f_shared, sh);\n}}\n"
    )


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
