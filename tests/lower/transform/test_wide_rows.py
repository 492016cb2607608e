"""Rows of registers are stored in vectors where those lie beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Copy,
    Element,
    Extents,
    For,
    If,
    Kernel,
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
    evaluate,
    multiplied,
    total,
)

ROWS = 4
N = Name("N")


def buffer(name: str, space: Any, *extents: IntExpr, of: ElementType) -> Buffer:
    return Buffer(name=name, space=space, element_type=of, layout=Extents(extents))


def below(one: IntExpr, other: IntExpr) -> Apply:
    return Apply(Operator.LT, (one, other))


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
    return For(
        counter=counter,
        lower=Constant(0),
        condition=below(Name(counter), Constant(count)),
        step=Constant(1),
        body=body,
        unroll="whole",
        narrow=True,
    )


def stores(
    points: int,
    value: IntExpr,
    *,
    of: ElementType = ElementType.DOUBLE,
    tests: Sequence[IntExpr] = (below(Name("j"), N),),
    row: IntExpr = N,
) -> For:
    """Return loops that store what a thread has of a tile."""
    memory = Element(buffer=buffer("C", "global", N, row, of=of), subscripts=(Name("i"), Name("j")))
    register = Element(
        buffer=buffer("C_r", "register", Constant(ROWS), Constant(points), of=of),
        subscripts=(Name("ri"), Name("rj")),
    )
    copy: Node = Copy(target=memory, source=register)
    inside = If(conditions=tuple(tests), body=(copy,)) if tests else copy
    columns = unrolled("rj", points, Let(name="j", value=value), inside)
    first = Let(name="i", value=total(Name("i0"), Name("ri")))
    guarded = If(conditions=(below(Name("i"), N),), body=(columns,))
    return unrolled("ri", ROWS, first, guarded)


def kernel_of(*body: Node) -> Kernel:
    return Kernel(
        name="k",
        threads=32,
        arguments=(),
        shared=(),
        static_shared_bytes=0,
        body=body,
        index_bits=32,
    )


def run(nodes: Sequence[Node], names: Mapping[str, int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield which register goes where."""
    names = dict(names)
    for node in nodes:
        match node:
            case Aligned():
                pass
            case Let():
                names[node.name] = evaluate(node.value, names)
            case For():
                for value in range(evaluate(node.condition.operands[1], names)):  # type: ignore[union-attr]
                    yield from run(node.body, {**names, node.counter: value})
            case If():
                holds = all(evaluate(one, names) for one in node.conditions)
                yield from run(node.body if holds else node.orelse, names)
            case Copy():
                *to, column = (evaluate(one, names) for one in node.target.subscripts)
                *of, point = (evaluate(one, names) for one in node.source.subscripts)
                assert node.width == 1 or column % node.width == point % node.width == 0
                for one in range(node.width):
                    yield (*to, column + one), (*of, point + one)
            case _:
                raise AssertionError(node)


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
    before = kernel_of(stores(vectors * vector, value_of(threads, vector), of=of))
    after = with_vectorised_stores(before, set())
    assert after != before
    for j0 in (0, 1, 2, 4, 32):
        for aligned in (0, 1):
            names = {"i0": 0, "tj": thread, "N": n, "j0": j0, "wide_C": aligned}
            assert sorted(run(after.body, names)) == sorted(run(before.body, names))


def test_tests_stand_around_all_rows() -> None:
    wide, test = with_vectorised_stores(kernel_of(stores(4, value_of(8, 2))), set()).body
    assert isinstance(wide, Aligned)
    assert (wide.name, wide.width) == ("wide_C", 2)
    assert isinstance(test, If)
    assert test.conditions[0] == Name("wide_C")
    assert test.orelse == (stores(4, value_of(8, 2)),)
    assert test.conditions[1] == Apply(Operator.EQ, (remainder(Name("j0"), 2), Constant(0)))


def loading(points: int) -> For:
    """Return loops that load what they store elsewhere."""
    loop = stores(points, value_of(8, 2))

    def transposed(node: Node) -> Node:
        if isinstance(node, For | If):
            return replace(node, body=tuple(map(transposed, node.body)))
        if isinstance(node, Copy):
            return replace(node, target=node.source, source=node.target)
        return node

    found = transposed(loop)
    assert isinstance(found, For)
    return found


POINT, APART = Name("rj"), value_of(8, 2)
OTHERS: dict[str, tuple[Node, ...]] = {
    "points that lie apart": (stores(4, total(Name("j0"), multiplied(Constant(8), POINT))),),
    "half a vector": (stores(3, APART),),
    "rows of an odd length": (stores(4, APART, row=Constant(77)),),
    "integers": (stores(4, APART, of=ElementType.INT32),),
    "a test that is no bound": (stores(4, APART, tests=(remainder(Name("j"), 3),)),),
    "a bound of another kind": (stores(4, APART, tests=(below(Name("j"), POINT),)),),
    "a loop that stays one": (replace(stores(4, APART), unroll=None),),
    "what memory had": (loading(4), stores(4, APART)),
}


@pytest.mark.parametrize("what", [one for one in OTHERS if one != "a loop that stays one"])
def test_what_is_no_row_of_vectors_stays(what: str) -> None:
    kernel = kernel_of(*OTHERS[what])
    assert with_vectorised_stores(kernel, set()) == kernel
