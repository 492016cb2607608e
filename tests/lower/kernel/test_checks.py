"""What is wrong with a kernel is found after lowering and after every transformation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.lower.instructions import ATOMICS
from eatss.lower.instructions.products import LOADS
from eatss.lower.kernel.checks import kernel_faults
from eatss.lower.kernel.instruction import WORD
from eatss.lower.kernel.nodes import (
    Argument,
    Copy,
    Declare,
    Element,
    For,
    If,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Scope,
)  # fmt: skip
from eatss.polyhedral.expression import ElementType
from eatss.program import Constant, IntExpr, Name, Program
from tests.lower.small_kernels import (
    ARRIVED,
    PARTS,
    SUMS,
    ZERO,
    N,
    at,
    buffer,
    kernel,
    loop,
    together,
)

K = Name("k")
A, B = buffer("A", "global", 8), buffer("B", "global", 8)
S, R = buffer("S", "shared", 8), buffer("r", "register")


def made(*body: Node) -> Kernel:
    passed = (
        Argument(name="n"), Argument(name="A", buffer=A),
        Argument(name="B", buffer=B, read_only=True),
    )  # fmt: skip
    return kernel(*body, arguments=passed, shared=(S,))


def steps(*body: Node, lower: IntExpr = ZERO) -> For:
    return loop("k", N, *body, lower=lower)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ((Copy(target=at(A, N), source=at(B, N)),), None),
        ((Copy(target=at(B, N), source=at(A, N)),), "B is written, and passed to be read only"),
        ((Copy(target=at(A, K), source=at(B, N)),), "nothing is called k"),
        ((steps(Copy(target=at(A, K), source=at(B, K))),), None),
        ((Scope(body=(Let(name="k", value=N),)), Let(name="x", value=K)), "nothing is called k"),
        ((If(conditions=(N,), body=(Let(name="k", value=K),)),), "nothing is called k"),
        ((Copy(target=at(A, N), source=at(S)),), "an element of S has 0 subscripts"),
        ((Copy(target=at(A, N), source=at(R)),), "register buffer r is not there"),
        ((Declare(buffer=R), Copy(target=at(A, N), source=at(R))), None),
        ((Copy(target=at(A, N), source=at(buffer("Z", "global", 8), N)),), "Z is not there"),
        (
            (Intrinsic(instruction=ATOMICS["add"], operands=(("target", (at(A, N),)),)),),
            "or more: ['value']",
        ),
    ],
)
def test_a_fault_is_said(body: tuple[Node, ...], said: str | None) -> None:
    found = kernel_faults(made(*body), ())
    assert (found == ()) == (said is None), found
    assert said is None or said in found[0]


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ((together(),), None),
        ((together(), If(conditions=(Name("whole"),), body=())), None),
        ((If(conditions=(Name("whole"),), body=()), together()), "nothing is called whole"),
        ((together(), If(conditions=(Name("part"),), body=())), "nothing is called part"),
        ((together(), If(conditions=(Name("s"),), body=())), "nothing is called s"),
        ((together(own="part"),), "nothing is called part"),
        ((together(sum_at="k"),), "nothing is called k"),
    ],
)
def test_what_a_block_is_told_of_a_sum_is_known_behind_it(
    behind: tuple[Node, ...], said: str | None
) -> None:
    own = made(Declare(buffer=SUMS), *behind)
    passed = [Argument(name=one.name, buffer=one, passed_on=True) for one in (PARTS, ARRIVED)]
    own = replace(own, arguments=(*own.arguments, *passed))
    found = kernel_faults(own, ())
    assert (found == ()) == (said is None), found
    assert said is None or said in found[0]
    assert any("parts is not there" in one for one in kernel_faults(made(*own.body), ()))


@pytest.mark.parametrize(
    ("box", "words", "said"),
    [
        ((32, 40), 2, None),
        ((32, 36), 2, "rows of H do not begin where those of matrices do"),
        ((32, 40), 4, "ldmatrix_x2 takes 4 elements for d of a lane"),
    ],
)
def test_rows_of_matrices_are_vectors_and_words_have_two_halves(
    box: tuple[int, int], words: int, said: str | None
) -> None:
    halves = replace(buffer("H", "shared", *box), element_type=ElementType.HALF)
    registers = replace(buffer("w", "register", words), element_type=WORD)
    load = Intrinsic(
        instruction=next(one for one in LOADS[2] if one.name == "ldmatrix_x2"),
        operands=(
            (
                "d",
                tuple(Element(buffer=registers, subscripts=(Constant(n),)) for n in range(words)),
            ),
            ("rows", (at(halves, N, N),)),
        ),
    )
    own = replace(made(Declare(buffer=registers), load), shared=(halves,))
    assert kernel_faults(own, ()) == (() if said is None else (said,))
    odd = replace(buffer("S", "shared", 9), element_type=ElementType.HALF)
    behind = kernel_faults(replace(own, shared=(odd, halves)), ())
    assert "wide copies stand behind S, of 18 bytes" in behind


def test_every_kernel_is_well_formed(generated_kernels: tuple[Program, list[Kernel]]) -> None:
    program, kernels = generated_kernels
    sizes = [parameter.name for parameter in program.parameters]
    for one in kernels:
        assert kernel_faults(one, sizes) == ()
