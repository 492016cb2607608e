"""Operands that are overwritten later: which are copied, and that each copy has what was read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.shipped import data_directory
from eatss.frontend.parse import parse_file
from eatss.polyhedral.copied_operands import (
    frees_loops,
    operands_to_copy,
    with_copied_operands,
)
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Scop
from tests.examples import examples
from tests.polyhedral.executing import Element, instances, region_of

SQUARE = "double A[N][N], double B[N][N], double x[N]"
NEST = "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) "


def region(loops: str, arguments: str = SQUARE, size: int = 600) -> Scop:
    """Return the region of a function whose arrays have ``N`` rows."""
    return region_of(loops, arguments, N=size)


def copied(scop: Scop) -> list[str]:
    """Return the references that are worth a copy."""
    places = operands_to_copy(schedule_scop(scop))
    return [scop.statement(name).accesses[number].text for name, number in sorted(places)]


COPIED = {
    "upper triangle": (
        NEST + "for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];",
        ["B[k][j]"],
    ),
    "lower triangle, upwards": (
        "for (int i = N - 1; i >= 0; i--) for (int j = 0; j < N; j++)\n"
        "for (int k = 0; k < i; k++) B[i][j] += A[i][k] * B[k][j];",
        ["B[k][j]"],
    ),
    "from the right": (
        NEST + "for (int k = j + 1; k < N; k++) B[i][j] += B[i][k] * A[k][j];",
        ["B[i][k]"],
    ),
    "a guard": (
        NEST + "for (int k = i + 1; k < N; k++) if (k < i + j) B[i][j] += A[k][i] * B[k][j];",
        ["B[k][j]"],
    ),
    "a triangle times a vector": (
        "for (int i = 0; i < N; i++) for (int k = i + 1; k < N; k++) x[i] += A[i][k] * x[k];",
        ["x[k]"],
    ),
    "neighbours below": (
        "for (int i = 0; i < N - 1; i++) for (int j = 1; j < N; j++)\n"
        "B[i][j] = B[i + 1][j - 1] + B[i + 1][j];",
        ["B[i + 1][j - 1]", "B[i + 1][j]"],
    ),
}


@pytest.mark.parametrize("which", COPIED)
def test_what_keeps_a_loop_in_order_is_copied(which: str) -> None:
    loops, references = COPIED[which]
    assert copied(region(loops)) == references


LEFT = {
    "rows need those before them": (
        NEST + "for (int k = 0; k < i; k++) B[i][j] -= A[i][k] * B[k][j];"
    ),
    "some of the values are new": (
        NEST + "for (int k = 0; k < N; k++) if (k != i) B[i][j] += A[k][i] * B[k][j];"
    ),
    "nothing is read before it is overwritten": (
        NEST + "for (int k = 0; k < N; k++) B[i][j] += A[i][k] * A[k][j];"
    ),
    "no more work than a copy is": (
        "for (int i = 0; i < N - 1; i++) for (int j = 0; j < N; j++) B[i][j] = B[i + 1][j];"
    ),
    "steps need those before them": (
        "for (int t = 0; t < 10; t++) for (int i = 1; i < N - 1; i++)\nx[i] = x[i - 1] + x[i + 1];"
    ),
    "a copy needs more loops than there are": (
        "for (int i = 0; i < N - 1; i++) B[i][i] = B[i + 1][i + 1];"
    ),
    "loops are parallel as they are": (
        "for (int i = 0; i < N; i++) x[i] = A[i][0];\n" + NEST + "A[i][j] = 2 * x[i];"
    ),
}


@pytest.mark.parametrize("which", LEFT)
def test_what_frees_nothing_is_read_where_it_is(which: str) -> None:
    assert copied(region(LEFT[which])) == []


@pytest.mark.parametrize("name", ["fdtd-apml", "floyd-warshall", "symm"])
def test_kernels_with_other_dependences_are_dismissed_before_a_second_schedule(name: str) -> None:
    text = (data_directory("kernels") / f"{name}.c").read_text(encoding="utf-8")
    (scop,) = parse_file(text).scops
    assert operands_to_copy(schedule_scop(scop)) == frozenset()


def test_a_read_with_a_new_value_is_never_from_a_copy() -> None:
    scop = region(LEFT["some of the values are new"])
    assert with_copied_operands(scop, {("S0", 3)}) is scop


def test_all_reads_spelled_alike_are_from_the_copy() -> None:
    scop = region(NEST + "for (int k = i + 1; k < N; k++) B[i][j] += B[k][j] * B[k][j];")
    after = with_copied_operands(scop, operands_to_copy(schedule_scop(scop)))
    assert [one.array for one in after.statement("S0").reads] == ["B", "B_before", "B_before"]


def test_a_copy_has_every_element_that_is_read_from_it() -> None:
    scop = region(COPIED["neighbours below"][0])
    after = with_copied_operands(scop, operands_to_copy(schedule_scop(scop)))
    extent = after.array("B_before").extent
    reads = [one for one in after.statement("S0").reads if one.array == "B_before"]
    assert all(one.relation.range().is_subset(extent) for one in reads)
    assert after.statement("S_copy").write.relation.range().is_equal(extent)
    assert extent.is_strict_subset(scop.array("B").extent.set_tuple_name("B_before"))


def test_names_that_are_taken_are_left_alone() -> None:
    loops = COPIED["upper triangle"][0].replace("A[", "B_before[")
    scop = region(loops, "double B_before[N][N], double B[N][N]")
    after = with_copied_operands(scop, operands_to_copy(schedule_scop(scop)))
    assert [array.name for array in after.arrays if array.copy_of] == ["B_before_1"]
    unused = region(COPIED["upper triangle"][0], f"{SQUARE}, double B_before")
    after = with_copied_operands(unused, operands_to_copy(schedule_scop(unused)))
    assert [array.name for array in after.arrays if array.copy_of] == ["B_before_1"]


def test_a_copy_frees_loops_and_costs_none() -> None:
    scop = region(COPIED["upper triangle"][0])
    plain = schedule_scop(scop)
    after = schedule_scop(with_copied_operands(scop, operands_to_copy(plain)))
    assert frees_loops(plain, after)
    assert not frees_loops(plain, plain)
    assert [len(kernel.parallel_loops) for kernel in after.kernels] == [2, 2]


# Beside executing ------------------------------------------------------------------------


def executed(scop: Scop) -> dict[Element, int]:
    """Return what a region leaves: each instance stores a number made of all that it reads."""
    memory: dict[Element, int] = {}
    copies = {array.name for array in scop.arrays if array.copy_of}
    for statement, _, touched in instances(scop):
        values = [memory.get(touched[n], hash(touched[n])) for n in sorted(touched) if n]
        value = values[0] if touched[0][0] in copies else hash((statement.name, *values))
        memory[touched[0]] = value
    return {at: value for at, value in memory.items() if at[0] not in copies}


PIECES = {
    "rows": ["int i = 0; i < 5; i++", "int i = 4; i >= 0; i--", "int i = 0; i < 3; i++"],
    "sum": [
        "int k = i + 1; k < 5; k++",
        "int k = 0; k < i; k++",
        "int k = i; k < 5; k++",
        "int k = 0; k < 5; k += 2",
    ],
    "target": ["B[i][j]", "B[j][i]", "B[i + 1][j]", "B[i][0]"],
    "operand": ["B[k][j]", "B[k + 1][j]", "B[k][j] * B[k][j]", "B[j][k]", "B[k][i]"],
    "sign": ["+=", "="],
    "guard": ["", "if (k < i + j) ", "if (j > 1) "],
    "after": ["", "B[i][j] = 2 * B[i][j];", "A[i][j] = B[i][j];", "B[j][i] = A[i][j];"],
}
"""What programs are made of."""


@settings(max_examples=examples(6), deadline=None)
@given(st.fixed_dictionaries({name: st.sampled_from(of) for name, of in PIECES.items()}))
def test_a_region_with_copies_leaves_what_the_region_does(piece: dict[str, str]) -> None:
    loops = (
        f"for ({piece['rows']}) for (int j = 0; j < 4; j++) {{\n"
        f"for ({piece['sum']}) {piece['guard']}"
        f"{piece['target']} {piece['sign']} A[i][k] * {piece['operand']};\n{piece['after']} }}"
    )
    scop = region(loops, "double A[N][N], double B[N][N]", size=8)
    early = [
        (statement.name, number)
        for statement in scop.statements
        for number in range(1, len(statement.accesses))
        if with_copied_operands(scop, [(statement.name, number)]) is not scop
    ]
    assert set(operands_to_copy(schedule_scop(scop))) <= set(early)
    if early:
        assert executed(with_copied_operands(scop, early)) == executed(scop)
    written: set[Element] = set()
    for statement, _, touched in instances(scop):
        assert all(touched[n] not in written for name, n in early if name == statement.name)
        written.add(touched[0])
