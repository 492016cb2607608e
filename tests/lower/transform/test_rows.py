"""Rows of a thread's registers: stored in vectors where those lie beside each other, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Copy,
    For,
    If,
    Init,
    Let,
    Node,
)
from eatss.lower.kernel.uses import mapped_of
from eatss.lower.transform.copy_ways import with_vectorised_stores
from eatss.lower.transform.rows_one_by_one import with_rows_one_by_one
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    equals,
)
from tests.lower.small_kernels import (
    Machine,
    N,
    at,
    buffer,
    kernel,
    loop,
    only_if,
    place,
)

ROWS = 4
SIZE = Name("N")


def value_of(threads: int, vector: int) -> IntExpr:
    """Return ``j0 + vector * tj + vector * threads * (rj / vector) + rj % vector``."""
    point = Name("rj")
    found = Name("j0") + vector * Name("tj")
    found = found + (vector * threads) * (point // vector)
    return found + point % vector


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
    first = Let(name="i", value=Name("i0") + Name("ri"))
    return unrolled("ri", ROWS, first, If(conditions=(Name("i") < SIZE,), body=(columns,)))


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
    assert test.conditions[1] == equals(Name("j0") % 2, 0)


def loading(points: int) -> Node:
    """Return loops that load what they store elsewhere."""
    rows = stores(points, value_of(8, 2))
    (found,) = mapped_of((rows,), Copy, lambda o: replace(o, target=o.source, source=o.target))
    return found


POINT, APART = Name("rj"), value_of(8, 2)
OTHERS: dict[str, tuple[Node, ...]] = {
    "points that lie apart": (stores(4, Name("j0") + 8 * POINT),),
    "rows of an odd length": (stores(4, APART, row=Constant(77)),),
    "a test that is no bound": (stores(4, APART, tests=(Name("j") % 3,)),),
    "a bound of another kind": (stores(4, APART, tests=(Name("j") < POINT,)),),
    "what memory had": (loading(4), stores(4, APART)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_row_of_vectors_stays(what: str) -> None:
    own = kernel(*OTHERS[what])
    assert with_vectorised_stores(own, set()) == own


M = Name("m")
R, C, S = buffer("R", "register", 4), buffer("C", "global", 4), buffer("S", "shared", 4)
OWN = Let(name="i", value=N + Name("r"))


def rows(counter: str, *body: Node, count: int = 4) -> For:
    return loop(counter, count, *body, unroll="whole")


LOAD = Copy(target=at(R, Name("r")), source=at(C, Name("i")))
STORE = Copy(target=at(C, Name("i")), source=at(R, Name("r")))


def zero(counter: str = "s", of: Buffer = R) -> Init:
    return Init(target=at(of, Name(counter)), value=0)


def joined(*body: Node) -> tuple[Node, ...]:
    return with_rows_one_by_one(kernel(*body)).body


def test_a_row_is_loaded_changed_and_stored_before_the_next() -> None:
    test, back = (only_if(Name("i") < N, body=(one,)) for one in (LOAD, STORE))
    found = joined(rows("r", OWN, test), rows("s", zero()), rows("r", OWN, back))
    assert found == (rows("r", OWN, test, zero("r"), back),)


def test_equal_tests_that_follow_each_other_are_one() -> None:
    found = joined(
        rows("r", OWN, only_if(Name("i") < N, body=(LOAD,))),
        rows("r", OWN, only_if(Name("i") < N, body=(STORE,))),
    )
    assert found == (rows("r", OWN, only_if(Name("i") < N, body=(LOAD, STORE))),)


def test_a_test_that_all_rows_share_goes_in() -> None:
    found = joined(rows("r", OWN, LOAD), only_if(M >= 1, body=(rows("s", zero()),)))
    assert found == (rows("r", OWN, LOAD, only_if(M >= 1, body=(zero("r"),))),)


OTHER_ROW = Copy(target=at(R, Name("r")), source=at(R, 3 - Name("r")))
ONE_PLACE = Copy(target=at(C, M), source=at(R, Name("r")))


@pytest.mark.parametrize(
    "loops",
    [
        (rows("r", zero("r")), rows("r", OTHER_ROW)),  # of rows that are not there yet
        (rows("r", ONE_PLACE), rows("r", ONE_PLACE)),  # the last one stays
        (rows("r", zero("r")), rows("r", zero("r"), count=3)),
        (rows("r", zero("r")), rows("r", zero("r", S))),
        (rows("r", OWN, LOAD), rows("r", Let(name="i", value=N), STORE)),
        (rows("r", zero("r")), Let(name="x", value=N), rows("r", zero("r"))),
        (rows("r", zero("r")), only_if(N, body=(rows("r", zero("r")),), orelse=(LOAD,))),
    ],
)
def test_loops_that_are_otherwise_stay(loops: tuple[Node, ...]) -> None:
    assert joined(*loops) == loops
