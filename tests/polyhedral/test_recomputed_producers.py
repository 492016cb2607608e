"""Producers computed anew where they are read: which can be, and that every value stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.shipped import data_directory
from eatss.frontend.parse import parse_file
from eatss.polyhedral.expression import (
    Binary,
    Cast,
    Expression,
    Literal,
    Read,
)
from eatss.polyhedral.recomputed_producers import (
    recomputable_arrays,
    recomputed_arrays,
    with_recomputed_producers,
)
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Scop, Statement
from tests.examples import examples
from tests.polyhedral.executing import executed, region_of

ARGUMENTS = "double A[20][20], double B[20][20], double C[20][20], double x[20]"
LOCAL = "double T[20][20], U[20][20]; float F[20][20]; int K[20][20];"


def over(i: str, j: str, body: str) -> str:
    """Return two loops, each from its first to below its last, around a body."""
    loops = (
        f"for (int {name} = {first}; {name} < {last}; {name}++) "
        for name, (first, last) in zip("ij", (i.split(":"), j.split(":")), strict=True)
    )
    return "".join(loops) + body + "\n"


def region(loops: str, arguments: str = ARGUMENTS, local: str = LOCAL) -> Scop:
    """Return the region of a function with arrays of its own."""
    return region_of(loops, arguments, inside=local)


def changed(scop: Scop, *arrays: str) -> Scop:
    found = with_recomputed_producers(scop, arrays or recomputable_arrays(scop))
    assert found is not None
    return found


ALL = "0:20"
INNER = "1:19"

RECOMPUTED = {
    "neighbours": (
        over(ALL, ALL, "T[i][j] = A[i][j] * 2 + B[i][j];")
        + over(INNER, INNER, "C[i][j] = T[i][j + 1] - T[i - 1][j];"),
        ("T",),
        "(((A[i][j + 1] * 2) + B[i][j + 1]) - ((A[i - 1][j] * 2) + B[i - 1][j]))",
    ),
    "one value or another": (
        over(ALL, ALL, "T[i][j] = A[i][j] > 0 ? A[i][j] : x[j];")
        + over(ALL, INNER, "C[i][j] = T[i][j - 1] < 1 ? T[i][j] : 0;"),
        ("T",),
        "",
    ),
    "transposed, from below": (
        over(ALL, ALL, "T[i][19 - j] = A[j][i] * 2;") + over(ALL, ALL, "C[i][j] = T[j][i];"),
        ("T",),
        "(A[-i + 19][j] * 2)",
    ),
}


@pytest.mark.parametrize("which", RECOMPUTED)
def test_what_is_read_is_computed_anew(which: str) -> None:
    loops, arrays, text = RECOMPUTED[which]
    scop = region(loops)
    assert recomputable_arrays(scop) == arrays
    after = changed(scop)
    assert recomputed_arrays(after) == arrays
    assert after.written is scop
    assert not {one.name for one in after.arrays} & {*arrays}
    assert executed(after) == {at: v for at, v in executed(scop).items() if at[0] not in arrays}
    if text:
        (last,) = after.statements
        assert spelled(last, last.value) == text


REFUSED = {
    "reads beyond what is written": (
        over(INNER, ALL, "T[i][j] = A[i][j];") + over(ALL, ALL, "C[i][j] = T[i][j];")
    ),
    "an operand is overwritten in between": (
        over(ALL, ALL, "T[i][j] = A[i][j];")
        + over(ALL, "0:1", "A[i][5] = 0;")
        + over(ALL, ALL, "C[i][j] = T[i][j];")
    ),
    "an operand is overwritten by the reader, before another one reads": (
        over(ALL, ALL, "T[i][j] = A[i][j];") + over(ALL, INNER, "A[i][j] = T[i][j - 1];")
    ),
    "a sum": (
        over(ALL, ALL, "T[i][j] = 0;")
        + over(ALL, ALL, "for (int k = 0; k < 20; k++) T[i][j] += A[i][k];")
        + over(ALL, ALL, "C[i][j] = T[i][j];")
    ),
    "two statements write what one reads": (
        over("0:10", ALL, "T[i][j] = A[i][j];")
        + over("10:20", ALL, "T[i][j] = B[i][j];")
        + over(ALL, ALL, "C[i][j] = T[i][j];")
    ),
    "a condition": (
        over(ALL, ALL, "if (i < 19) T[i][j] = A[i][j];") + over(ALL, ALL, "C[i][j] = T[i][j];")
    ),
    "each element is read by many": (
        "for (int i = 0; i < 20; i++) T[i][0] = A[i][0];\n"
        + over(ALL, ALL, "C[i][j] = T[i][0] * B[i][j];")
    ),
    "steps of time": (
        "for (int t = 0; t < 3; t++) {\n"
        + over(INNER, INNER, "T[i][j] = A[i][j - 1] + A[i][j + 1];")
        + over(INNER, INNER, "A[i][j] = T[i - 1][j] + T[i + 1][j];")
        + "}"
    ),
    "the value of the step before": (
        over(ALL, ALL, "T[i][j] = A[i][j];")
        + "for (int t = 0; t < 3; t++) {\n"
        + over(ALL, ALL, "C[i][j] = T[i][j];")
        + over(ALL, ALL, "T[i][j] = B[i][j];")
        + "}"
    ),
    "a remainder": (
        over("0:10", ALL, "T[2 * i][j] = A[i][j];")
        + over(ALL, ALL, "if (i % 2 == 0) C[i][j] = T[i][j];")
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_is_not_proven_to_stay_is_read_where_it_is(which: str) -> None:
    scop = region(REFUSED[which])
    assert "T" not in recomputable_arrays(scop)
    assert with_recomputed_producers(scop, ("T",)) is None


def test_an_array_that_others_see_is_still_stored() -> None:
    scop = region(
        over(ALL, ALL, "B[i][j] = A[i][j] * 2;") + over(ALL, INNER, "C[i][j] = B[i][j - 1];")
    )
    after = changed(scop)
    assert [one.name for one in after.statements] == ["S0", "S1"]
    assert {access.array for one in after.statements for access in one.reads} == {"A"}
    assert executed(after) == executed(scop)
    (kernel,) = schedule_scop(after).kernels  # both read A, so they are one kernel
    assert kernel.statements == ("S0", "S1")


def test_chains_of_stencils_end_where_values_get_long() -> None:
    names = [f"T{n}" for n in range(6)]
    steps = [
        over(
            f"{n}:{20 - n}",
            f"{n}:{20 - n}",
            f"{new}[i][j] = {old}[i - 1][j] + {old}[i + 1][j] + {old}[i][j - 1] + {old}[i][j + 1];",
        )
        for n, (old, new) in enumerate(zip(["A", *names], [*names, "C"], strict=True), start=1)
    ]
    local = "".join(f"double {name}[20][20];" for name in names)
    found = recomputable_arrays(region("".join(steps), local=local))
    assert found == ("T0", "T1", "T2", "T4", "T5")


@pytest.mark.parametrize("name", ["gemm", "adi", "jacobi-2d", "gemver", "correlation", "heat-3d"])
def test_kernels_whose_values_change_have_nothing_to_compute_anew(name: str) -> None:
    text = (data_directory("kernels") / f"{name}.c").read_text(encoding="utf-8")
    (scop,) = parse_file(text).scops
    assert recomputable_arrays(scop) == ()


# Beside executing ------------------------------------------------------------------------


def spelled(statement: Statement, node: Expression) -> str:
    """Return a value with parentheses around all operations, without conversions."""
    if isinstance(node, Read):
        return statement.accesses[node.access].text
    if isinstance(node, Literal):
        return node.text
    if isinstance(node, Cast):
        return spelled(statement, node.operand)
    assert isinstance(node, Binary)
    return f"({spelled(statement, node.left)} {node.operator} {spelled(statement, node.right)})"


SUBSCRIPTS = ("[i][j]", "[i - 1][j]", "[i][j + 1]", "[i + 1][j]", "[7 - i][j]", "[j][i]", "[2][j]")
BODIES = ("{0} + 2 * {1}", "{0} > {1} ? {0} : 0", "{0} * (i - j) - {1}", "{0}")


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Draw nests that each write an array from those before it; some change what others read."""
    text, before = "", ["A", "B"]
    for whole in (True, draw(st.booleans()), False):
        target = draw(st.sampled_from(["T", "U", "F", "C", "B"]))
        bounds = ["0:8" if whole else draw(st.sampled_from(["1:7", "1:6"])) for _ in "ij"]
        near = ["[i][j]", "[j][i]", "[7 - i][j]"] if whole else SUBSCRIPTS
        reads = [
            draw(st.sampled_from([before[-1], *before])) + draw(st.sampled_from(near)) for _ in "ab"
        ]
        body = draw(st.sampled_from(BODIES)).format(*reads)
        text += over(bounds[0], bounds[1], f"{target}[i][j] = {body};")
        before.append(target)
    return text


found_some: list[bool] = []


@given(text=chains())
@settings(max_examples=examples(30), deadline=None)
def check_random_chains(text: str) -> None:
    scop = region(text, ARGUMENTS.replace("20", "8"), LOCAL.replace("20", "8"))
    arrays = recomputable_arrays(scop)
    found_some.append(bool(arrays))
    after = with_recomputed_producers(scop, arrays)
    assert after is not None
    kept = {one.name for one in after.arrays}
    left = {at: value for at, value in executed(scop).items() if at[0] in kept}
    assert executed(after) == left


def test_random_chains_leave_the_same_values() -> None:
    check_random_chains()
    assert 10 < sum(found_some) < len(found_some)
