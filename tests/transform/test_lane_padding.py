"""Rows are padded so that lanes that load fragments meet as few banks twice as can be."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import eatss
from eatss.resources import data_directory

BANKS = 16
"""Of doubles: half a warp asks for them at once."""


def extents(text: str, array: str) -> tuple[int, ...]:
    (found,) = re.findall(rf"EATSS_TRACKED\(double\) {array}((?:\[\d+\])+);", text)
    return tuple(map(int, re.findall(r"\d+", found)))


def waves(places: list[int]) -> int:
    """Return how often the banks are asked, for the words that half a warp reads."""
    return max(Counter(place % BANKS for place in set(places)).values())


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize(("i", "j", "block"), [(64, 64, (16, 8)), (128, 64, (32, 8))])
def test_fragments_of_a_product_are_read_without_conflicts(
    i: int, j: int, k: int, block: tuple[int, int]
) -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        tiles={"i": i, "j": j, "k": k},
        block=block,
        instructions=["mma_f64_16x8x16"],
    )
    *_, row_a = extents(program.text, "A")
    *_, row_b = extents(program.text, "B")
    warps_j = block[1] // 4
    lanes = [(row, quad) for row in range(8) for quad in range(4)]
    for half in (lanes[:16], lanes[16:]):
        assert waves([row * row_a + quad for row, quad in half]) == 1
        columns = [row // 2 + 4 * warps_j * (row % 2) for row, _ in half]
        read = [quad * row_b + column for (_, quad), column in zip(half, columns, strict=True)]
        assert waves(read) == 1
