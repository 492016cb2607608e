"""Copies that need no tests stand behind the loads of a step, in front of its products."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.instructions import COMBINES
from eatss.instructions.products import MMA_F64_8X8X4
from eatss.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    Fill,
    For,
    If,
    Layout,
    Let,
    Node,
    Perform,
    Scope,
    Source,
)
from eatss.program import Apply, Constant, IntExpr, Name, Operator
from eatss.scops import ElementType
from eatss.transform.interleaved_copies import copies_among_products, plain_copies

N, K = Name("n"), Name("k")
REGISTER = Element(
    buffer=Buffer(name="R", space="register", element_type=ElementType.DOUBLE, layout=Layout(()))
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


def steps(first: int, end: int, *body: Node) -> For:
    return For(
        counter="k_step",
        lower=Constant(first),
        condition=below("k_step", Constant(end)),
        step=Constant(1),
        body=body,
        unroll="whole",
        narrow=True,
    )


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
        (4, True, (steps(0, 3, *BODY), step(3, *WITH_COPY))),
        (4, False, (step(0, *WITH_COPY), steps(1, 4, *BODY))),
    ],
)
def test_copies_stand_behind_the_loads_of_a_step(
    count: int, last: bool, found: tuple[Node, ...]
) -> None:
    rest: list[Node] = [LOAD, steps(0, count, *BODY)]
    copied = copies_among_products([COPY], rest, last=last, registers=255)
    assert copied == (LOAD, *found)


def test_copies_stand_in_front_where_registers_are_few() -> None:
    operands = [
        replace(REGISTER.buffer, name=name, layout=Layout((Constant(tiles), Constant(4))))
        for name, tiles in (("F", 2), ("G", 5))
    ]
    loop = steps(0, 2, *(Declare(buffer=one) for one in operands), *BODY)

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
    alone = step(0, *BODY)
    assert copies_among_products([COPY], [alone], last=True, registers=255) == (
        step(0, *WITH_COPY),
    )


@pytest.mark.parametrize(
    "rest",
    [
        (LOAD,),
        (steps(0, 2, LOAD),),
        (replace(steps(0, 2, *BODY), unroll=None),),
        (replace(steps(0, 2, *BODY), lower=N),),
        (replace(steps(0, 2, *BODY), condition=below("k_step", N)),),
    ],
)
def test_without_steps_that_are_known_there_is_no_place(rest: tuple[Node, ...]) -> None:
    assert copies_among_products([COPY], rest, last=True, registers=255) is None


def test_the_first_of_all_branches_is_what_needs_no_tests() -> None:
    whole, wide = below("i", N), Name("wide")
    both = Apply(Operator.AND, (whole, below("k", N)))
    inner = If(conditions=(wide,), body=(COPY,), orelse=(OTHER,))
    copies = If(conditions=(below("k", N),), body=(If(conditions=(both,), body=(inner,)), LOAD))
    found = plain_copies([copies], ())
    assert found is not None
    assert found.conditions == (below("k", N), whole, wide)
    assert found.nodes == (COPY, LOAD)


@pytest.mark.parametrize("name", ["threadIdx.x", "ti", "x"])
def test_tests_that_threads_answer_differently_stay(name: str) -> None:
    inside = (Let(name="x", value=K), If(conditions=(Name(name),), body=(COPY,)))
    assert plain_copies([If(conditions=(N,), body=inside)], {"ti"}) is None
