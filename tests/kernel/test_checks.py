"""What is wrong with a kernel is found after lowering and after every transformation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.instructions import ATOMIC_ADD
from eatss.kernel.checks import kernel_faults
from eatss.kernel.layout import Layout
from eatss.kernel.nodes import (
    Argument,
    Buffer,
    Copy,
    Declare,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    Perform,
    Scope,
)  # fmt: skip
from eatss.program import Apply, Constant, Name, Operator, Program
from eatss.scops import ElementType

N, K = Name("n"), Name("k")


def buffer(name: str, space: str, *extents: int) -> Buffer:
    return Buffer(
        name=name,
        space=space,  # type: ignore[arg-type]
        element_type=ElementType.FLOAT,
        layout=Layout(tuple(map(Constant, extents))),
    )


A, B = buffer("A", "global", 8), buffer("B", "global", 8)
S, R = buffer("S", "shared", 8), buffer("r", "register")


def at(one: Buffer, *subscripts: Name) -> Element:
    return Element(buffer=one, subscripts=subscripts)


def kernel(*body: Node) -> Kernel:
    return Kernel(
        name="k",
        threads=32,
        arguments=(
            Argument(name="n"),
            Argument(name="A", buffer=A),
            Argument(name="B", buffer=B, read_only=True),
        ),
        shared=(S,),
        static_shared_bytes=1024,
        index_bits=32,
        body=body,
    )


def loop(*body: Node, lower: Name | Constant = Constant(0)) -> For:  # noqa: B008
    below = Apply(Operator.LT, (K, N))
    return For(counter="k", lower=lower, condition=below, step=Constant(1), body=body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ((Copy(target=at(A, N), source=at(B, N)),), None),
        ((Copy(target=at(B, N), source=at(A, N)),), "B is written, and passed to be read only"),
        ((Copy(target=at(A, K), source=at(B, N)),), "nothing is called k"),
        ((loop(Copy(target=at(A, K), source=at(B, K))),), None),
        ((loop(lower=K),), "nothing is called k"),
        ((Scope(body=(Let(name="k", value=N),)), Let(name="x", value=K)), "nothing is called k"),
        ((If(conditions=(N,), body=(Let(name="k", value=K),)),), "nothing is called k"),
        ((Copy(target=at(A, N), source=at(S)),), "S has 1 dimensions, and an element 0"),
        ((Copy(target=at(A, N), source=at(R)),), "register buffer r is not there"),
        ((Declare(buffer=R), Copy(target=at(A, N), source=at(R))), None),
        ((Copy(target=at(A, N), source=at(buffer("T", "shared", 8), N)),), "T is not there"),
        ((Copy(target=at(A, N), source=at(buffer("Z", "global", 8), N)),), "Z is not there"),
        ((Perform(instruction=ATOMIC_ADD, operands=(("target", (at(A, N),)),)),), "or more: value"),
    ],
)
def test_a_fault_is_said(body: tuple[Node, ...], said: str | None) -> None:
    found = kernel_faults(kernel(*body), ())
    assert (found == ()) == (said is None), found
    assert said is None or said in found[0]


def test_what_the_launch_relies_on_stays() -> None:
    before = kernel()
    assert kernel_faults(before, (), before=before) == ()
    for changed, said in (
        (replace(before, threads=64), "its threads changed"),
        (replace(before, name="other"), "its name changed"),
        (replace(before, arguments=()), "its arguments changed"),
        (replace(before, shared=(buffer("S", "shared", 300),)), "1200 bytes of shared memory"),
    ):
        (found,) = kernel_faults(changed, (), before=before)
        assert said in found


def test_every_kernel_is_well_formed(made: tuple[Program, list[Kernel]]) -> None:
    program, kernels = made
    sizes = [parameter.name for parameter in program.parameters]
    for one in kernels:
        assert kernel_faults(one, sizes) == ()
