"""Kernels: loops, trip counts, references and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.polyhedral import Kernel, Subscript, schedule_scop
from tests.examples import examples

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


def test_initialisation_and_update_of_gemm_are_one_reference(scop_of: Callable[..., Any]) -> None:
    references = {r.array: r for r in _only(scop_of(GEMM)).references}
    assert set(references) == {"A", "B", "C", "alpha", "beta"}
    product = references["C"]
    assert (product.reads, product.writes) == (True, True)
    assert product.statements == ("S0", "S1")
    assert product.subscripts == (
        Subscript(coefficients=(("i", 1),), symbols=(), offset=0),
        Subscript(coefficients=(("j", 1),), symbols=(), offset=0),
    )


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


def test_loops_below_the_band_are_inner_loops(scop_of: Callable[..., Any]) -> None:
    source = (
        "for i in range(0, 64):\n    for h in range(0, 3):\n        for w in range(0, 5):\n"
        "            O[i] += I[i+h]*K[h,w]\n"
    )
    kernel = _only(scop_of(source))
    assert [loop.name for loop in kernel.loops] == ["i", "h"]
    assert [(loop.name, loop.trip_count) for loop in kernel.inner_loops] == [("w", 5)]
    (reduction,) = kernel.reductions
    assert reduction.loops == ("h", "w")


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


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
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
