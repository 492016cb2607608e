"""Copies that need no tests stand behind the loads of a step, in front of its products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eatss.lower.instructions import COMBINES
from eatss.lower.instructions.products import MMA_F64_8X8X4
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    Fill,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Source,
    Staging,
    Steps,
    Way,
)
from eatss.lower.transform.copy_ways import Copying, all_of
from eatss.lower.transform.register_prefetch import copies_among_products
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator

N, K = Name("n"), Name("k")
REGISTER = Element(
    buffer=Buffer(name="R", space="register", element_type=ElementType.DOUBLE, layout=Extents(()))
)
LOAD = Fill(target=REGISTER, value=0)
MULTIPLY = Perform(
    instruction=MMA_F64_8X8X4,
    operands=(("d", (REGISTER, REGISTER)), ("a", (REGISTER,)), ("b", (REGISTER,))),
)
TOLD = Source(line=1, text="C += A * B;")
COPY = Copy(target=REGISTER, source=REGISTER)
OTHER = Perform(
    instruction=COMBINES["add"], operands=(("target", (REGISTER,)), ("value", (REGISTER,)))
)


def below(name: str, end: IntExpr) -> Apply:
    return Apply(Operator.LT, (Name(name), end))


def steps(count: int, *loads: Node, declared: Sequence[Buffer] = ()) -> Steps:
    declarations = tuple(Declare(buffer=one) for one in declared)
    return Steps(
        counter="k_step", count=count, loads=(*declarations, *loads), products=(TOLD, MULTIPLY)
    )


def some(first: int, end: int) -> For:
    (loop,) = steps(end, LOAD).between(first, end, BODY)
    assert isinstance(loop, For)
    return loop


def step(number: int, *body: Node) -> Scope:
    return Scope(body=(Let(name="k_step", value=Constant(number), narrow=True), *body))


BODY = (LOAD, TOLD, MULTIPLY)
WITH_COPY = (LOAD, COPY, TOLD, MULTIPLY)


@pytest.mark.parametrize(
    ("count", "last", "found"),
    [
        (1, True, (step(0, *WITH_COPY),)),
        (2, True, (step(0, *BODY), step(1, *WITH_COPY))),
        (2, False, (step(0, *WITH_COPY), step(1, *BODY))),
        (4, True, (some(0, 3), step(3, *WITH_COPY))),
        (4, False, (step(0, *WITH_COPY), some(1, 4))),
    ],
)
def test_copies_stand_behind_the_loads_of_a_step(
    count: int, last: bool, found: tuple[Node, ...]
) -> None:
    rest: list[Node] = [LOAD, steps(count, LOAD)]
    copied = copies_among_products([COPY], rest, last=last, registers=255)
    assert copied == (LOAD, *found)


def test_copies_stand_in_front_where_registers_are_few() -> None:
    operands = [
        replace(REGISTER.buffer, name=name, layout=Extents((Constant(tiles), Constant(4))))
        for name, tiles in (("F", 2), ("G", 5))
    ]
    loop = steps(2, LOAD, declared=operands)

    def found(registers: int) -> tuple[Node, ...] | None:
        return copies_among_products([COPY], [loop], last=True, registers=registers)

    every, least = 2 * (1 + 8 + 20), 2 * (1 + 8 + 4)  # the sum, and both operands; one of them
    some = found(every + 32)
    assert some is not None
    assert some[0] != COPY
    assert found(every + 31) == (COPY, loop)
    assert found(least + 32) == (COPY, loop)
    assert found(least + 31) is None


def test_one_step_is_no_loop() -> None:
    found = copies_among_products([COPY], [steps(1, LOAD)], last=True, registers=255)
    assert found == (step(0, *WITH_COPY),)


def test_without_steps_there_is_no_place() -> None:
    assert copies_among_products([COPY], (LOAD,), last=True, registers=255) is None


WHOLE = below("i", N)
STAGE = Staging(
    ways=(
        Way(elements=(OTHER,), conditions=(WHOLE,), wide=(Name("wide"),), vectors=(COPY,)),
        Way(elements=(COPY,), conditions=(below("k", N),), steps=True),
        Way(elements=(LOAD,)),
    )
)


def test_the_first_way_of_all_stages_is_what_needs_no_tests() -> None:
    alone = Staging(ways=(Way(elements=(LOAD,)),))
    tests, nodes = Copying().plain([STAGE, alone])
    assert tests == (WHOLE, Name("wide"))
    assert nodes == (COPY, LOAD)
    both = Apply(Operator.AND, (WHOLE, below("k", N)))
    assert all_of((both, Name("wide"), WHOLE)) == (WHOLE, below("k", N), Name("wide"))


def test_of_three_ways_two_are_taken() -> None:
    (first,) = Copying().nodes([STAGE])
    wide = If(conditions=(Name("wide"),), body=(COPY,), orelse=(OTHER,))
    assert first == If(conditions=(WHOLE,), body=(wide,), orelse=(LOAD,))
    (second,) = Copying(steps=True).nodes([STAGE])
    assert second == If(conditions=(below("k", N),), body=(COPY,), orelse=(LOAD,))
