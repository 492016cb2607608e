"""Registers that are set behind tests and read without them are zero first, if they are many."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.base.shipped import data_directory
from eatss.lower.kernel.checks import kernel_faults
from eatss.lower.kernel.nodes import (
    Argument,
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    Fill,
    For,
    If,
    Kernel,
    Node,
    Scope,
)
from eatss.lower.transform.defined_registers import with_registers_defined
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate
from eatss.verify import verify

ZERO, ONE = Constant(0), Constant(1)
TESTS = ("a", "b", "c")


def buffer(name: str, space: Any, *extents: IntExpr | int) -> Buffer:
    layout = Extents(tuple(Constant(one) if isinstance(one, int) else one for one in extents))
    return Buffer(name=name, space=space, element_type=ElementType.FLOAT, layout=layout)


MEMORY = buffer("C", "global", 8)
SUMS = buffer("C_r", "register", 4, 16)
ONE_SUM = buffer("t", "register")


def below(counter: str, end: IntExpr) -> IntExpr:
    return Apply(Operator.LT, (Name(counter), end))


def loop(counter: str, end: int, *body: Node) -> For:
    return For(
        counter=counter,
        lower=ZERO,
        condition=below(counter, Constant(end)),
        step=ONE,
        body=body,
        unroll="whole",
        narrow=True,
    )


def places(own: Buffer, make: Callable[[Element], Node]) -> Node:
    """Return what is done at all places of registers."""
    if not own.layout.extents:
        return make(Element(buffer=own))
    counters = ("ri", "rj", "rk")[: len(own.layout.extents)]
    node = make(Element(buffer=own, subscripts=tuple(map(Name, counters))))
    return over(own, counters, node)


def over(own: Buffer, counters: Sequence[str], node: Node) -> Node:
    """Return loops over all places of registers."""
    for counter, extent in reversed(list(zip(counters, own.layout.extents, strict=True))):
        end = extent.value if isinstance(extent, Constant) else 1
        node = loop(counter, end, node)
    return node


def load(own: Buffer = SUMS) -> Node:
    memory = Element(buffer=MEMORY, subscripts=(ZERO,))
    return places(own, lambda one: Copy(target=one, source=memory))


def store(own: Buffer = SUMS) -> Node:
    memory = Element(buffer=MEMORY, subscripts=(ZERO,))
    return places(own, lambda one: Copy(target=memory, source=one))


def where(tests: str, *body: Node) -> If:
    return If(conditions=tuple(map(Name, tests)), body=body)


def kernel(*body: Node) -> Kernel:
    arguments = (*(Argument(name=one) for one in TESTS), Argument(name="C", buffer=MEMORY))
    return Kernel(
        name="one",
        threads=32,
        arguments=arguments,
        shared=(),
        static_shared_bytes=48 << 10,
        index_bits=32,
        body=body,
    )


def emptied(own: Buffer, *counters: str) -> Node:
    """Return the loops in which registers get zeros, with their counters."""
    target = Element(buffer=own, subscripts=tuple(map(Name, counters)))
    return over(own, counters, Fill(target=target, value=0))


def defined(*body: Node, taken: set[str] | None = None) -> tuple[Node, ...]:
    names = {"ri", "rj", "rk"} if taken is None else taken
    before = kernel(*body)
    found = with_registers_defined(before, names)
    assert not kernel_faults(found, (), before=before)
    return found.body


DECLARED = Declare(buffer=SUMS)


def test_registers_set_behind_a_test_and_read_without_are_zero_behind_their_declaration() -> None:
    body = (DECLARED, where("a", load()), store())
    assert defined(*body) == (DECLARED, emptied(SUMS, "s", "s_1"), *body[1:])


def test_nodes_between_declaration_and_first_write_stay_behind_the_zeros() -> None:
    other = Declare(buffer=ONE_SUM)
    body = (DECLARED, other, load(ONE_SUM), where("a", load()), store())
    assert defined(*body) == (DECLARED, emptied(SUMS, "s", "s_1"), *body[1:])


@pytest.mark.parametrize(
    "body",
    [
        (where("a", load()), where("a", store())),
        (where("a", load()), where("ab", store())),
        (where("a", load()), where("b", where("a", store()))),
        (where("a", where("b", load())), where("ba", store())),
        (where("a", load()), where("a", load()), where("a", store())),
        (load(), store()),
        (load(), where("a", store())),
        (load(), where("a", load()), store()),
        (loop("e", 2, load()), store()),
        (Scope(body=(load(),)), store()),
        (If(conditions=(Name("a"),), body=(load(),), orelse=(load(),)), store()),
        (where("a", load()),),
        (where("a", load(), store()),),
        (),
    ],
)
def test_registers_with_values_wherever_they_are_read_stay(body: tuple[Node, ...]) -> None:
    assert defined(DECLARED, *body) == (DECLARED, *body)


@pytest.mark.parametrize(
    "body",
    [
        (where("ab", load()), where("a", store())),
        (where("a", where("b", load())), where("b", store())),
        (where("a", loop("e", 2, where("b", load()))), loop("e", 2, where("a", store()))),
        (Scope(body=(where("a", load()),)), Scope(body=(store(),))),
        (where("a", load()), where("a", store()), store()),
        (where("a", load()), If(conditions=(Name("a"),), body=(), orelse=(store(),))),
        (where("a", load()), where("b", load()), where("b", store())),
    ],
)
def test_each_test_of_a_write_counts(body: tuple[Node, ...]) -> None:
    assert defined(DECLARED, *body) == (DECLARED, emptied(SUMS, "s", "s_1"), *body)


def test_tests_of_each_row_count() -> None:
    """Loads of a tile that the array cuts: rows and columns have tests of their own."""
    copy = Copy(
        target=Element(buffer=SUMS, subscripts=(Name("ri"), Name("rj"))),
        source=Element(buffer=MEMORY, subscripts=(ZERO,)),
    )
    columns = loop("rj", 16, If(conditions=(below("rj", Name("b")),), body=(copy,)))
    rows = loop("ri", 4, If(conditions=(below("ri", Name("a")),), body=(columns,)))
    assert defined(DECLARED, rows, store()) == (
        DECLARED,
        emptied(SUMS, "s", "s_1"),
        rows,
        store(),
    )


@pytest.mark.parametrize(
    "around",
    [
        lambda body: loop("e", 2, *body),
        lambda body: Scope(body=body),
        lambda body: where("c", *body),
        lambda body: If(conditions=(Name("c"),), body=(), orelse=body),
        lambda body: loop("e", 2, Scope(body=(where("c", *body),))),
    ],
    ids=["loop", "scope", "test", "else", "all of them"],
)
def test_registers_may_be_declared_anywhere(around: Callable[[tuple[Node, ...]], Node]) -> None:
    body = (where("a", load()), store())
    expected = around((DECLARED, emptied(SUMS, "s", "s_1"), *body))
    assert defined(around((DECLARED, *body))) == (expected,)


def test_counters_are_names_that_nothing_has() -> None:
    taken = {"ri", "rj", "s", "s_2"}
    body = (DECLARED, where("a", load()), store())
    assert defined(*body, taken=taken)[1] == emptied(SUMS, "s_1", "s_3")
    assert taken == {"ri", "rj", "s", "s_1", "s_2", "s_3"}


def test_several_registers_have_counters_of_their_own() -> None:
    other = buffer("D_r", "register", 8, 8)
    second = Declare(buffer=other)
    rest = (where("a", load(), load(other)), store(), store(other))
    assert defined(DECLARED, second, *rest) == (
        DECLARED,
        emptied(SUMS, "s", "s_1"),
        second,
        emptied(other, "s_2", "s_3"),
        *rest,
    )


@pytest.mark.parametrize(
    ("extents", "element_type", "many"),
    [
        ((48,), ElementType.FLOAT, True),
        ((47,), ElementType.FLOAT, False),
        ((24,), ElementType.DOUBLE, True),
        ((23,), ElementType.DOUBLE, False),
        ((2, 4, 8), ElementType.FLOAT, True),
        ((4, 4), ElementType.FLOAT, False),
        ((), ElementType.FLOAT, False),
    ],
)
def test_48_registers_are_many(
    extents: tuple[int, ...], element_type: ElementType, many: bool
) -> None:
    own = replace(buffer("C_r", "register", *extents), element_type=element_type)
    declared, *rest = (Declare(buffer=own), where("a", load(own)), store(own))
    zeros = (emptied(own, *("s", "s_1", "s_2")[: len(extents)]),) if many else ()
    assert defined(declared, *rest) == (declared, *zeros, *rest)


def test_registers_are_many_together() -> None:
    two = [replace(buffer(name, "register", 24), element_type=ElementType.FLOAT) for name in "ab"]
    declared = [Declare(buffer=one) for one in two]
    rest = (where("a", *map(load, two)), *map(store, two))
    assert defined(*declared, *rest) == (
        declared[0],
        emptied(two[0], "s"),
        declared[1],
        emptied(two[1], "s_1"),
        *rest,
    )
    alone = (declared[0], where("a", load(two[0])), store(two[0]))
    assert defined(*alone) == alone


def test_registers_of_unknown_number_stay() -> None:
    unknown = buffer("C_r", "register", Name("a"), 128)
    body = (Declare(buffer=unknown), where("a", load(unknown)), store(unknown))
    assert defined(*body) == body


@dataclass
class Machine:
    """Knows which registers have values, and how many were read without one."""

    has: set[tuple[int, ...]] = field(default_factory=set)
    missed: int = 0

    def run(self, nodes: Sequence[Node], names: Mapping[str, int]) -> None:
        for node in nodes:
            match node:
                case Declare():
                    self.has.clear()
                case Scope():
                    self.run(node.body, names)
                case For():
                    value = 0
                    while evaluate(node.condition, {**names, node.counter: value}):
                        self.run(node.body, {**names, node.counter: value})
                        value += 1
                case If():
                    holds = all(evaluate(one, names) for one in node.conditions)
                    self.run(node.body if holds else node.orelse, names)
                case Fill():
                    self.has.add(self._place(node.target, names))
                case _:
                    assert isinstance(node, Copy)
                    if node.source.buffer == SUMS:
                        self.missed += self._place(node.source, names) not in self.has
                    if node.target.buffer == SUMS:
                        self.has.add(self._place(node.target, names))

    def _place(self, one: Element, names: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(evaluate(part, names) for part in one.subscripts)


def missed(body: Sequence[Node]) -> int:
    """Return how often registers without values are read, over all that tests may say."""
    found = 0
    for values in product((0, 1), repeat=len(TESTS)):
        machine = Machine()
        machine.run(body, dict(zip(TESTS, values, strict=True)))
        found += machine.missed
    return found


@st.composite
def behind_tests(draw: st.DrawFn, inner: Node) -> Node:
    """Draw a node with tests, loops that run and scopes around it."""
    for kind in draw(st.lists(st.sampled_from(["test", "loop", "scope"]), max_size=3)):
        if kind == "test":
            tests = draw(st.lists(st.sampled_from(TESTS), min_size=1, max_size=2))
            inner = where("".join(tests), inner)
        else:
            inner = loop("e", 2, inner) if kind == "loop" else Scope(body=(inner,))
    return inner


@given(
    st.lists(behind_tests(load()), min_size=1, max_size=3),
    st.lists(behind_tests(store()), min_size=1, max_size=3),
)
def test_nothing_without_a_value_is_read(loads: list[Node], stores: list[Node]) -> None:
    body = (DECLARED, *loads, *stores)
    found = defined(*body, taken={"ri", "rj", "e"})
    assert missed(found) == 0
    if len(loads) == 1:  # more of them may make up for each other
        assert (found != body) == (missed(body) > 0)


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("kernel_name", "last_tile", "sums", "first"),
    [
        ("gemm", 16, "C_r[4][8]", "C_r[ri][rj] = C["),
        ("symm", 64, "acc_r[4][8]", "acc_r[rj][rk] = 0;"),
    ],
)
def test_tiles_at_edges_begin_with_zeros_in_front_of_what_is_set(
    kernel_name: str, last_tile: int, sums: str, first: str, tmp_path: Path
) -> None:
    program = eatss.codegen(
        data_directory("kernels") / f"{kernel_name}.c",
        gpu="h200",
        output=tmp_path,
        tiles={"i": 64, "j": 64, "k": last_tile},
        block=(16, 8),
        strict_fp=kernel_name == "gemm",
    )
    behind = program.text.partition(f"double {sums};\n")[2]
    zeros, test, rest = behind.partition("if (")
    assert test
    assert first in rest
    name, _, extents = sums.partition("[")
    pattern = r"for \(int (\w+) = 0; \1 < (\d+); \+\+\1\) \{"
    counters, counts = zip(*re.findall(pattern, zeros)[:2], strict=True)
    assert counts == tuple(extents.removesuffix("]").split("]["))
    assert f"{name}[{']['.join(counters)}] = 0;" in zeros
    found = verify(tmp_path, device="cpu", sizes=SIZES[kernel_name])
    assert (found.status, found.message) == ("ok", "")


SIZES = {
    "gemm": [{"NI": 1, "NJ": 1, "NK": 1}, {"NI": 33, "NJ": 70, "NK": 17}],
    "symm": [{"NI": 1, "NJ": 1}, {"NI": 33, "NJ": 20}],
}


def test_few_registers_are_zero_beside_many() -> None:
    few = Declare(buffer=ONE_SUM)
    own = (few, where("a", load(ONE_SUM)), store(ONE_SUM))
    many = (DECLARED, where("a", load()), store())
    assert ONE_SUM.size_bytes < SUMS.size_bytes
    assert defined(*own) == own
    assert defined(*many, *own)[len(many) + 1 :] == (few, emptied(ONE_SUM), *own[1:])
