"""Boxes in the same memory: in use one after another, filled anew each time, barriers between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from eatss.cuda.kernel_printer import kernel_text
from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.checks import kernel_faults, overlay_faults
from eatss.lower.kernel.nodes import (
    Argument,
    Barrier,
    Copy,
    Element,
    For,
    If,
    Kernel,
    Node,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator
from tests.lower.small_kernels import (
    THREAD,
    ZERO,
    N,
    at,
    buffer,
    kernel,
    loop,
    only_if,
)

SYNC = Barrier()
GROUPS = (("S",), ("T",))
doubles = partial(buffer, of=ElementType.DOUBLE)
A = at(doubles("A", "global", 8), N)


def tile(name: str) -> Element:
    return at(doubles(name, "shared", 8), N)


def fill(name: str, *, ahead: bool = False) -> Copy:
    return Copy(target=tile(name), source=A, ahead=ahead)


def use(name: str) -> Copy:
    return Copy(target=A, source=tile(name))


def turns(*body: Node, counter: str = "k", end: IntExpr = N) -> For:
    return loop(counter, end, *body)


def nest(name: str) -> For:
    return turns(fill(name), use(name))


def tiles(*body: Node) -> For:
    return loop("t", Name("m"), *body)


def where(condition: IntExpr, *body: Node, orelse: tuple[Node, ...] = ()) -> If:
    return only_if(condition, body=body, orelse=orelse)


BOTH = "T lies where S does, and both are in use at the same time"
LOST = "{} is read, and may hold what another box held before"
ODD = Apply(Operator.REMAINDER, (Name("k"), Constant(2)))
EVEN = Apply(Operator.EQ, (Apply(Operator.REMAINDER, (Name("t"), Constant(2))), Constant(0)))


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ((nest("S"), nest("T")), ()),
        ((fill("S"), fill("T"), use("S"), use("T")), (BOTH,)),
        ((fill("S"), nest("T"), use("S")), (BOTH,)),
        ((nest("S"), fill("T"), turns(use("S"), use("T"))), (BOTH,)),
        ((Copy(target=tile("S"), source=tile("T")),), (BOTH, LOST.format("T"))),
        # loops around both: what a turn reads, it has filled
        ((tiles(nest("S"), nest("T")),), ()),
        ((tiles(use("S"), fill("S"), nest("T")),), (LOST.format("S"),)),
        ((tiles(where(EVEN, fill("S")), use("S"), nest("T")),), (LOST.format("S"),)),
        ((tiles(where(EVEN, fill("S"), orelse=(fill("S"),)), use("S"), nest("T")),), ()),
        ((tiles(where(EVEN, fill("S"), orelse=(use("S"),)), nest("T")),), (LOST.format("S"),)),
        # the first turn is copied in front of the loop, where there is such a turn
        ((tiles(where(ZERO < N, fill("S")), turns(use("S")), nest("T")),), ()),
        ((tiles(turns(fill("S")), use("S"), nest("T")),), (LOST.format("S"),)),
        # a counter of the same name is another one
        (
            (tiles(turns(where(ODD, fill("S"))), turns(where(ODD, use("S"))), nest("T")),),
            (LOST.format("S"),),
        ),
        ((tiles(turns(where(ODD, fill("S")), where(ODD, use("S"))), nest("T")),), ()),
        # which thread copies what is not asked
        ((tiles(where(THREAD < N, fill("S")), use("S"), nest("T")),), ()),
    ],
)
def test_what_boxes_may_lose(body: tuple[Node, ...], faults: tuple[str, ...]) -> None:
    assert overlay_faults(body, GROUPS) == faults
    assert overlay_faults(body, ()) == ()


def made(
    body: Sequence[Node], sizes: dict[str, int], overlaid: tuple[tuple[str, ...], ...]
) -> Kernel:
    passed = (Argument(name="n"), Argument(name="m"), Argument(name="A", buffer=A.buffer))
    tiles = [doubles(name, "shared", size) for name, size in sizes.items()]
    return replace(kernel(*body, arguments=passed, shared=tiles), overlaid=overlaid)


def test_a_block_has_the_memory_of_the_largest_group() -> None:
    sizes = {"S": 8, "T": 8, "U": 5, "V": 3}
    own = made((nest("S"), nest("T")), sizes, (("S", "U"), ("T",)))
    assert own.shared_bytes == (8 + 5 + 3) * 8
    assert replace(own, overlaid=()).shared_bytes == (8 + 8 + 5 + 3) * 8
    assert kernel_faults(own, ()) == ()
    wrong = replace(own, body=(fill("S"), fill("T"), use("S"), use("T")))
    assert BOTH in kernel_faults(wrong, ())
    text = kernel_text(own, "f.c", line_info=False).partition("\n\n")[0]
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
    inner = [turns(fill(name), SYNC, use(name), SYNC) for name in ("S", "T")]
    early = "T is written while other threads may still read it"
    assert barrier_faults(inner, GROUPS) == ()
    first, then = (fill("S"), SYNC, use("S")), (fill("T"), SYNC, use("T"))
    assert barrier_faults((*first, *then)) == ()
    assert barrier_faults((*first, *then), GROUPS) == (early,)
    assert barrier_faults((*first, SYNC, *then), GROUPS) == ()
    assert barrier_faults((fill("S"), fill("T")), GROUPS) == (  # equal places, other elements
        "T is written by several threads at a time",
    )
