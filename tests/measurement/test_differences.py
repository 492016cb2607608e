"""Results compared: what rounding explains, what it does not, and what is said then."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from eatss.measurement import arguments
from eatss.measurement import correctness as differences
from eatss.measurement.correctness import accumulation_length, difference, rounding_growth
from eatss.program import (
    Apply,
    Constant,
    Name,
    OperationCount,
    Operator,
    Program,
    Work,
    load_program,
)
from eatss.program.plan import RoundedSums

PROGRAMS = Path(__file__).parent / "programs"


def data() -> np.ndarray:
    return np.random.default_rng(0).random((30, 40))


def product(k: int, dtype: type, order: str, m: int = 24) -> np.ndarray:
    """Return C = A B with sums of ``k`` terms, added in the order of some variant."""
    rng = np.random.default_rng(k)
    a, b = rng.random((m, k), dtype=dtype), rng.random((k, m), dtype=dtype)
    fused = order == "fused"
    parts = 8 if order == "split" else 1
    sums = []
    for steps in np.array_split(np.arange(k)[:: -1 if order == "backward" else 1], parts):
        total: np.ndarray = np.zeros((m, m), dtype)
        for step in steps:
            if fused:  # a float product is exact in double, so this rounds once, as FMA does
                exact = np.outer(a[:, step].astype(float), b[step].astype(float))
                total = (total.astype(float) + exact).astype(dtype)
            else:
                total = total + np.outer(a[:, step], b[step])
        sums.append(total)
    while len(sums) > 1:
        sums = [left + right for left, right in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]


def gemm_growth(k: int, dtype: type, m: int = 24) -> float:
    sizes = {"NI": m, "NJ": m, "NK": k}
    return rounding_growth(load_program(PROGRAMS / "gemm"), sizes, (m, m), np.dtype(dtype))


@pytest.mark.parametrize("k", [40, 500, 4000])
@pytest.mark.parametrize("order", ["backward", "split", "fused"])
def test_right_variants_that_add_otherwise_are_equal(k: int, order: str) -> None:
    forward, other = product(k, np.float32, "forward"), product(k, np.float32, order)
    assert not np.array_equal(forward, other)
    found = difference(np, "C", forward, other, gemm_growth(k, np.float32))
    assert found.equal
    assert found.worst < 0.2


@pytest.mark.parametrize("k", [40, 500, 4000])
def test_a_lost_slice_of_a_float_sum_shows(k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((24, k), dtype=np.float32), rng.random((k, 24), dtype=np.float32)
    whole = (a.astype(float) @ b.astype(float)).astype(np.float32)
    lost = max(1, k // 200)  # 20 of 4000
    short = (a[:, lost:].astype(float) @ b[lost:].astype(float)).astype(np.float32)
    found = difference(np, "C", short, whole, gemm_growth(k, np.float32))
    assert not found.equal
    assert found.worst > 10


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_at_one_side_only_differs(value: float) -> None:
    mine = data()
    mine[2, 3] = value
    found = difference(np, "C", mine, data(), 1e9)
    assert not found.equal
    assert found.worst == inf
    assert found.message.startswith(f"C[2][3] is {value}")


def test_places_are_right_however_much_is_looked_at_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "CHUNK", 64)
    monkeypatch.setattr(differences, "CHUNK", 64)
    mine = data()
    mine[20, 30] += 1
    mine[3, 3] += 0.5
    assert difference(np, "C", mine, data(), 10).message.startswith("C[20][30]")
    mine[29, 39] = np.nan
    assert difference(np, "C", mine, data(), 10).message.startswith("C[29][39]")


def counted(operations: tuple[OperationCount, ...] | None) -> Program:
    """Return a program on N x N elements with these operations."""
    program = load_program(PROGRAMS / "lu")
    work = Work(operations=operations, read_bytes=None, written_bytes=None, notes=())
    return replace(program, entries=(replace(program.entries[0], work=work),))


N = Name("N")
SUMS = OperationCount(kind="add", count=Apply(Operator.MUL, (N, N, N, N)))


def test_the_length_of_sums_is_additions_over_elements_or_the_largest_size_if_that_is_more() -> (
    None
):
    gemm = load_program(PROGRAMS / "gemm")
    sizes = {"NI": 4000, "NJ": 4000, "NK": 4000}
    assert accumulation_length(gemm, sizes, (4000, 4000)) == 4000
    several = counted((SUMS,))
    assert accumulation_length(several, {"N": 500}, (500, 500)) == 500**2
    assert accumulation_length(several, {"N": 500}, ()) == 500**4
    assert accumulation_length(counted(()), {"N": 300}, (300, 300)) == 300
    assert accumulation_length(counted(None), {"N": 300}, (300, 300)) == 300
    assert accumulation_length(counted(None), {"N": 0}, ()) == 2


def test_rounding_grows_like_the_root_of_the_length_where_it_is_random() -> None:
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    several = counted((SUMS,))
    assert rounding_growth(several, {"N": 100}, (100, 100), single) == 100
    assert rounding_growth(several, {"N": 2000}, (2000, 2000), double) == 2000
    assert rounding_growth(several, {"N": 2000}, (2000, 2000), single) == 2000**2
    # sums in halves stay in their order
    assert rounding_growth(several, {"N": 2000}, (2000, 2000), np.dtype(np.float16)) == 2000
    division = OperationCount(kind="divide", count=Constant(1))
    assert rounding_growth(counted((SUMS, division)), {"N": 9}, (9, 9), double) == 81
    assert rounding_growth(counted(None), {"N": 9}, (9, 9), double) == 9


def test_products_and_sums_that_an_instruction_rounds_more_may_differ_by_as_much() -> None:
    gemm = load_program(PROGRAMS / "gemm")
    rounded = RoundedSums(
        instruction="mma_tf32_16x8x8",
        statements=("S1",),
        element_type="float",
        product_error=2.0**-10,
        sum_roundings=6.0,
        least=0.0,
    )
    first, *others = gemm.kernels
    more = replace(gemm, kernels=(replace(first, rounded_sums=(rounded,)), *others))
    sizes = {"NI": 24, "NJ": 24, "NK": 500}
    for dtype, unit in ((np.float32, 2.0**-24), (np.float64, 0.0)):
        grown = [rounding_growth(one, sizes, (24, 24), np.dtype(dtype)) for one in (gemm, more)]
        allowed = 8 * (grown[1] - grown[0]) * float(np.finfo(dtype).eps)
        length = accumulation_length(gemm, sizes, (24, 24))
        assert allowed == pytest.approx((3 * 2.0**-10 + 6 * length * unit) if unit else 0.0)
