"""Boxes in the same memory: in use one after another, filled anew each time, barriers between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eatss.cuda.kernel_printer import kernel_text
from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.checks import kernel_faults, overlay_faults
from eatss.lower.kernel.nodes import (
    Argument,
    Barrier,
    Buffer,
    Copy,
    Element,
    Extents,
    For,
    If,
    Kernel,
    Let,
    Node,
    Space,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator

N, THREAD = Name("n"), Name("threadIdx.x")
SYNC = Barrier()
GROUPS = (("S",), ("T",))


def buffer(name: str, size: int = 8, space: Space = "shared") -> Buffer:
    layout = Extents((Constant(size),))
    return Buffer(name=name, space=space, element_type=ElementType.DOUBLE, layout=layout)


A = Element(buffer=buffer("A", space="global"), subscripts=(N,))


def at(name: str) -> Element:
    return Element(buffer=buffer(name), subscripts=(N,))


def fill(name: str, *, ahead: bool = False) -> Copy:
    return Copy(target=at(name), source=A, ahead=ahead)


def use(name: str) -> Copy:
    return Copy(target=A, source=at(name))


def below(counter: IntExpr, end: IntExpr = N) -> IntExpr:
    return Apply(Operator.LT, (counter, end))


def loop(*body: Node, counter: str = "k", end: IntExpr = N) -> For:
    condition = below(Name(counter), end)
    return For(counter=counter, lower=Constant(0), condition=condition, step=Constant(1), body=body)


def nest(name: str) -> For:
    return loop(fill(name), use(name))


def tiles(*body: Node) -> For:
    return loop(*body, counter="t", end=Name("m"))


def only_if(condition: IntExpr, *body: Node, orelse: tuple[Node, ...] = ()) -> If:
    return If(conditions=(condition,), body=body, orelse=orelse)


BOTH = "T lies where S does, and both are in use at the same time"
LOST = "{} is read, and may hold what another box held before"
ODD = Apply(Operator.REMAINDER, (Name("k"), Constant(2)))
EVEN = Apply(Operator.EQ, (Apply(Operator.REMAINDER, (Name("t"), Constant(2))), Constant(0)))


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ((nest("S"), nest("T")), ()),
        ((fill("S"), loop(use("S")), fill("T"), use("T")), ()),
        ((fill("S"), fill("T"), use("S"), use("T")), (BOTH,)),
        ((fill("S"), nest("T"), use("S")), (BOTH,)),
        ((nest("S"), fill("T"), loop(use("S"), use("T"))), (BOTH,)),
        ((loop(fill("S"), fill("T"), use("S"), use("T")),), (BOTH,)),
        ((Copy(target=at("S"), source=at("T")),), (BOTH, LOST.format("T"))),
        # loops around both: what a turn reads, it has filled
        ((tiles(nest("S"), nest("T")),), ()),
        ((tiles(use("S"), fill("S"), nest("T")),), (LOST.format("S"),)),
        ((tiles(only_if(EVEN, fill("S")), use("S"), nest("T")),), (LOST.format("S"),)),
        ((tiles(only_if(EVEN, fill("S")), only_if(EVEN, use("S")), nest("T")),), ()),
        ((tiles(only_if(EVEN, fill("S"), orelse=(fill("S"),)), use("S"), nest("T")),), ()),
        ((tiles(only_if(EVEN, nest("S"), orelse=(nest("T"),))),), ()),
        ((tiles(only_if(EVEN, fill("S"), orelse=(use("S"),)), nest("T")),), (LOST.format("S"),)),
        # the first turn is copied in front of the loop, where there is such a turn
        ((tiles(only_if(below(Constant(0)), fill("S")), loop(use("S")), nest("T")),), ()),
        ((tiles(only_if(below(Constant(0), Constant(4)), fill("S")), use("S"), nest("T")),), ()),
        ((tiles(loop(fill("S")), use("S"), nest("T")),), (LOST.format("S"),)),
        ((tiles(loop(fill("S"), counter="e", end=Constant(4)), use("S"), nest("T")),), ()),
        # a counter of the same name is another one
        (
            (tiles(loop(only_if(ODD, fill("S"))), loop(only_if(ODD, use("S"))), nest("T")),),
            (LOST.format("S"),),
        ),
        ((tiles(loop(only_if(ODD, fill("S")), only_if(ODD, use("S"))), nest("T")),), ()),
        # which thread copies what is not asked
        ((tiles(only_if(below(THREAD), fill("S")), use("S"), nest("T")),), ()),
        ((tiles(Let(name="x", value=N), nest("S"), SYNC, nest("T")),), ()),
    ],
)
def test_what_boxes_may_lose(body: tuple[Node, ...], faults: tuple[str, ...]) -> None:
    assert overlay_faults(body, GROUPS) == faults
    assert overlay_faults(body, ()) == ()


def made(
    body: Sequence[Node], sizes: dict[str, int], overlaid: tuple[tuple[str, ...], ...]
) -> Kernel:
    return Kernel(
        name="f",
        threads=32,
        arguments=(Argument(name="n"), Argument(name="m"), Argument(name="A", buffer=A.buffer)),
        shared=tuple(buffer(name, size) for name, size in sizes.items()),
        static_shared_bytes=48 << 10,
        index_bits=32,
        body=tuple(body),
        overlaid=overlaid,
    )


def test_a_block_has_the_memory_of_the_largest_group() -> None:
    sizes = {"S": 8, "T": 8, "U": 5, "V": 3}
    kernel = made((nest("S"), nest("T")), sizes, (("S", "U"), ("T",)))
    assert kernel.shared_bytes == (8 + 5 + 3) * 8
    assert replace(kernel, overlaid=()).shared_bytes == (8 + 8 + 5 + 3) * 8
    assert kernel_faults(kernel, ()) == ()
    wrong = replace(kernel, body=(fill("S"), fill("T"), use("S"), use("T")))
    assert BOTH in kernel_faults(wrong, ())
    text = kernel_text(kernel, "f.c", line_info=False).partition("\n\n")[0]
    assert " ".join(text.split()) == (
        "struct f_shared { union { struct { EATSS_OVERLAID(double, 1) S[8]; "
        "EATSS_OVERLAID(double, 1) U[5]; }; struct { EATSS_OVERLAID(double, 2) T[8]; }; }; "
        "EATSS_TRACKED(double) V[3]; };"
    )


def wide(name: str) -> Copy:
    return replace(fill(name), width=2)


def test_wide_copies_begin_at_whole_vectors_of_their_group() -> None:
    sizes = {"U": 5, "S": 8, "T": 8, "V": 8}
    body = (wide("T"), use("T"))
    assert kernel_faults(made(body, sizes, (("U", "S"), ("T",))), ()) == ()
    said = ("wide copies stand behind U, of 40 bytes",)
    assert kernel_faults(made(body, sizes, (("S",), ("U", "T"))), ()) == said
    apart = (wide("V"), use("V"))
    assert kernel_faults(made(apart, sizes, (("U", "S"), ("T",))), ()) == said


def test_a_barrier_stands_between_boxes_in_the_same_memory() -> None:
    inner = [loop(fill(name), SYNC, use(name), SYNC) for name in ("S", "T")]
    early = "T is written while other threads may still read it"
    assert barrier_faults(inner, GROUPS) == ()
    first, then = (fill("S"), SYNC, use("S")), (fill("T"), SYNC, use("T"))
    assert barrier_faults((*first, *then)) == ()
    assert barrier_faults((*first, *then), GROUPS) == (early,)
    assert barrier_faults((*first, SYNC, *then), GROUPS) == ()
    assert barrier_faults((fill("S"), fill("T")), GROUPS) == (  # equal places, other elements
        "T is written by several threads at a time",
    )
