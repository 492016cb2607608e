"""Loops over a thread's rows become one where no row needs another."""

from __future__ import annotations

import pytest

from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    For,
    Init,
    Let,
    Node,
)
from eatss.lower.transform.rows_one_by_one import with_rows_one_by_one
from eatss.program import Apply, Constant, Name, Operator, total
from tests.lower.small_kernels import (
    N,
    at,
    buffer,
    kernel,
    loop,
    only_if,
)

M = Name("m")
R, C, S = buffer("R", "register", 4), buffer("C", "global", 4), buffer("S", "shared", 4)
OWN = Let(name="i", value=total(N, Name("r")))


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
    test = only_if(M >= 1, body=(rows("s", zero()),))
    found = joined(rows("r", OWN, LOAD), test)
    assert found == (rows("r", OWN, LOAD, only_if(M >= 1, body=(zero("r"),))),)


OTHER_ROW = Copy(
    target=at(R, Name("r")), source=at(R, Apply(Operator.SUB, (Constant(3), Name("r"))))
)
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
