"""Barriers are put where threads meet: enough of them, and none that could go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.barriers import barrier_faults, barriers_in, without_barrier
from eatss.lower.kernel.nodes import Barrier, Buffer, Copy, Element, Extents, For, If, Node, Scope
from eatss.lower.transform.barriers import with_barriers
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, Name, Operator

N = Name("n")


@cache
def buffer(name: str) -> Buffer:
    return Buffer(
        name=name,
        space="global" if name == "A" else "shared",
        element_type=ElementType.FLOAT,
        layout=Extents((Constant(8),)),
    )


def element(name: str) -> Element:
    return Element(buffer=buffer(name), subscripts=(N,))


def fill(name: str) -> Copy:
    return Copy(target=element(name), source=element("A"))


def use(name: str) -> Copy:
    return Copy(target=element("A"), source=element(name))


def loop(*body: Node) -> For:
    below = Apply(Operator.LT, (Name("k"), N))
    return For(counter="k", lower=Constant(0), condition=below, step=Constant(1), body=body)


SYNC = Barrier()


def test_between_a_definition_and_its_use() -> None:
    assert with_barriers([fill("S"), fill("T"), use("S"), use("T")]) == (
        fill("S"), fill("T"), SYNC, use("S"), use("T")
    )  # fmt: skip
    assert with_barriers([fill("S"), fill("T")]) == (fill("S"), fill("T"))


def test_before_the_next_turn_of_a_loop() -> None:
    assert with_barriers([loop(fill("S"), use("S"))]) == (loop(fill("S"), SYNC, use("S"), SYNC),)
    outer = with_barriers([loop(loop(fill("S"), use("S")))])
    assert barriers_in(outer) == 2


def bodies(depth: int) -> st.SearchStrategy[list[Node]]:
    names = st.sampled_from(["S", "T", "U"])
    leaf = st.one_of(names.map(fill), names.map(use))
    if depth == 0:
        return st.lists(leaf, max_size=4)
    inner = bodies(depth - 1)
    make: Callable[[Sequence[Node]], For] = lambda body: loop(*body)  # noqa: E731
    nested = st.one_of(
        inner.map(make),
        inner.map(lambda body: Scope(body=tuple(body))),
        st.builds(
            lambda one, other: If(conditions=(N,), body=tuple(one), orelse=tuple(other)),
            inner,
            inner,
        ),
    )
    return st.lists(st.one_of(leaf, nested), max_size=4)


@given(bodies(2))
def test_barriers_are_enough_and_none_can_go(body: list[Node]) -> None:
    found = with_barriers(body)
    assert barrier_faults(found) == ()
    for at in range(barriers_in(found)):
        assert barrier_faults(without_barrier(found, at))
    left = found
    while barriers_in(left):
        left = without_barrier(left, 0)
    assert left == tuple(body)
