"""Rows are padded so that lanes that load fragments meet as few banks twice as can be."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import eatss
from eatss.base.shipped import data_directory

BANKS = 16
"""Of doubles: half a warp asks for them at once."""


def extents(text: str, array: str, kind: str = "double") -> tuple[int, ...]:
    (found,) = re.findall(rf"EATSS_TRACKED\({kind}\) {array}((?:\[\d+\])+);", text)
    return tuple(map(int, re.findall(r"\d+", found)))


def waves(places: list[int]) -> int:
    """Return how often the banks are asked, for the words that half a warp reads."""
    return max(Counter(place % BANKS for place in set(places)).values())


@pytest.mark.samples(1)
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
    lanes = [(row, quad) for row in range(8) for quad in range(4)]
    for half in (lanes[:16], lanes[16:]):
        assert waves([row * row_a + quad for row, quad in half]) == 1
    # columns of two matrices beside each other: sixteen bytes a lane, eight lanes at once
    for first in range(0, 32, 8):
        read = [quad * row_b + 2 * row for row, quad in lanes[first : first + 8]]
        assert all(place % 2 == 0 for place in read)
        assert waves([place + one for place in read for one in range(2)]) == 1


@pytest.mark.samples(1)
@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize(("i", "j", "block"), [(128, 128, (16, 8)), (128, 256, (16, 16))])
def test_fragments_of_floats_are_read_without_conflicts(
    i: int, j: int, k: int, block: tuple[int, int]
) -> None:
    program = eatss.codegen(
        data_directory("kernels") / "gemm.c",
        gpu="h200",
        defines={"DATA_TYPE": "float"},
        tiles={"i": i, "j": j, "k": k},
        block=block,
        placements={"A": "shared", "B": "shared"},
        instructions=["mma_tf32_16x8x8"],
    )
    *_, row_a = extents(program.text, "A", "float")
    *_, row_b = extents(program.text, "B", "float")
    assert row_a % 4 == row_b % 4 == 0  # copies of 16 bytes
    lanes = [(row, quad) for row in range(8) for quad in range(4)]
    # two steps beside each other: eight bytes a lane, sixteen lanes at once
    for first in range(0, 32, 16):
        read = [row * row_a + 2 * quad for row, quad in lanes[first : first + 16]]
        assert len({(place + one) % 32 for place in read for one in range(2)}) == 32
    # columns of four matrices beside each other: sixteen bytes a lane, eight lanes at once
    for first in range(0, 32, 8):
        read = [2 * quad * row_b + 4 * row for row, quad in lanes[first : first + 8]]
        assert len({(place + one) % 32 for place in read for one in range(4)}) == 32
