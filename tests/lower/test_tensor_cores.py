"""Products by tensor cores, and copies that run ahead: right at every size, and faults are seen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.base.targets import CUDA
from eatss.lower.mapping import MappedLoop, Mapping, in_warps
from eatss.lower.pieces import NameTable
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

Generate = Callable[..., Program]
Check = Callable[..., Verification]

SMALL = CodegenOptions(
    tile_sizes=(("", (("i", 32), ("j", 32), ("k", 16))),),
    block=(("", (16, 8)),),
    instructions=("mma_f64_16x8x16",),
    stages=3,
)
SIZES = [
    {"NI": 37, "NJ": 35, "NK": 21},
    {"NI": 64, "NJ": 32, "NK": 48},
    {"NI": 33, "NJ": 70, "NK": 82},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 40, "NJ": 40, "NK": 0},
]


def test_a_product_is_right_at_sizes_that_fit_and_at_others(
    generate: Generate, verify_kernel: Check
) -> None:
    program = generate("gemm", options=SMALL)
    assert verify_kernel(program, SIZES).ok
    (kernel,) = program.kernels
    assert "mma_f64_16x8x16: computes S1" in kernel.notes
    assert "C_r[ri][rj] +=" not in program.text


BROKEN = {
    "a wait that ends too early": ("wait_for_copies<1>", "wait_for_copies<2>", "shared memory"),
    "copies into boxes that are in use": ("? 2 : stage - 1", "? 2 : stage", "shared memory"),
    "the stage of the turn before": ("sh.B[stage]", "sh.B[(stage + 2) % 3]", "shared memory"),
    "what is beside the array is not zero": (
        "x1 < NK && x0 < NI);",
        "true);",
        "out of bounds",
    ),
    "columns of the wrong lane": ("lane_i / 2", "lane_i / 4", "wrong result"),
    "half of the rows": ("16 * k_step + 4]", "16 * k_step]", "wrong result"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_is_seen(name: str, generate: Generate, broken: Check) -> None:
    program = generate("gemm", options=SMALL)
    before, after, *kinds = BROKEN[name]
    assert broken(program, before, after, SIZES).status in kinds


TRIANGLE = """
#define N 4000
void f(double C[N][N], double A[N][N], double B[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k <= i; k++)
                C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""


def test_partial_tiles_of_a_triangle_keep_their_guards() -> None:
    """Zeros of ``A`` alone would not do: ``B`` may be infinite there."""
    program = eatss.codegen(
        TRIANGLE,
        gpu="h200",
        tiles={"i": 32, "j": 32, "k": 16},
        block=(16, 8),
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_f64_16x8x16"],
    )
    assert "eatss_mma_16x8x16(sum_C_r" in program.text
    assert "sum_C_r[ri][rj] +=" in program.text


def test_factors_that_wait_for_the_sum_are_right_where_there_is_none(
    generate: Generate, verify_kernel: Check
) -> None:
    program = generate("gemm", options=SMALL)
    assert "sum_C_r" in program.text
    sizes = [{"NI": 40, "NJ": 33, "NK": 0}, {"NI": 70, "NJ": 66, "NK": 50}]
    assert verify_kernel(program, sizes).ok


def test_copies_run_ahead_only_where_a_card_can() -> None:
    source = data_directory("kernels") / "gemm.c"
    old, new = (eatss.codegen(source, gpu=gpu, stages=3) for gpu in ("v100", "h200"))
    assert "eatss_copy_ahead(" not in old.text
    assert "eatss_copy_ahead(" in new.text


def mapped(name: str, threads: int, order: int) -> MappedLoop:
    return MappedLoop(
        name=name,
        source_name=name,
        tile=4 * threads,
        threads=threads,
        axis="y" if order == 0 else "x",
        grid="y" if order == 0 else "x",
        order=order,
        origin=f"{name}0",
        thread=f"t{name}",
        point=f"r{name}",
    )


@pytest.mark.parametrize(("rows", "columns"), [(8, 4), (16, 4), (8, 16), (32, 8), (24, 12)])
def test_threads_in_boxes_of_lanes_are_all_threads(rows: int, columns: int) -> None:
    mapping = Mapping(mapped=(mapped("i", rows, 0), mapped("j", columns, 1)), serial=())
    boxes = in_warps(mapping, (8, 4), NameTable()).warps
    assert [(one.lanes, one.warps) for one in boxes] == [(8, rows // 8), (4, columns // 4)]
    places = [
        (i_lane + 8 * i_warp, j_lane + 4 * j_warp)
        for i_warp, j_warp in product(range(boxes[0].warps), range(boxes[1].warps))
        for i_lane, j_lane in product(range(8), range(4))
    ]
    assert sorted(places) == list(product(range(rows), range(columns)))
    for first, then in pairwise(range(0, len(places), CUDA.lanes)):
        assert len(set(places[first:then])) == CUDA.lanes


@pytest.mark.parametrize(("rows", "columns"), [(12, 4), (8, 6), (8, 1)])
def test_threads_that_do_not_fill_boxes_stay_as_they_are(rows: int, columns: int) -> None:
    mapping = Mapping(mapped=(mapped("i", rows, 0), mapped("j", columns, 1)), serial=())
    assert in_warps(mapping, (8, 4), NameTable()) == mapping
