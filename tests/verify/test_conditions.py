"""Which places of a kernel some sizes come to, read off its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.program import Program
from eatss.verify import verify
from eatss.verify.conditions import Conditions
from eatss.verify.instrumentation import instrumented_text
from tests.verify.conftest import HEAD, MATMUL_C

TEXT = (
    HEAD
    + """
extern "C" __global__ void matmul_k0(double *C, const double *A)
{
    const bool wide_A = eatss_is_aligned(A) && K % 2 == 0;
    const int i0 = 16 * (int)blockIdx.x;
    const int i = i0 + (int)threadIdx.x;
    const int plain = wide_A && i0 % 2 == 0;
    for (int k0 = 0, stage = 0; k0 < K; k0 += 16, stage = stage == 1 ? 0 : stage + 1) {
        if (plain && k0 + 16 < K && k0 + 16 + 16 <= K) {
            C[stage == 0 ? 1 : 0] = 1;
        } else {
            if (k0 + 16 + 16 <= K) C[2] = 1;
            if (wide_A && k0 + 16 + 16 <= K) C[3] = 1;
        }
        if (i < M) C[4] = 1;
        if (i0 + 16 <= M && C[k0] < A[k0]) C[5] = 1;
    }
}
"""
)
PLACES = {
    "plain && k0 + 16 < K && k0 + 16 + 16 <= K": True,
    "stage == 0": False,
    "k0 + 16 + 16 <= K": True,
    "wide_A && k0 + 16 + 16 <= K": True,
    "i < M": True,
    "i0 + 16 <= M && C[k0] < A[k0]": True,
}


@pytest.mark.parametrize(
    ("sizes", "shifted", "reached"),
    [
        ({"M": 1, "N": 1, "K": 31}, (), "never never never never surely never"),
        ({"M": 1, "N": 1, "K": 32}, (), "surely never never never surely never"),
        ({"M": 1, "N": 1, "K": 48}, (), "surely surely never never surely never"),
        ({"M": 1, "N": 1, "K": 33}, (), "never never surely never surely never"),
        ({"M": 16, "N": 1, "K": 32}, ("A",), "never never surely never surely perhaps"),
        ({"M": 0, "N": 1, "K": 16}, (), "never never never never never never"),
    ],
)
def test_sizes_and_starts_of_arrays_tell_which_places_run(
    sizes: Mapping[str, int], shifted: tuple[str, ...], reached: str, matmul: Program
) -> None:
    program = replace(matmul, text=TEXT)
    branches = instrumented_text(program)[1]
    conditions = Conditions(program, branches)
    known = {one.condition: k for k, one in enumerate(branches) if one.kind != "part"}
    found = [
        conditions.reached(known[condition], way, sizes, frozenset(shifted))
        for condition, way in PLACES.items()
    ]
    assert " ".join(found) == reached
    assert conditions.asks_where_arrays_start(known["stage == 0"])
    assert not conditions.asks_where_arrays_start(known["i < M"])


def test_each_of_several_conditions_counts_where_it_alone_does_not_hold(matmul: Program) -> None:
    text, branches = instrumented_text(replace(matmul, text=TEXT))
    parts = [one for one in branches if one.kind == "part"]
    assert [one.condition for one in parts] == ["plain", "k0 + 16 < K", "k0 + 16 + 16 <= K"]
    assert all(one.ways == (False,) for one in parts)
    first = branches.index(parts[0])
    assert parts[0].inside[-2:] == ((first + 1, True), (first + 2, True))
    assert f"eatss::all_hold({first}, plain, k0 + 16 < K, k0 + 16 + 16 <= K)" in text


def test_an_element_beside_its_row_is_out_of_bounds(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    sizes = [{"M": 20, "N": 37, "K": 33}]
    beyond = ("k + ty < K && j < N)", "k + ty < K && (j < N || k + ty + 1 < K))")
    found = verify(folder(matmul, MATMUL_C, beyond), device="cpu", sizes=sizes)
    assert found.status == "out of bounds", found.message
    assert "reads beside a row of B" in found.message
