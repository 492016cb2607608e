"""Boxes in the same memory: in use one after another, filled anew each time, barriers between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from eatss.cuda.kernel_printer import kernel_text
from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.checks import kernel_faults, overlay_faults
from eatss.lower.kernel.nodes import Argument, Copy, Kernel, Node
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, equals
from tests.lower.small_kernels import THREAD, ZERO, N, buffer, element, kernel, nodes

GROUPS = (("S",), ("T",))
doubles = partial(buffer, of=ElementType.DOUBLE)
A = element("A")
BOTH = "tiles that lie in the same memory are in use at the same time"
LOST = "{} is read, and may hold what another box held before"


def remainder(name: str) -> IntExpr:
    return Apply(Operator.REMAINDER, (Name(name), Constant(2)))


NAMED = {"odd": remainder("k"), "even": equals(remainder("t"), 0), "some": ZERO < N}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("loop k { fill S use S } loop k { fill T use T }", ()),
        ("fill S fill T use S use T", (BOTH,)),
        ("fill S loop k { fill T use T } use S", (BOTH,)),
        ("loop k { fill S use S } fill T loop k { use S use T }", (BOTH,)),
        ("copy S T", (BOTH, LOST.format("T"))),
        # loops around both: what a turn reads, it has filled
        ("loop t { loop k { fill S use S } NEST }", ()),
        ("loop t { use S fill S NEST }", (LOST.format("S"),)),
        ("loop t { if even { fill S } use S NEST }", (LOST.format("S"),)),
        ("loop t { if even { fill S } else { fill S } use S NEST }", ()),
        ("loop t { if even { fill S } else { use S } NEST }", (LOST.format("S"),)),
        # the first turn is copied in front of the loop, where there is such a turn
        ("loop t { if some { fill S } loop k { use S } NEST }", ()),
        ("loop t { loop k { fill S } use S NEST }", (LOST.format("S"),)),
        # a counter of the same name is another one
        (
            "loop t { loop k { if odd { fill S } } loop k { if odd { use S } } NEST }",
            (LOST.format("S"),),
        ),
        ("loop t { loop k { if odd { fill S } if odd { use S } } NEST }", ()),
        # which thread copies what is not asked
        ("loop t { if thread { fill S } use S NEST }", ()),
    ],
)
def test_what_boxes_may_lose(text: str, faults: tuple[str, ...]) -> None:
    text = text.replace("NEST", "loop k { fill T use T }")
    body = nodes(text, **NAMED, thread=THREAD < N)
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
    body = nodes("loop k { fill S use S } loop k { fill T use T }")
    own = made(body, sizes, (("S", "U"), ("T",)))
    assert own.shared_bytes == (8 + 5 + 3) * 8
    assert replace(own, overlaid=()).shared_bytes == (8 + 8 + 5 + 3) * 8
    assert kernel_faults(own, ()) == ()
    wrong = replace(own, body=nodes("fill S fill T use S use T"))
    assert BOTH in kernel_faults(wrong, ())
    text = kernel_text(own, "f.c", line_info=False).partition("\n\n")[0]
    assert " ".join(text.split()) == (
        "struct f_shared { union { struct { EATSS_OVERLAID(double, 1) S[8]; "
        "EATSS_OVERLAID(double, 1) U[5]; }; struct { EATSS_OVERLAID(double, 2) T[8]; }; }; "
        "EATSS_TRACKED(double) V[3]; };"
    )


def test_wide_copies_begin_at_whole_vectors_of_their_group() -> None:
    sizes = {"U": 5, "S": 8, "T": 8, "V": 8}
    wide = {name: Copy(target=element(name), source=A, width=2) for name in "TV"}
    body = nodes("wide use T", wide=wide["T"])
    assert kernel_faults(made(body, sizes, (("U", "S"), ("T",))), ()) == ()
    said = ("wide copies stand behind U, of 40 bytes",)
    assert kernel_faults(made(body, sizes, (("S",), ("U", "T"))), ()) == said
    apart = nodes("wide use V", wide=wide["V"])
    assert kernel_faults(made(apart, sizes, (("U", "S"), ("T",))), ()) == said


def test_a_barrier_stands_between_boxes_in_the_same_memory() -> None:
    early = "T is written while other threads may still read it"
    inner = nodes("loop k { fill S sync use S sync } loop k { fill T sync use T sync }")
    assert barrier_faults(inner, GROUPS) == ()
    found = nodes("fill S sync use S fill T sync use T")
    assert barrier_faults(found) == ()
    assert barrier_faults(found, GROUPS) == (early,)
    assert barrier_faults(nodes("fill S sync use S sync fill T sync use T"), GROUPS) == ()
    # equal places, other elements
    together = "T is written by several threads at a time"
    assert barrier_faults(nodes("fill S fill T"), GROUPS) == (together,)
