"""Registers that are set behind tests and read without them are zero first, if they are many.

Loads from whole boxes stand in front of the tests that they do not depend on.

Sums, quotients and remainders in their shortest form have the values they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.checks import kernel_faults
from eatss.lower.kernel.nodes import (
    Argument,
    Copy,
    Declare,
    If,
    Init,
    Node,
    Scope,
    over_places,
)
from eatss.lower.transform.registers_defined import with_registers_defined
from eatss.lower.transform.use_instruction import in_order
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
from tests.lower.checking import checked
from tests.lower.small_kernels import (
    ZERO,
    Machine,
    at,
    buffer,
    kernel,
    loop,
    place,
)

TESTS = ("a", "b", "c")
MEMORY = buffer("C", "global", 8)
SUMS = buffer("C_r", "register", 4, 16)


ONE, SUM = at(MEMORY, ZERO), at(SUMS, Name("ri"), Name("rj"))
LOAD = over_places(SUMS, ("ri", "rj"), Copy(target=SUM, source=ONE))
STORE = over_places(SUMS, ("ri", "rj"), Copy(target=ONE, source=SUM))


def where(tests: str, *body: Node) -> If:
    return If(conditions=tuple(map(Name, tests)), body=body)


def defined(*body: Node, taken: set[str] | None = None) -> tuple[Node, ...]:
    names = {"ri", "rj", "rk"} if taken is None else taken
    passed = (*(Argument(name=one) for one in TESTS), Argument(name="C", buffer=MEMORY))
    found = with_registers_defined(kernel(*body, arguments=passed), names)
    assert not kernel_faults(found, ())
    return found.body


DECLARED = Declare(buffer=SUMS)


class Registers(Machine):
    """Knows which registers have values, and how many were read without one."""

    def __init__(self) -> None:
        self.has: set[tuple[int, ...]] = set()
        self.missed = 0

    def do(self, node: Node, names: Mapping[str, int]) -> None:
        if isinstance(node, Declare):
            self.has.clear()
            return
        assert isinstance(node, Copy | Init)
        if isinstance(node, Copy) and node.source.buffer == SUMS:
            self.missed += place(node.source, names) not in self.has
        if node.target.buffer == SUMS:
            self.has.add(place(node.target, names))


def missed(body: Sequence[Node]) -> int:
    """Return how often registers without values are read, over all that tests may say."""
    found = 0
    for values in product((0, 1), repeat=len(TESTS)):
        machine = Registers()
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
    st.lists(behind_tests(LOAD), min_size=1, max_size=3),
    st.lists(behind_tests(STORE), min_size=1, max_size=3),
)
def test_nothing_without_a_value_is_read(loads: list[Node], stores: list[Node]) -> None:
    body = (DECLARED, *loads, *stores)
    found = defined(*body, taken={"ri", "rj", "e"})
    assert missed(found) == 0
    if len(loads) == 1:  # more of them may make up for each other
        assert (found != body) == (missed(body) > 0)


TRIANGLE = """
#ifndef N
#define N 4096
#endif
void f(float C[N][N], float A[N][N], float B[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = i + 1; k < N; k++)
                C[i][j] += A[k][i] * B[k][j];
#pragma endscop
}
"""


def test_a_row_of_points_is_loaded_once_for_all_rows(tmp_path: Path) -> None:
    sizes = [{"N": size} for size in (5, 32, 49, 100)]
    how: dict[str, Any] = {"tiles": {"i": 32, "j": 32, "k": 16}, "block": {"i": 8, "j": 8}}
    staged = {"A": "shared", "B": "shared"}
    program = checked(TRIANGLE, tmp_path, sizes, bit_equal=True, placements=staged, **how)
    front, test, behind = program.text.partition("if (i < k)")
    assert test
    assert "B_row[rj] = sh.B[k - k0][j - j0];" in front.rpartition("for (int ri")[0]
    assert "C_r[ri][rj] += sh.A[k - k0][i - i0] * B_row[rj];" in behind


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
