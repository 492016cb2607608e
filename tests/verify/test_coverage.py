"""Verification says what it covered, and is not ok where that is nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eatss.base.codec import encode
from eatss.program import (
    Apply,
    Argument,
    Assumption,
    Constant,
    IntExpr,
    Name,
    Operator,
    Parameter,
    Program,
)
from eatss.report.pages import printed
from eatss.verify.compare import bounds_by_perturbing
from eatss.verify.conditions import Conditions
from eatss.verify.data import Buffer, make_buffers
from eatss.verify.instrumentation import instrumented_text
from eatss.verify.result import SizeResult
from eatss.verify.run import _runs, verify
from eatss.verify.sizes import (
    AIMED_MEMORY_LIMIT_BYTES,
    MEMORY_LIMIT_BYTES,
    choose_sizes,
    edge_sizes,
    refused_sizes,
    varied_sizes,
)
from eatss.verify.worker import _Worker
from tests.verify.conftest import HEAD, MATMUL_C, array

ONE: Mapping[str, int] = {"M": 20, "N": 37, "K": 33}


def only_for(program: Program, sizes: Mapping[str, int]) -> Program:
    """Return a program for its own sizes."""
    assumptions = tuple(
        Assumption(
            condition=Apply(Operator.EQ, (Name(name), Constant(value))),
            message=f"this code is for {name} = {value} only",
        )
        for name, value in sizes.items()
    )
    entry = replace(program.entries[0], assumptions=assumptions)
    return replace(program, entries=(entry,))


@pytest.mark.parametrize("sizes", [ONE, {"M": 184, "N": 184, "K": 184}], ids=["few", "many"])
def test_a_program_for_its_own_sizes_is_compared_at_them(
    matmul: Program, folder: Callable[..., Path], sizes: Mapping[str, int]
) -> None:
    checks = "".join(
        f"    if (!({name} == {value})) return {-number};\n"
        for number, (name, value) in enumerate(sizes.items(), 1)
    )
    checked = ("    if (M > 0 && N > 0)", f"{checks}    if (M > 0 && N > 0)")
    fixed = only_for(matmul, sizes)
    found = verify(folder(fixed, MATMUL_C, checked), device="cpu")
    assert (found.status, found.message) == ("ok", "")
    assert [dict(result.sizes) for result in found.results if result.compared] == [sizes]
    assert sum(result.refused for result in found.results) == 3
    wrong = verify(folder(fixed, MATMUL_C, checked, ("= sum;", "= sum + 1;")), device="cpu")
    assert wrong.status == "wrong result"


@pytest.mark.parametrize(("events", "orders"), [(9e7, 2), (1.1e8, 1)])
def test_the_only_sizes_of_a_program_run_in_both_orders_as_others_do(
    matmul: Program, events: float, orders: int
) -> None:
    (run,) = (one for one in _runs(only_for(matmul, ONE), None) if not one.probe)
    worker: Any = object.__new__(_Worker)
    result = SizeResult(launcher="", sizes=(), status="ok")
    done: list[bool] = []
    worker._search = SimpleNamespace(untaken=list, steps=lambda: events * len(done))

    def once(*how: Any) -> tuple[SizeResult, None]:
        done.append(how[-1])
        return result, None

    worker._once = once
    machine = SimpleNamespace(orders=(False, True))
    worker._both_orders(run, True, matmul.entries[0], machine, None, result)
    assert len(done) == orders


def test_verification_that_compares_nothing_is_not_ok(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    found = verify(folder(matmul, MATMUL_C), device="cpu", sizes=[{"M": 0, "N": 0, "K": 0}])
    assert all(result.status == "ok" for result in found.results)
    assert found.status == "nothing compared"
    assert not found.ok
    assert "no run compared an element" in " ".join(printed(found, "table").split())


def test_a_program_that_runs_no_kernel_is_not_ok(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    original = MATMUL_C.replace("i < M", "i < M && M < 0")
    place = folder(matmul, original, ("    if (M > 0", "    if (M < 0 && M > 0"))
    found = verify(place, device="cpu")
    assert all(result.status == "ok" for result in found.results)
    assert found.status == "nothing compared"
    assert "no kernel ran" in found.message


def test_what_was_covered_is_counted(matmul: Program, folder: Callable[..., Path]) -> None:
    found = verify(folder(matmul, MATMUL_C), device="cpu", sizes=[{"M": 20, "N": 32, "K": 16}])
    coverage = found.coverage
    assert coverage is not None
    assert coverage.elements == 20 * 32 + 20 * 16 + 16 * 32
    assert coverage.changed == 20 * 32
    assert coverage.idle == ()
    assert any(
        each.never == "false" and each.condition == "M > 0 && N > 0" for each in coverage.untaken
    )
    document = encode(found)["coverage"]
    assert document["elements"] == coverage.elements
    assert document["idle"] == []


def test_sizes_of_our_own_take_every_branch_both_ways(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    coverage = verify(folder(matmul, MATMUL_C), device="cpu").coverage
    assert coverage is not None
    assert coverage.branches == 8
    assert coverage.untaken == ()


def test_branches_of_code_in_two_versions_and_none_of_constants(matmul: Program) -> None:
    text = HEAD + (
        'extern "C" __global__ void matmul_k0(double *C)\n'
        "{\n"
        "    if (i0 + 16 <= M) { // if (none)\n"
        "        for (int k = 0; k < M; ++k) C[k] = 1;\n"
        "    } else {\n"
        "        if (i0 < M) C[0] = 1;\n"
        "    }\n"
        "}\n"
        'extern "C" int matmul_cuda(double *C)\n'
        "{\n"
        "    if (!(2 * (long)3 <= 7)) return -1;\n"
        "    if (cudaError_t eatss_error = cudaMalloc(&C, 8)) return (int)eatss_error;\n"
        "    return 0;\n"
        "}\n"
    )
    counted, branches = instrumented_text(replace(matmul, text=text))
    assert [(b.kind, b.condition, b.has_else) for b in branches] == [
        ("if", "i0 + 16 <= M", True),
        ("for", "k < M", False),
        ("if", "i0 < M", False),
    ]
    assert "eatss::took_if(0, i0 + 16 <= M)" in counted
    assert "for (int k = 0; eatss::took_for(1, k < M); ++k)" in counted
    assert counted.count("\n") == text.count("\n")


def test_choices_are_branches_and_each_knows_what_it_stands_behind(matmul: Program) -> None:
    text = HEAD + (
        'extern "C" __global__ void matmul_k0(double *C)\n'
        "{\n"
        "    for (int k = 0, s = 0; k < M; k += 4, s = s == 3 ? 0 : s + 1)\n"
        "        if (k + 4 <= M) C[k] = 1;\n"
        "        else C[k] = (C[s == 0 ? 3 : s - 1] > 0 ? k : M);\n"
        "    C[0] = M > 2 ? (N > 2 ? 1 : 2) : 3;\n"
        "}\n"
        'extern "C" int matmul_cuda(double *C)\n'
        "{\n"
        "    return M > 2 ? 0 : 1;\n"
        "}\n"
    )
    counted, branches = instrumented_text(replace(matmul, text=text))
    assert [(b.kind, b.condition, b.inside) for b in branches] == [
        ("for", "k < M", ()),
        ("choice", "s == 3", ((0, True),)),
        ("if", "k + 4 <= M", ((0, True),)),
        ("choice", "s == 0", ((0, True), (2, False))),
        ("choice", "M > 2", ()),
        ("choice", "N > 2", ()),
    ]
    assert "s = eatss::took_choice(1, s == 3) ? 0 : s + 1" in counted
    assert "C[eatss::took_choice(3, s == 0) ? 3 : s - 1] > 0 ? k" in counted
    assert [b.ways for b in branches[:4]] == [(True,), (True, False), (True, False), (True, False)]


PLACE = """
extern "C" __global__ void matmul_k0(double *C, const double *A)
{
    const int i0 = 16 * (int)blockIdx.x;
    const int j0 = 16 * (int)blockIdx.y;
    if (1 < M)
        for (int k0 = 0; k0 < K; k0 += 32)
            if (WHETHER) C[0] = 1;
}
"""


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        ("k0 + 96 + 32 <= K", {"K": 128}),
        ("i0 + 4 * (int)threadIdx.x + 3 < M && k0 < K", {"M": 4}),
        ("i0 < j0 && j0 + 16 <= N", {"N": 32}),
        ("N > 40 + 2 && K > 7", {"N": 43, "K": 8}),
        ("C[0] < A[0]", {}),
    ],
)
def test_conditions_tell_how_large_sizes_have_to_be(
    condition: str, least: Mapping[str, int], matmul: Program
) -> None:
    program = replace(matmul, text=HEAD + PLACE.replace("WHETHER", condition))
    branches = instrumented_text(program)[1]
    conditions = Conditions(program, branches)
    number = next(k for k, one in enumerate(branches) if one.condition == condition)
    assert conditions.least_sizes(number, True) == {"M": 2, **least}


def test_a_fault_in_the_steady_state_of_a_loop_is_found(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    sixth = ("k < K; k += 16)", "k < K; k += 16, sum += k == 96 && M < 16 ? 1 : 0)")
    found = verify(folder(matmul, MATMUL_C, sixth), device="cpu", first_failure=True)
    assert found.status == "wrong result"


def test_code_that_no_size_runs_is_incomplete(matmul: Program, folder: Callable[..., Path]) -> None:
    never = ("= sum;", "= threadIdx.x == 0 && K > 1000000 ? 0 : sum;")
    place = folder(matmul, MATMUL_C, never)
    found = verify(place, device="cpu")
    assert found.status == "incomplete"
    assert found.exit_code == 3
    assert "(threadIdx.x == 0 && K > 1000000) was never true" in found.message
    assert found.message in " ".join(printed(found, "table").split())
    assert not any(result.failed for result in found.results)
    assert verify(place, device="cpu", sizes=[ONE]).ok  # these alone were asked for


def test_fewer_blocks_than_the_plan_asks_for_run_where_it_says_that_they_take_strides(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    sizes = [{"M": 48, "N": 48, "K": 16}]
    assert verify(folder(matmul, MATMUL_C), device="cpu", sizes=sizes).ok
    (kernel,) = matmul.kernels
    claims = replace(matmul, kernels=(replace(kernel, grid_strides=("x",)),))
    found = verify(folder(claims, MATMUL_C), device="cpu", sizes=sizes)
    assert found.status == "wrong result"
    assert "in reverse order" in found.message


def cube(program: Program, extent: IntExpr) -> Program:
    """Return a program of one size, with an array of three such extents."""
    argument: Argument = replace(array("A", ("1",), 0), shape=(extent,) * 3)
    entry = replace(program.entries[0], arguments=(argument,))
    parameter = Parameter(name="M", kind="argument", default=None, tile=1024)
    return replace(program, parameters=(parameter,), entries=(entry,))


def test_sizes_are_bounded_by_memory(matmul: Program) -> None:
    chosen = choose_sizes(cube(matmul, Name("M")))
    largest = max(sizes["M"] for sizes in chosen)
    assert largest > 10
    assert largest**3 * 80 <= MEMORY_LIMIT_BYTES
    varied = varied_sizes(cube(matmul, Name("M")))
    assert all(sizes["M"] ** 3 * 80 <= AIMED_MEMORY_LIMIT_BYTES for sizes in varied)


def test_arrays_that_are_large_at_any_sizes_leave_sizes_to_choose(matmul: Program) -> None:
    assert MEMORY_LIMIT_BYTES < 80 * 180**3
    assert choose_sizes(cube(matmul, Constant(180)))
    assert choose_sizes(cube(matmul, Constant(1000))) == ()


def test_sizes_at_which_rows_have_a_negative_length_are_not_chosen(matmul: Program) -> None:
    at_most_5 = Apply(Operator.SUB, (Constant(5), Name("M")))
    assert any(sizes["M"] < 0 for sizes in choose_sizes(cube(matmul, Constant(3))))
    assert not any(sizes["M"] < 0 for sizes in choose_sizes(cube(matmul, Name("M"))))
    assert any(sizes["M"] < 0 for sizes in choose_sizes(cube(matmul, at_most_5)))


def test_refusals_are_tried_one_beyond_what_is_accepted(matmul: Program) -> None:
    most = Assumption(
        condition=Apply(Operator.LE, (Name("M"), Constant(2**29))), message="M is at most 2^29"
    )
    entry = replace(matmul.entries[0], assumptions=(most,), body=())
    program = replace(matmul, entries=(entry,))
    assert [(code, sizes["M"]) for _, code, sizes in refused_sizes(program)] == [(-1, 2**29 + 1)]
    edges = {(code, sizes["M"]) for _, code, sizes in edge_sizes(program)}
    assert edges == {(0, 2**29), (-1, 2**29 + 1)}


def test_a_subscript_beyond_an_array_of_registers_is_out_of_bounds(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    beyond = (
        "double sum = i",
        "double two[2] = {}; two[tx / 8 + ty / 15] = 1;\n    double sum = i",
    )
    found = verify(folder(matmul, MATMUL_C, beyond), device="cpu", sizes=[ONE])
    assert found.status == "out of bounds"
    assert "subscript 2 in line" in found.message


SLOW_C = MATMUL_C.replace("i < M; i++)", "i < M; i++) for (long r = 0; r < 1l << 3 * M; r++)")


def test_sizes_at_which_the_original_is_slow_are_left_out(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    original = SLOW_C.replace("C[i][j] +=", "if (r == 0) C[i][j] +=")
    found = verify(folder(matmul, original), device="cpu")
    assert found.status == "ok"
    left = [result for result in found.results if result.status == "left out"]
    assert {dict(result.sizes)["M"] for result in left} >= {16}
    assert all("takes longer than" in result.message for result in left)
    assert not any(result.failed for result in left)


def test_sizes_of_nothing_at_which_the_original_crashes_are_left_out(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    crash = "if (M == 0) *(volatile int *)0 = 1;\n    for (int i = 0; i < M"
    original = MATMUL_C.replace("for (int i = 0; i < M", crash)
    found = verify(folder(matmul, original), device="cpu")
    assert found.status == "ok"
    assert {dict(r.sizes)["M"] for r in found.results if r.status == "left out"} == {0}


def test_blocks_that_write_the_same_values_are_a_race(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    twice = ("(M + 15) / 16)", "2 * ((M + 15) / 16))")
    halved = ("16 * blockIdx.y + ty", "16 * (blockIdx.y / 2) + ty")
    kept = ("C[i * N + j] = sum;", "C[i * N + j] = j;")
    original = MATMUL_C.replace("+= A[i][k] * B[k][j]", "= j")
    place = folder(matmul, original, twice, halved, kept)
    found = verify(place, device="cpu", sizes=[ONE])
    assert found.status == "race"
    assert "writes what another thread writes without an order, element of C" in found.message


ATOMIC_C = """
#ifndef N
#define N 100
#endif
void f(double *s, double A[N]) { for (int i = 0; i < N; i++) s[0] += A[i]; }
"""
ATOMIC_CU = (
    HEAD
    + """
#ifndef N
#define N 100
#endif
extern "C" __global__ void matmul_k0(double *s, const double *A)
{
    const int i = 32 * blockIdx.x + threadIdx.x;
    if (i < N) eatss_atomic_add(s, A[i]);
}
extern "C" int matmul_cuda(double *s, double *A, cudaStream_t stream)
{
    if (N > 0) EATSS_LAUNCH(matmul_k0, dim3((N + 31) / 32), dim3(32), 0, stream, s, A);
    return (int)cudaGetLastError();
}
"""
)


@pytest.fixture
def total(matmul: Program) -> Program:
    """Return a program that adds up an array with atomics."""
    arguments = (
        array("s", (), 0, role="cell"),
        array("A", ("N",), 1, writes=False),
    )
    entry = replace(matmul.entries[0], arguments=arguments, function="f")
    return replace(
        matmul,
        text=ATOMIC_CU,
        entries=(entry,),
        parameters=(Parameter(name="N", kind="macro", default=100, tile=32),),
        kernels=(replace(matmul.kernels[0], reassociates=True),),
    )


def test_an_atomic_made_plain_is_a_race(total: Program, folder: Callable[..., Path]) -> None:
    sizes = [{"N": 70}]
    assert verify(folder(total, ATOMIC_C), device="cpu", sizes=sizes).status == "ok"
    plain = ("eatss_atomic_add(s, A[i]);", "*s += A[i];")
    found = verify(folder(total, ATOMIC_C, plain), device="cpu", sizes=sizes)
    assert found.status == "race"
    assert "element of s (byte 0)" in found.message


def test_a_read_beside_an_array_is_out_of_bounds(
    total: Program, folder: Callable[..., Path]
) -> None:
    beside = ("A[i]);", "A[i] + (*(volatile const double *)(A + i + 1) > 9 ? 1e-300 : 0));")
    found = verify(folder(total, ATOMIC_C, beside), device="cpu", sizes=[{"N": 70}])
    assert found.status == "out of bounds", found.message
    assert "reads beside A (byte 560)" in found.message


def test_bounds_are_wider_where_a_little_becomes_much(matmul: Program) -> None:
    (entry,) = matmul.entries
    sizes = {"M": 3, "N": 3, "K": 3}
    before = make_buffers(entry, sizes, "uniform", 0)

    def run(buffers: Sequence[Buffer], factor: float) -> None:
        named = {buffer.argument.name: buffer.array for buffer in buffers}
        named["C"][...] = factor * (named["A"] - before[1].array)

    found = {}
    for factor in (1.0, 1e9):
        expected = [buffer.copy() for buffer in before]
        run(expected, factor)
        own = partial(run, factor=factor)
        bounds = bounds_by_perturbing(before, expected, sizes, own, {})
        (found[factor],) = (bound for bound in bounds if bound is not None)
    assert np.all(found[1.0] < 1e-12)
    assert np.all(found[1e9] > 1e-8)
