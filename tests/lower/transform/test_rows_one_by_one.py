"""Loops over a thread's rows become one where no row needs another."""

from __future__ import annotations

import pytest

from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Element,
    Extents,
    For,
    If,
    Init,
    Kernel,
    Let,
    Node,
)
from eatss.lower.transform.rows_one_by_one import with_rows_one_by_one
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, total

N, M = Name("n"), Name("m")
INSIDE = Apply(Operator.LT, (Name("i"), N))
IS_SUM = Apply(Operator.GE, (M, Constant(1)))


def buffer(name: str, space: str) -> Buffer:
    return Buffer(
        name=name,
        space="register" if space == "register" else "shared" if space == "shared" else "global",
        element_type=ElementType.DOUBLE,
        layout=Extents((Constant(4),)),
    )


R, C, S = buffer("R", "register"), buffer("C", "global"), buffer("S", "shared")
OWN = Let(name="i", value=total(N, Name("r")))


def element(of: Buffer, place: IntExpr) -> Element:
    return Element(buffer=of, subscripts=(place,))


def rows(counter: str, *body: Node, count: int = 4) -> For:
    below = Apply(Operator.LT, (Name(counter), Constant(count)))
    return For(
        counter=counter,
        lower=Constant(0),
        condition=below,
        step=Constant(1),
        body=body,
        unroll="whole",
    )


LOAD = Copy(target=element(R, Name("r")), source=element(C, Name("i")))
STORE = Copy(target=element(C, Name("i")), source=element(R, Name("r")))


def zero(counter: str = "s", of: Buffer = R) -> Init:
    return Init(target=element(of, Name(counter)), value=0)


def joined(*body: Node) -> tuple[Node, ...]:
    kernel = Kernel(
        name="k",
        threads=32,
        arguments=(),
        shared=(),
        static_shared_bytes=0,
        index_bits=32,
        body=body,
    )
    return with_rows_one_by_one(kernel).body


def test_a_row_is_loaded_changed_and_stored_before_the_next() -> None:
    test = If(conditions=(INSIDE,), body=(LOAD,))
    back = replace_body(test, STORE)
    found = joined(rows("r", OWN, test), rows("s", zero()), rows("r", OWN, back))
    assert found == (rows("r", OWN, test, zero("r"), back),)


def replace_body(test: If, *body: Node) -> If:
    return If(conditions=test.conditions, body=body)


def test_equal_tests_that_follow_each_other_are_one() -> None:
    found = joined(
        rows("r", OWN, If(conditions=(INSIDE,), body=(LOAD,))),
        rows("r", OWN, If(conditions=(INSIDE,), body=(STORE,))),
    )
    assert found == (rows("r", OWN, If(conditions=(INSIDE,), body=(LOAD, STORE))),)


def test_a_test_that_all_rows_share_goes_in() -> None:
    test = If(conditions=(IS_SUM,), body=(rows("s", zero()),))
    found = joined(rows("r", OWN, LOAD), test)
    assert found == (rows("r", OWN, LOAD, If(conditions=(IS_SUM,), body=(zero("r"),))),)


OTHER_ROW = Copy(
    target=element(R, Name("r")), source=element(R, Apply(Operator.SUB, (Constant(3), Name("r"))))
)
ONE_PLACE = Copy(target=element(C, M), source=element(R, Name("r")))


@pytest.mark.parametrize(
    "loops",
    [
        (rows("r", zero("r")), rows("r", OTHER_ROW)),  # of rows that are not there yet
        (rows("r", ONE_PLACE), rows("r", ONE_PLACE)),  # the last one stays
        (rows("r", zero("r")), rows("r", zero("r"), count=3)),
        (rows("r", zero("r")), rows("r", zero("r", S))),
        (rows("r", OWN, LOAD), rows("r", Let(name="i", value=N), STORE)),
        (rows("r", zero("r")), Let(name="x", value=N), rows("r", zero("r"))),
        (rows("r", zero("r")), If(conditions=(N,), body=(rows("r", zero("r")),), orelse=(LOAD,))),
    ],
)
def test_loops_that_are_otherwise_stay(loops: tuple[Node, ...]) -> None:
    assert joined(*loops) == loops
