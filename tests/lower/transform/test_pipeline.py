"""Copies that need no tests stand behind the loads of a step, in front of its products.

Copies are spread over steps: each is made once, in its order, by one node for each box.

Copies of single halves in two parts: into registers, and from there into boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.instructions import COMBINES
from eatss.lower.instructions.products import MMA_F64_8X8X4
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Init,
    Intrinsic,
    Let,
    Node,
    Scope,
    Source,
    Staging,
    Steps,
    Way,
)
from eatss.lower.kernel.uses import every
from eatss.lower.transform.copy_ways import Copying, all_of
from eatss.lower.transform.register_prefetch import Shares, interleaved_copies
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate

N, K = Name("n"), Name("k")
REGISTER = Element(
    buffer=Buffer(name="R", space="register", element_type=ElementType.DOUBLE, layout=Extents(()))
)
LOAD = Init(target=REGISTER, value=0)
MULTIPLY = Intrinsic(
    instruction=MMA_F64_8X8X4,
    operands=(("d", (REGISTER, REGISTER)), ("a", (REGISTER,)), ("b", (REGISTER,))),
)
TOLD = Source(line=1, text="C += A * B;")
COPY = Copy(target=REGISTER, source=REGISTER)
OTHER = Intrinsic(
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
    copied = interleaved_copies([COPY], rest, last=last, registers=255)
    assert copied == (LOAD, *found)


def test_copies_stand_in_front_where_registers_are_few() -> None:
    operands = [
        replace(REGISTER.buffer, name=name, layout=Extents((Constant(tiles), Constant(4))))
        for name, tiles in (("F", 2), ("G", 5))
    ]
    loop = steps(2, LOAD, declared=operands)

    def found(registers: int) -> tuple[Node, ...] | None:
        return interleaved_copies([COPY], [loop], last=True, registers=registers)

    every, least = 2 * (1 + 8 + 20), 2 * (1 + 8 + 4)  # the sum, and both operands; one of them
    some = found(every + 32)
    assert some is not None
    assert some[0] != COPY
    assert found(every + 31) == (COPY, loop)
    assert found(least + 32) == (COPY, loop)
    assert found(least + 31) is None


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


ROW = Extents((Constant(64),))


def element(name: str, at: IntExpr) -> Element:
    buffer = Buffer(name=name, space="shared", element_type=ElementType.DOUBLE, layout=ROW)
    return Element(buffer=buffer, subscripts=(at,))


def copy(name: str, at: IntExpr) -> Copy:
    return Copy(target=element(name, at), source=element(name, at), ahead=True)


def below_loops(name: str, end: int) -> IntExpr:
    return Apply(Operator.LT, (Name(name), Constant(end)))


def loop(name: str, count: int, unrolled: bool = True) -> For:
    return For(
        counter="e",
        lower=Constant(0),
        condition=below_loops("e", count),
        step=Constant(1),
        body=(Let(name="x", value=Name("e")), copy(name, Name("x"))),
        unroll="whole" if unrolled else None,
        narrow=True,
    )


def copied(nodes: Sequence[Node], names: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the elements that nodes copy, in their order."""
    names = dict(names)
    for node in nodes:
        match node:
            case Let():
                names[node.name] = evaluate(node.value, names)
            case Scope():
                yield from copied(node.body, names)
            case For():
                value = evaluate(node.lower, names)
                while evaluate(node.condition, {**names, node.counter: value}):
                    yield from copied(node.body, {**names, node.counter: value})
                    value += evaluate(node.step, names)
            case If():
                if all(evaluate(one, names) for one in node.conditions):
                    yield from copied(node.body, names)
            case Copy():
                yield node.target.buffer.name, evaluate(node.target.subscripts[0], names)
            case _:
                raise AssertionError(node)


@given(st.lists(st.integers(1, 17), min_size=1, max_size=4), st.integers(2, 9))
def test_every_copy_is_made_once_in_shares_of_equal_size(counts: list[int], steps: int) -> None:
    boxes = {f"box{number}": count for number, count in enumerate(counts)}
    shares = Shares.of([loop(name, count) for name, count in boxes.items()], steps)
    assert shares is not None
    assert shares.steps <= steps
    nodes = shares.of_step("step")
    done = [list(copied(nodes, {"step": step})) for step in range(shares.steps)]
    assert all(done)
    for name, count in boxes.items():
        own = [[at for box, at in one if box == name] for one in done]
        assert [at for one in own for at in one] == list(range(count))
        share = -(-count // steps)
        whole, rest = divmod(count, share)
        assert [len(one) for one in own if one] == [share] * whole + [rest] * (rest > 0)
        assert (
            sum(isinstance(one, Copy) and one.target.buffer.name == name for one in every(nodes))
            == 1
        )
