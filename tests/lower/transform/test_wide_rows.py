"""Rows of registers are stored in vectors where those lie beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import (
    Aligned,
    Copy,
    For,
    If,
    Let,
    Node,
)
from eatss.lower.transform.copy_ways import with_vectorised_stores
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    multiplied,
    total,
)
from tests.lower.small_kernels import (
    Machine,
    at,
    buffer,
    kernel,
    loop,
    place,
)

ROWS = 4
SIZE = Name("N")


def quotient(one: IntExpr, by: int) -> Apply:
    return Apply(Operator.QUOTIENT, (one, Constant(by)))


def remainder(one: IntExpr, by: int) -> Apply:
    return Apply(Operator.REMAINDER, (one, Constant(by)))


def value_of(threads: int, vector: int) -> IntExpr:
    """Return ``j0 + vector * tj + vector * threads * (rj / vector) + rj % vector``."""
    point = Name("rj")
    found = total(Name("j0"), multiplied(Constant(vector), Name("tj")))
    found = total(found, multiplied(Constant(vector * threads), quotient(point, vector)))
    return total(found, remainder(point, vector))


def unrolled(counter: str, count: int, *body: Node) -> For:
    return loop(counter, count, *body, unroll="whole")


def stores(
    points: int,
    value: IntExpr,
    *,
    of: ElementType = ElementType.DOUBLE,
    tests: Sequence[IntExpr] = (Name("j") < SIZE,),
    row: IntExpr = SIZE,
) -> For:
    """Return loops that store what a thread has of a tile."""
    memory = at(buffer("C", "global", SIZE, row, of=of), Name("i"), Name("j"))
    register = at(buffer("C_r", "register", ROWS, points, of=of), Name("ri"), Name("rj"))
    copy: Node = Copy(target=memory, source=register)
    inside = If(conditions=tuple(tests), body=(copy,)) if tests else copy
    columns = unrolled("rj", points, Let(name="j", value=value), inside)
    first = Let(name="i", value=total(Name("i0"), Name("ri")))
    guarded = If(conditions=(Name("i") < SIZE,), body=(columns,))
    return unrolled("ri", ROWS, first, guarded)


class Stores(Machine):
    """Notes which register goes where."""

    def __init__(self) -> None:
        self.done: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def do(self, node: Node, names: Mapping[str, int]) -> None:
        if isinstance(node, Aligned):
            return
        assert isinstance(node, Copy)
        (*to, column), (*of, point) = place(node.target, names), place(node.source, names)
        assert node.width == 1 or column % node.width == point % node.width == 0
        for one in range(node.width):
            self.done.append(((*to, column + one), (*of, point + one)))


def run(nodes: Sequence[Node], names: Mapping[str, int]) -> list[Any]:
    machine = Stores()
    machine.run(nodes, names)
    return sorted(machine.done)


@given(
    st.sampled_from([(ElementType.DOUBLE, 2), (ElementType.DOUBLE, 4), (ElementType.FLOAT, 4)]),
    st.integers(1, 3),
    st.sampled_from([2, 4, 8]),
    st.integers(0, 5),
    st.integers(1, 90),
)
def test_the_same_goes_to_the_same_place(
    kind: tuple[ElementType, int], vectors: int, threads: int, thread: int, n: int
) -> None:
    of, vector = kind
    before = kernel(stores(vectors * vector, value_of(threads, vector), of=of))
    after = with_vectorised_stores(before, set())
    assert after != before
    for j0 in (0, 1, 2, 4, 32):
        for aligned in (0, 1):
            names = {"i0": 0, "tj": thread, "N": n, "j0": j0, "wide_C": aligned}
            assert run(after.body, names) == run(before.body, names)


def test_tests_stand_around_all_rows() -> None:
    wide, test = with_vectorised_stores(kernel(stores(4, value_of(8, 2))), set()).body
    assert isinstance(wide, Aligned)
    assert (wide.name, wide.width) == ("wide_C", 2)
    assert isinstance(test, If)
    assert test.conditions[0] == Name("wide_C")
    assert test.orelse == (stores(4, value_of(8, 2)),)
    assert test.conditions[1] == Apply(Operator.EQ, (remainder(Name("j0"), 2), Constant(0)))


def loading(points: int) -> For:
    """Return loops that load what they store elsewhere."""
    rows = stores(points, value_of(8, 2))

    def transposed(node: Node) -> Node:
        if isinstance(node, For | If):
            return replace(node, body=tuple(map(transposed, node.body)))
        if isinstance(node, Copy):
            return replace(node, target=node.source, source=node.target)
        return node

    found = transposed(rows)
    assert isinstance(found, For)
    return found


POINT, APART = Name("rj"), value_of(8, 2)
OTHERS: dict[str, tuple[Node, ...]] = {
    "points that lie apart": (stores(4, total(Name("j0"), multiplied(Constant(8), POINT))),),
    "rows of an odd length": (stores(4, APART, row=Constant(77)),),
    "a test that is no bound": (stores(4, APART, tests=(remainder(Name("j"), 3),)),),
    "a bound of another kind": (stores(4, APART, tests=(Name("j") < POINT,)),),
    "what memory had": (loading(4), stores(4, APART)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_row_of_vectors_stays(what: str) -> None:
    own = kernel(*OTHERS[what])
    assert with_vectorised_stores(own, set()) == own
