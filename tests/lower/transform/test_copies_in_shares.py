"""Copies are spread over steps: each is made once, in its order, by one node for each box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    If,
    Let,
    Node,
    Scope,
)
from eatss.lower.kernel.uses import every
from eatss.lower.transform.register_prefetch import Shares
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate

ROW = Extents((Constant(64),))


def element(name: str, at: IntExpr) -> Element:
    buffer = Buffer(name=name, space="shared", element_type=ElementType.DOUBLE, layout=ROW)
    return Element(buffer=buffer, subscripts=(at,))


def copy(name: str, at: IntExpr) -> Copy:
    return Copy(target=element(name, at), source=element(name, at), ahead=True)


def below(name: str, end: int) -> IntExpr:
    return Apply(Operator.LT, (Name(name), Constant(end)))


def loop(name: str, count: int, unrolled: bool = True) -> For:
    return For(
        counter="e",
        lower=Constant(0),
        condition=below("e", count),
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


def test_tests_stand_only_where_a_share_is_smaller() -> None:
    shares = Shares.of([loop("A", 8), loop("B", 5), loop("C", 4)], 4)
    assert shares is not None
    tests = [one.conditions for one in every(shares.of_step("step")) if isinstance(one, If)]
    assert tests == [(below("e", 5),)]


def test_what_is_no_such_loop_stands_in_the_first_step() -> None:
    shares = Shares.of([loop("A", 4), loop("B", 4, unrolled=False)], 4)
    assert shares is not None
    every_b = [("B", at) for at in range(4)]
    for step in range(4):
        found = list(copied(shares.of_step("step"), {"step": step}))
        assert found == [*(every_b if step == 0 else []), ("A", step)]


@pytest.mark.parametrize(
    ("copies", "steps"),
    [
        ([loop("A", 4)], 1),
        ([loop("A", 4, unrolled=False)], 2),
        ([copy("A", Constant(0))], 2),
        ([Declare(buffer=element("A", Constant(0)).buffer), loop("A", 4)], 2),
    ],
)
def test_other_copies_stay_together(copies: list[Node], steps: int) -> None:
    assert Shares.of(copies, steps) is None
