"""Parts that stand in a value several times: which get a name, and that others stay.

Registers that are set behind tests and read without them are zero first, if they are many.

Loads from whole boxes stand in front of the tests that they do not depend on.

Sums, quotients and remainders in their shortest form have the values they had.
"""

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
from eatss.lower.transform.parts_once import with_registers_defined
from eatss.lower.transform.use_instruction import in_order
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    Program,
    evaluate,
    multiplied,
    total,
)
from eatss.verify import verify

SOURCE = """
void f(double A[64][64], float F[64][64], double B[64][64]) {{
    double T[64][64];
#pragma scop
    for (int i = 0; i < 64; i++) for (int j = 0; j < 63; j++) T[i][j] = {producer};
    for (int i = 0; i < 64; i++) for (int j = 1; j < 63; j++) B[i][j] = {reader};
#pragma endscop
}}
"""
DIFFERENCE = "A[i][j + 1] - A[i][j]"


def parts(producer: str, reader: str) -> list[str]:
    """Return the types of the parts that have a name in the code of whole tiles."""
    text = eatss.codegen(
        SOURCE.format(producer=producer, reader=reader), gpu="h200", recompute="all"
    ).text
    (kernel,) = text.split("__global__")[1:]
    (first, *_) = re.split(r"\n *B\[", kernel)
    return re.findall(r"(\w+) v\d+;", first)


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("producer", "reader", "named"),
    [
        (DIFFERENCE, "T[i][j] * T[i][j]", ["double"]),
        (DIFFERENCE, "T[i][j] > 0 ? T[i][j] : T[i][j - 1]", ["double"]),
        (f"({DIFFERENCE}) * ({DIFFERENCE})", "T[i][j] + T[i][j] * T[i][j]", ["double", "double"]),
        ("F[i][j] * F[i][j + 1]", "T[i][j] * T[i][j]", ["double"]),
        ("sqrt(A[i][j])", "T[i][j] * T[i][j]", ["double"]),
        (DIFFERENCE, "T[i][j] * T[i][j - 1]", []),  # neither stands there twice
        ("A[i][j] * i", "T[i][j] * T[i][j]", []),  # values of counters are found by their place
        ("A[i][j]", "T[i][j] * T[i][j]", []),  # an element has a name
    ],
)
def test_what_stands_there_several_times_has_a_name(
    producer: str, reader: str, named: list[str]
) -> None:
    assert parts(producer, reader) == named


def test_other_statements_are_printed_as_they_are_written() -> None:
    text = SOURCE.format(producer="0", reader=f"({DIFFERENCE}) * ({DIFFERENCE})")
    assert "v0" not in eatss.codegen(text, gpu="h200").text


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


def triangle(value: str, folder: Path | None = None) -> Program:
    source = f"""
    #ifndef N
    #define N 4096
    #endif
    void f(float C[N][N], float A[N][N], float B[N][N])
    {{
    #pragma scop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = i + 1; k < N; k++)
                    C[i][j] += {value};
    #pragma endscop
    }}
    """
    return eatss.codegen(
        source,
        gpu="h200",
        output=folder,
        tiles={"i": 32, "j": 32, "k": 16},
        block={"i": 8, "j": 8},
        placements={"A": "shared", "B": "shared"},
    )


def test_a_row_of_points_is_loaded_once_for_all_rows(tmp_path: Path) -> None:
    program = triangle("A[k][i] * B[k][j]", tmp_path)
    front, test, behind = program.text.partition("if (i < k)")
    assert test
    assert "B_row[rj] = sh.B[k - k0][j - j0];" in front.rpartition("for (int ri")[0]
    assert "C_r[ri][rj] += sh.A[k - k0][i - i0] * B_row[rj];" in behind
    found = verify(tmp_path, device="cpu", sizes=[{"N": 5}, {"N": 32}, {"N": 49}, {"N": 100}])
    assert (found.status, found.message, found.bit_equal) == ("ok", "", True)


@pytest.mark.parametrize("value", ["A[k][i] * B[i][j]", "A[k][i] * B[i][k]"])
def test_what_differs_from_row_to_row_or_not_in_a_row_stays(value: str) -> None:
    assert "B_row" not in triangle(value).text


def test_full_tiles_have_no_tests_and_stay() -> None:
    text = triangle("A[k][i] * B[k][j]").text
    full = text.partition("C_r[ri][rj] += ")[0].rpartition("for (int k")[2]
    assert "B_row" not in full


NAMES = ("lane", "warp", "step")


def divided(operator: Operator, value: IntExpr, by: int) -> IntExpr:
    return Apply(operator, (value, Constant(by)))


def expressions() -> st.SearchStrategy[IntExpr]:
    leaves = st.sampled_from(NAMES).map(Name) | st.integers(0, 40).map(Constant)
    division = st.sampled_from([Operator.QUOTIENT, Operator.REMAINDER])
    by = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(total, inner, inner)
            | st.builds(multiplied, st.integers(0, 16).map(Constant), inner)
            | st.builds(divided, division, inner, by)
        ),
        max_leaves=8,
    )


@given(expressions(), st.fixed_dictionaries({name: st.integers(0, 63) for name in NAMES}))
def test_values_stay(expression: IntExpr, values: dict[str, int]) -> None:
    assert evaluate(in_order(expression), values) == evaluate(expression, values)


@pytest.mark.parametrize("operator", [Operator.QUOTIENT, Operator.REMAINDER])
@pytest.mark.parametrize("by", [2, 4, 8, 16])
def test_what_is_too_small_to_matter_leaves_the_division(operator: Operator, by: int) -> None:
    step, odd = Name("step"), divided(Operator.REMAINDER, Name("lane"), 2)
    found = in_order(divided(operator, total(multiplied(Constant(2), step), odd), by))
    quotient = step if by == 2 else divided(Operator.QUOTIENT, step, by // 2)
    remainder = odd
    if by > 2:
        rest = divided(Operator.REMAINDER, step, by // 2)
        remainder = total(multiplied(Constant(2), rest), odd)
    assert found == (quotient if operator is Operator.QUOTIENT else remainder)


def test_what_may_matter_stays() -> None:
    step, lane = Name("step"), Name("lane")
    one = divided(Operator.QUOTIENT, total(multiplied(Constant(2), step), lane), 4)
    assert in_order(one) == one
