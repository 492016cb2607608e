"""Several elements are copied at a time where rows begin at multiples of them, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.lower.cooperative_copy import wide_copy_loop
from eatss.program import Constant, Program, evaluate
from eatss.recipe.options import CodegenOptions
from eatss.resources import data_directory
from eatss.schedule.names import NameTable
from eatss.verify import Verification

Generate = Callable[..., Program]
Check = Callable[..., Verification]

OPTIONS = CodegenOptions(
    tile_sizes=(("", (("i", 32), ("j", 32), ("k", 16))),),
    block=(("", (16, 8)),),
    instructions=("mma_f64_16x8x16",),
    stages=2,
)
EVEN = [{"NI": 64, "NJ": 64, "NK": 48}, {"NI": 70, "NJ": 38, "NK": 36}]
ODD = [{"NI": 64, "NJ": 65, "NK": 33}, {"NI": 37, "NJ": 66, "NK": 49}]


@given(
    st.sampled_from([1, 2, 4, 8, 16, 32, 3, 5]),
    st.sampled_from([2, 4, 8, 16, 64, 6, 7]),
    st.sampled_from([32, 64, 96, 256]),
)
def test_every_element_is_copied_once(rows: int, columns: int, threads: int) -> None:
    walk = wide_copy_loop((rows, columns), threads, "thread", NameTable(), 2)
    if walk is None:
        whole = threads % max(1, columns // 2) == 0 and rows * columns % (2 * threads) == 0
        assert rows == 1 or columns % 2 or not whole
        return
    assert isinstance(walk.lower, Constant)
    found = []
    for thread, turn in product(range(threads), range(0, walk.count, walk.step)):
        known = {"thread": thread, walk.counter: turn}
        row, column = (evaluate(place, known) for place in walk.places)
        assert column % 2 == 0
        found += [(row, column), (row, column + 1)]
    assert sorted(found) == list(product(range(rows), range(columns)))


def test_even_and_odd_rows_are_right(generate: Generate, verify_kernel: Check) -> None:
    program = generate("gemm", options=OPTIONS)
    assert "const bool wide_A = eatss_is_aligned(A) && NK % 2 == 0;" in program.text
    assert verify_kernel(program, EVEN + ODD).ok


def test_a_copy_that_begins_elsewhere_is_seen(generate: Generate, broken: Check) -> None:
    program = generate("gemm", options=OPTIONS)
    found = broken(program, "eatss_is_aligned(A) && NK % 2 == 0", "true", ODD)
    assert not found.ok


@pytest.mark.parametrize(("columns", "wide"), [(4000, True), (4001, False)])
def test_rows_of_known_length_decide_by_themselves(columns: int, wide: bool) -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        defines={"NI": 4000, "NJ": columns, "NK": 4000},
        tiles={"i": 64, "j": 64, "k": 16},
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x16"],
    )
    kernel = program.text.partition("__global__")[2]
    assert "wide_A" in kernel
    assert ("wide_B" in kernel) == wide or "NJ % 2" in kernel


def test_rows_of_boxes_are_whole_multiples(generate: Generate) -> None:
    text = generate("gemm", options=OPTIONS).text
    rows = re.findall(r"EATSS_TRACKED\(double\) [AB](?:\[\d+\])*\[(\d+)\];", text)
    assert len(rows) == 2
    assert all(int(row) % 2 == 0 for row in rows)
