"""Kernels of a schedule: their loops, references and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import permutations, product
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import islpy as isl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.polyhedral.isl_names import fixed_box
from eatss.polyhedral.kernel import Kernel, Subscript
from eatss.polyhedral.schedule import schedule_scop
from eatss.session.session import Session
from tests.examples import examples

# -- Kernels: loops, trip counts, references and reductions.


GEMM = (
    "for i in range(0, 40):\n    for j in range(0, 50):\n        C[i,j] *= beta\n"
    "        for k in range(0, 60):\n            C[i,j] += alpha*A[i,k]*B[k,j]\n"
)


def _only(scop: Any) -> Kernel:
    (kernel,) = schedule_scop(scop).kernels
    return kernel


def test_gemm_has_two_parallel_loops_and_a_serial_one(scop_of: Callable[..., Any]) -> None:
    kernel = _only(scop_of(GEMM))
    assert [(loop.name, loop.parallel, loop.trip_count) for loop in kernel.loops] == [
        ("i", True, 40),
        ("j", True, 50),
        ("k", False, 60),
    ]
    assert kernel.permutable
    assert kernel.host_loops == ()
    assert kernel.inner_loops == ()
    assert kernel.statements == ("S0", "S1")


def test_host_loops_are_symbols_of_subscripts(scop_of: Callable[..., Any]) -> None:
    source = (
        "for k in range(0, N):\n    for j in range(k+1, N):\n        A[k,j] = A[k,j]/A[k,k]\n"
        "    for i in range(k+1, N):\n        for j in range(k+1, N):\n"
        "            A[i,j] = A[i,j] - A[i,k]*A[k,j]\n"
    )
    scheduled = schedule_scop(scop_of(source, parameters=["N"]))
    first, second = scheduled.kernels
    assert first.host_loops == second.host_loops == ("k",)
    column = next(r for r in second.references if r.text == "A[i][k]")
    assert column.subscripts[1] == Subscript(coefficients=(), symbols=(("k", 1),), offset=0)
    assert [loop.trip_count for loop in second.loops] == [None, None]


def test_planes_in_turns_are_told_apart_and_each_is_one(scop_of: Callable[..., Any]) -> None:
    source = (
        "for t in range(0, T):\n    for i in range(1, N-1):\n"
        "        A[(t+1)%2,i] = A[t%2,i-1] + A[t%2,i+1]\n"
    )
    (kernel,) = schedule_scop(scop_of(source, parameters=["T", "N"])).kernels
    store, left, right = (one.subscripts for one in kernel.references)
    assert left[0] == right[0] != store[0]
    assert left[0].distance(right[0]) == 0
    assert left[0].distance(store[0]) is None
    assert left[1].distance(right[1]) == 2


def test_a_plane_in_turns_is_one_wide() -> None:
    box = isl.Set("[t, o] -> { A[d, i] : d = t mod 2 and o <= i < o + 4 and t >= 0 }")
    (plane, one), (_, other) = fixed_box(box) or ()
    assert (one, other) == (1, 4)
    assert plane.plain_is_equal(isl.PwAff("[t, o] -> { [(t mod 2)] }"))


def test_a_plane_that_only_some_steps_have_is_a_whole_number() -> None:
    half = isl.Set("[t, o] -> { A[d, i] : 2d = t and o <= i < o + 4 and t >= 0 }")
    (plane, one), _ = fixed_box(half) or ()
    assert one == 1
    assert plane.plain_is_equal(isl.PwAff("[t, o] -> { [floor(t / 2)] }"))


def test_a_time_skewed_band_is_seen_through_its_inverse(scop_of: Callable[..., Any]) -> None:
    source = (
        "for t in range(0, 20):\n    for i in range(1, 99):\n        for j in range(1, 99):\n"
        "            A[i,j] = A[i-1,j] + A[i,j-1] + A[i,j] + A[i+1,j] + A[i,j+1]\n"
    )
    kernel = _only(scop_of(source))
    assert [loop.parallel for loop in kernel.loops] == [True, True]
    assert len(kernel.host_loops) == 1
    for reference in kernel.references:
        assert all(subscript.affine for subscript in reference.subscripts)
    assert len(kernel.references) == 5


def test_a_sum_is_a_reduction_and_a_prefix_sum_is_not(scop_of: Callable[..., Any]) -> None:
    total = "for i in range(0, N):\n    for j in range(0, N):\n        y[i] += A[i,j]\n"
    prefix = total + "        B[i,j] = y[i]\n"
    (reduction,) = _only(scop_of(total, parameters=["N"])).reductions
    assert (reduction.statement, reduction.operator, reduction.loops) == ("S0", "+", ("j",))
    kernels = schedule_scop(scop_of(prefix, parameters=["N"])).kernels
    assert [r for kernel in kernels for r in kernel.reductions] == []


def test_an_accumulator_that_is_reset_on_the_way_is_no_reduction(
    scop_of: Callable[..., Any],
) -> None:
    source = (
        "for j in range(0, N):\n    for i in range(0, 100):\n"
        "        if i == 5:\n            B[j] = 0\n        B[j] += A[i]\n"
    )
    kernels = schedule_scop(scop_of(source, parameters=["N"])).kernels
    assert [kernel.reductions for kernel in kernels] == [()]


def test_operators_that_are_reductions(scop_of: Callable[..., Any]) -> None:
    loop = "for i in range(0, N):\n    for j in range(0, N):\n        y[i] = {}\n"
    found = {}
    for value in (
        "y[i] - A[i,j]",
        "A[i,j]*y[i]",
        "fmax(y[i], A[i,j])",
        "B[i,j] + (y[i] + A[i,j])",
        "A[i,j] - y[i]",
        "y[i]/A[i,j]",
        "y[i] + A[i,j]*y[i]",
        "A[i,j]",
    ):
        kernel = _only(scop_of(loop.format(value), parameters=["N"]))
        found[value] = tuple(r.operator for r in kernel.reductions)
    assert found == {
        "y[i] - A[i,j]": ("+",),
        "A[i,j]*y[i]": ("*",),
        "fmax(y[i], A[i,j])": ("fmax",),
        "B[i,j] + (y[i] + A[i,j])": ("+",),
        "A[i,j] - y[i]": (),
        "y[i]/A[i,j]": (),
        "y[i] + A[i,j]*y[i]": (),
        "A[i,j]": (),
    }


def test_leading_serial_statements_stay_on_the_host(scop_of: Callable[..., Any]) -> None:
    source = (
        "s[0] = 1\nfor i in range(1, 9):\n    s[i] = s[i-1]*2\n"
        "for i in range(0, 9):\n    B[i] = s[i]\n"
    )
    scheduled = schedule_scop(scop_of(source))
    assert scheduled.host_statements == ("S0", "S1")
    assert [kernel.statements for kernel in scheduled.kernels] == [("S2",)]


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_trip_counts_and_references_equal_enumeration(
    data: st.DataObject,
    small_programs: st.SearchStrategy[Any],
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Any],
) -> None:
    source, local = data.draw(small_programs)
    scop = scop_of(source, local=local)
    accessed = {instance: {written, *used} for instance, written, used in trace(source, {})}
    for kernel in schedule_scop(scop).kernels:
        points = dict(listed(kernel.schedule))
        for position, loop in enumerate(kernel.loops):
            values = {point[position] for _, point in points.values()}
            assert loop.trip_count == len(values)
        if kernel.host_loops:
            continue
        touched = {(p, e) for i, p in points.items() for e in accessed[i]}
        by_reference = set()
        for reference in kernel.references:
            by_reference |= listed(type(kernel.schedule).from_map(reference.relation))
        assert by_reference == touched


# -- Updates are reductions where their order does not matter, whatever NaN there is.


COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def operators(updates: Sequence[str], folder: Path, kind: str) -> list[tuple[str, ...]]:
    """Return the operators of the reductions in rows of each update of ``t[i]`` by ``a[i][j]``."""
    source = folder / "program.c"
    source.write_text(
        "".join(
            f"void f{at}(int n, {kind} t[n], {kind} a[n][n])\n{{\n"
            "#pragma scop\n    for (int i = 0; i < n; i++)\n        for (int j = 0; j < n; j++)\n"
            f"            {update}\n#pragma endscop\n}}\n"
            for at, update in enumerate(updates)
        ),
        encoding="utf-8",
    )
    kernels = [kernel for one in Session(source).symbolic.program.scops for kernel in one.facts]
    return [tuple(one.operator for one in kernel.reductions) for kernel in kernels]


def in_some_order(comparison: str, *, left: str, yes: str, values: tuple[float, ...]) -> bool:
    """Tell whether ``left ? right`` chooses the same of values in any order, from any start."""

    def update(target: float, term: float) -> float:
        sides = (target, term) if left == "t" else (term, target)
        holds = COMPARISONS[comparison](*sides)
        return target if holds == (yes == "t") else term

    def same(one: float, other: float) -> bool:
        return one == other or (math.isnan(one) and math.isnan(other))

    return all(
        same(reduce(update, order, start), reduce(update, values, start))
        for start in values
        for order in permutations(values)
    )


FORMS = list(product(COMPARISONS, ("t", "e"), ("t", "e")))


@pytest.mark.parametrize("kind", ["float", "int"])
def test_a_choice_is_a_reduction_if_its_order_does_not_matter(kind: str, tmp_path: Path) -> None:
    names = {"t": "t[i]", "e": "a[i][j]"}
    other = {"t": "a[i][j]", "e": "t[i]"}
    updates = [
        f"t[i] = {names[left]} {comparison} {other[left]} ? {names[yes]} : {other[yes]};"
        for comparison, left, yes in FORMS
    ]
    values = (-1.0, 0.0, 2.0, math.inf, *((math.nan,) if kind == "float" else ()))
    found = zip(FORMS, operators(updates, tmp_path, kind), strict=True)
    for (comparison, left, yes), operator in found:
        larger = (comparison in (">", ">=")) == (left == yes)
        free = in_some_order(comparison, left=left, yes=yes, values=values)
        assert operator == (("max" if larger else "min",) if free else ())
