"""How each node of a kernel is spelled."""

from __future__ import annotations

import math

import pytest

from eatss.cuda.kernel_printer import kernel_text
from eatss.lower.instructions import COMBINES
from eatss.lower.instructions.reductions import ATOMIC_ADD, SHUFFLE_DOWN_ADD
from eatss.lower.kernel.nodes import (
    Argument,
    Barrier,
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Source,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator

N, AT = Name("n"), Name("i")
A = Buffer(
    name="A", space="global", element_type=ElementType.DOUBLE, layout=Extents((N, Name("m")))
)
CELL = Buffer(name="c", space="global", element_type=ElementType.FLOAT, layout=Extents(()))
SCALAR = Buffer(name="alpha", space="argument", element_type=ElementType.FLOAT, layout=Extents(()))
TILE = Buffer(
    name="T",
    space="shared",
    element_type=ElementType.FLOAT,
    layout=Extents((Constant(8), Constant(33))),
)
R = Buffer(
    name="r", space="register", element_type=ElementType.DOUBLE, layout=Extents((Constant(4),))
)


def applied(operator: Operator, *operands: IntExpr) -> Apply:
    return Apply(operator, operands)


def element(buffer: Buffer, *subscripts: IntExpr) -> Element:
    return Element(buffer=buffer, subscripts=subscripts)


def lines(*body: Node, bits: int = 32, line_info: bool = False) -> list[str]:
    kernel = Kernel(
        name="k",
        threads=128,
        arguments=(),
        shared=(),
        static_shared_bytes=49152,
        index_bits=64 if bits == 64 else 32,
        body=body,
    )
    text = kernel_text(kernel, "some.c", line_info=line_info)
    head, *found, end = text.splitlines()
    assert head == 'extern "C" __global__ void __launch_bounds__(128)'
    assert end == "}"
    return [line[4:] if line.startswith("    ") else line for line in found[2:]]


BLOCK = Let(name="t", value=applied(Operator.MUL, Constant(32), Name("blockIdx.x")))


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (BLOCK, "const int t = 32 * (int)blockIdx.x;"),
        (Let(name="e", value=Name("threadIdx.y")), "const int e = threadIdx.y;"),
        (Declare(buffer=R), "double r[4];"),
        (Barrier(), "__syncthreads();"),
        (Init(target=element(R, AT), value=0), "r[i] = 0;"),
        (
            Copy(target=element(A, AT, N), source=element(R, AT)),
            "A[i * m + n] = r[i];",
        ),
        (
            Intrinsic(
                instruction=COMBINES["add"],
                operands=(("target", (element(CELL),)), ("value", (element(SCALAR),))),
            ),
            "c[0] += alpha;",
        ),
        (
            Intrinsic(
                instruction=COMBINES["fmin"],
                operands=(("target", (element(CELL),)), ("value", (element(SCALAR),))),
            ),
            "c[0] = eatss_fmin(c[0], alpha);",
        ),
        (Init(target=element(R, AT), value=math.inf), "r[i] = (1e308 * 1e308);"),
        (Init(target=element(R, AT), value=-math.inf), "r[i] = -(1e308 * 1e308);"),
        (Init(target=element(R, AT), value=math.nan), "r[i] = (1e308 * 1e308 * 0.0);"),
        (
            Copy(target=element(TILE, AT, N), source=element(CELL), condition=AT),
            "if (i) sh.T[i][n] = c[0];",
        ),
        (
            Intrinsic(
                instruction=ATOMIC_ADD,
                operands=(("target", (element(A, AT, N),)), ("value", (element(R, AT),))),
            ),
            "eatss_atomic_add(&A[i * m + n], r[i]);",
        ),
        (
            Intrinsic(
                instruction=SHUFFLE_DOWN_ADD,
                operands=(("sum", (element(R, AT),)),),
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
    kernel = Kernel(
        name="k",
        threads=64,
        arguments=(
            Argument(name="n"),
            Argument(name="A", buffer=A),
            Argument(name="c", buffer=CELL, read_only=True),
            Argument(name="alpha", buffer=SCALAR, read_only=True),
        ),
        shared=(TILE,),
        static_shared_bytes=0 if dynamic else 49152,
        index_bits=64,
        body=(),
    )
    macro = "EATSS_DYNAMIC_SHARED" if dynamic else "EATSS_SHARED"
    assert kernel_text(kernel, "some.c", line_info=False) == (
        "struct k_shared {\n    EATSS_TRACKED(float) T[8][33];\n};\n\n"
        'extern "C" __global__ void __launch_bounds__(64)\n'
        "k(long n, double *__restrict__ A, const float *__restrict__ c, float alpha)\n{\n"
        f"    {macro}(k_shared, sh);\n}}\n"
    )
