"""A generated text that is broken in a way that matters does not pass verification."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eatss.analysis.layout import SplitK
from eatss.base.shipped import data_directory
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.session.analysis import SymbolicProgram
from tests.lower.spreading import made, spread_as

STAGED = CodegenOptions(
    tile_sizes=(("", (("i", 16), ("j", 16), ("k", 8))),),
    block=(("", (8, 8)),),
    placements=(("In", "shared"), ("Ker", "shared")),
)
SIZES = [{"NI": 37, "NJ": 35, "NK": 21}]

BROKEN = {
    "no barrier between copies and reads": (
        "            __syncthreads();\n            if (",
        "            if (",
        ("shared memory",),
    ),
    "a barrier that some threads do not reach": (
        "            __syncthreads();\n            if (",
        "            if (tj > 0) __syncthreads();\n            if (",
        (
            "barrier",
            "shared memory",
        ),
    ),
    "too few blocks": (
        "eatss_floordiv(NJ + 15, 16)",
        "eatss_floordiv(NJ, 16)",
        ("wrong result",),
    ),
    "no guard of the stores": (
        "if (j < NJ) {\n                        Out[i * NJ + j] =",
        "if (true) {\n                        Out[i * NJ + j] =",
        (
            "wrong result",
            "out of bounds",
        ),
    ),
}
"""What is broken: the text, what replaces it, and what verification may call it."""

BROKEN_SUMS = {
    "a shuffle over half the distance": (32, "tmp_r, 16, 32)", "tmp_r, 8, 32)"),
    "no sum over the blocks": (1, "eatss_atomic_add(&y[j], y_r);", "y[j] = y_r;"),
    "no barrier between warps": (64, "__syncthreads();\n", ""),
}
"""Lanes, the text that is broken, and what replaces it."""


@pytest.fixture(scope="module")
def product(generate: Callable[..., Program]) -> Program:
    """Return a product of matrices with partial tiles, both inputs in shared memory."""
    return generate("matmul", options=STAGED, gpu="rtx4090")


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_product_is_reported(
    product: Program, broken: Callable[..., str], what: str
) -> None:
    old, new, statuses = BROKEN[what]
    assert broken(product, old, new, SIZES) in statuses


@pytest.mark.parametrize("what", BROKEN_SUMS)
def test_a_broken_spread_sum_is_reported(
    facts_of: Callable[[str], SymbolicProgram], broken: Callable[..., str], what: str
) -> None:
    lanes, old, new = BROKEN_SUMS[what]
    symbolic = facts_of("atax")
    spread = SplitK(lanes=lanes, tile=max(lanes, 32), chunks=2)
    selection = spread_as(symbolic, spread, threads=4)
    program = made(symbolic, selection, data_directory("kernels") / "atax.c")
    found = broken(program, old, new, [{"NX": 37, "NY": 70}])
    assert found == ("shared memory" if "barrier" in what else "wrong result")


def test_host_steps_in_another_order_are_reported(
    generate: Callable[..., Program], broken: Callable[..., str]
) -> None:
    program = generate("jacobi-1d")
    first, second = (f"EATSS_LAUNCH({kernel.name}," for kernel in program.kernels[:2])
    found = broken(program, first, second, [{"TSTEPS": 3, "N": 37}])
    assert found == "wrong result"
