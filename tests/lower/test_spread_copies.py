"""Copies of tiles stand among the products of a turn, in shares, and programs stay right."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

Generate = Callable[..., Program]
Check = Callable[..., Verification]

SIZES = [
    {"NI": 320, "NJ": 64, "NK": 192},
    {"NI": 170, "NJ": 70, "NK": 138},
    {"NI": 97, "NJ": 65, "NK": 131},
    {"NI": 160, "NJ": 32, "NK": 32},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 50, "NJ": 34, "NK": 0},
]


def options(rows: int, depth: int, stages: int) -> CodegenOptions:
    return CodegenOptions(
        tile_sizes=(("", (("i", rows), ("j", 32), ("k", depth))),),
        block=(("", (16, 8)),),
        instructions=("mma_f64_16x8x4",),
        stages=stages,
    )


ONE, TWO, THREE, FIVE = (
    "e = k_step",
    "e = 2 * k_step; e < 2 * k_step + 2",
    "e = 3 * k_step; e < 3 * k_step + 3",
    "e = 5 * k_step; e < 5 * k_step + 5",
)
SPREAD = {  # rows, depth, stages: how many steps copy, of how many, and what of A and of B
    (32, 32, 2): (4, 8, ONE, ONE),
    (96, 16, 2): (2, 4, THREE, ONE),
    (96, 32, 2): (4, 8, THREE, ONE),
    (160, 16, 2): (2, 4, FIVE, ONE),
    (96, 16, 3): (3, 4, TWO, f"{ONE}; if e < 2"),
    (96, 16, 4): (3, 4, TWO, f"{ONE}; if e < 2"),
}


def plain_branch(program: Program) -> str:
    """Return what a turn does where no copy needs tests."""
    kernel = program.text.partition("__global__")[2]
    return kernel.partition("for (int k0 =")[2].partition("if (plain")[2].partition("} else {")[0]


def copying(step: str) -> list[str]:
    """Return by which numbers a step copies, a text for each box."""
    found = re.findall(
        r"(?:for \(int|const int) (e = .*?);(?: \+\+e\) \{)?\n(?:\s*if \((e < \d+)\) \{)?", step
    )
    return [f"{numbers}; if {test}" if test else numbers for numbers, test in found]


@pytest.mark.parametrize("chosen", [(96, 32, 2)])
def test_the_first_steps_of_a_turn_copy_and_the_last_one_waits(
    chosen: tuple[int, int, int], generate: Generate
) -> None:
    turn = plain_branch(generate("gemm", options=options(*chosen)))
    steps, all_, *boxes = SPREAD[chosen]
    spread, _, behind = turn.partition("eatss_commit_copies();")
    assert copying(spread) == boxes
    assert f"for (int k_step = 0; k_step < {steps}; ++k_step) {{" in spread
    places = [spread.index(one) for one in ("fragment_b", "eatss_copy_wide_ahead", "eatss_mma")]
    assert places == sorted(places)
    assert turn.count("eatss_copy_wide_ahead") == len(boxes)
    assert turn.count("eatss_commit_copies") == turn.count("eatss_wait_for_copies") == 1
    last = behind.partition(f"const int k_step = {all_ - 1};")[2]
    assert f"eatss_wait_for_copies<{chosen[2] - 2}>" in last


@pytest.mark.parametrize("chosen", [(96, 32, 2), (32, 32, 3)])
def test_products_are_right_at_sizes_that_fit_and_at_others(
    chosen: tuple[int, int, int], generate: Generate, verify_kernel: Check
) -> None:
    found = verify_kernel(generate("gemm", options=options(*chosen)), SIZES)
    assert (found.status, found.message) == ("ok", "")
