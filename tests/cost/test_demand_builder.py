"""Stores of a warp: which sectors they fill and which they tear."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.base.targets import CUDA
from eatss.cards import load_profile
from eatss.cost.access import SECTOR_BYTES, sectors, torn_sectors
from eatss.cost.card import card_of
from eatss.cost.constants import CodeConstants
from eatss.cost.demand_builder import DemandBuilder
from eatss.plan.launch import lanes_of

ONES = np.ones(1)

WARP = CUDA.lanes


def torn_by_counting(
    threads: tuple[int, ...], steps: tuple[int, ...], element_bytes: int, offset: int = 0
) -> int:
    """Return the sectors of which a warp writes some bytes and not all."""
    written: dict[int, set[int]] = {}
    for lane in range(WARP):
        left, place = lane, offset
        for count, step in zip(threads, steps, strict=True):
            place += left % count * step
            left //= count
        if left:
            continue  # a block of fewer threads than a warp has lanes
        for byte in range(place, place + element_bytes):
            written.setdefault(byte // SECTOR_BYTES, set()).add(byte)
    return sum(len(bytes_) < SECTOR_BYTES for bytes_ in written.values())


def torn(
    threads: tuple[int, ...], steps: tuple[int, ...], element_bytes: int, offset: int = 0
) -> float:
    lanes = lanes_of([ONES * count for count in threads])
    return float(np.ravel(torn_sectors(lanes, [*map(float, steps)], element_bytes, offset))[0])


@given(st.integers(1, 512), st.sampled_from([4, 8]))
def test_lanes_of_one_axis(stride: int, element_bytes: int) -> None:
    steps = (stride * element_bytes,)
    assert torn((WARP,), steps, element_bytes) == torn_by_counting((WARP,), steps, element_bytes)


@given(
    st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 12, 16]), st.integers(1, 8), st.sampled_from([4, 8])
)
def test_rows_of_lanes_that_lie_apart(along: int, rows: int, element_bytes: int) -> None:
    rows = min(rows, WARP // along)
    steps = (element_bytes, 4096)
    found = torn((along, rows), steps, element_bytes)
    assert found == torn_by_counting((along, rows), steps, element_bytes)


@given(st.integers(2, 16), st.sampled_from([4, 8]))
def test_lanes_along_columns_tear_every_sector_but_whole_ones(
    along: int, element_bytes: int
) -> None:
    # as in a transposed write: neighbours along x lie a row apart, those along y side by side
    rows = WARP // along
    steps = (4096, element_bytes)
    found = torn((along, rows), steps, element_bytes)
    counted = torn_by_counting((along, rows), steps, element_bytes)
    assert found == counted


@pytest.mark.parametrize("offset", [4, 8, 16, 28])
def test_a_row_that_begins_inside_a_sector_tears_its_ends(offset: int) -> None:
    assert torn((WARP,), (4,), 4, offset) == 2 == torn_by_counting((WARP,), (4,), 4, offset)


def test_stores_count_once_as_bytes_of_l2_and_once_as_torn_ones() -> None:
    plan = SimpleNamespace(active=ONES * 3, block_threads=ONES * WARP)
    demand = DemandBuilder(plan, card_of(load_profile("h200")), CodeConstants())
    each = sectors(lanes_of([ONES * WARP]), [64.0], 8)
    demand.add_stores(ONES * 5, ONES, each, torn_sectors(lanes_of([ONES * WARP]), [64.0], 8))
    assert demand.l2_bytes[0] == demand.torn_bytes[0] == 3 * 5 * WARP * SECTOR_BYTES
