"""Stores of a warp: which sectors they fill and which they tear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.prediction.access import SECTOR_BYTES, WARP, lanes_of, sectors
from eatss.prediction.tally import Tally


def torn_by_counting(stride_bytes: int, element_bytes: int) -> int:
    """Return the sectors of which a warp writes some bytes and not all."""
    written: dict[int, int] = {}
    for lane in range(WARP):
        for byte in range(element_bytes):
            sector = (lane * stride_bytes + byte) // SECTOR_BYTES
            written[sector] = written.get(sector, 0) + 1
    return sum(count < SECTOR_BYTES for count in written.values())


@given(st.integers(1, 512), st.sampled_from([4, 8]), st.integers(1, 100))
def test_torn_sectors_are_those_that_a_warp_writes_in_part(
    stride: int, element_bytes: int, requests: int
) -> None:
    ones = np.ones(1)
    tally = Tally(ones)
    each = sectors(lanes_of([ones * WARP]), [stride * element_bytes], element_bytes)
    tally.add_stores(ones * requests, ones, each, ones * WARP * element_bytes)
    torn = requests * torn_by_counting(stride * element_bytes, element_bytes)
    assert tally.torn_bytes[0] == pytest.approx(torn * SECTOR_BYTES)
    assert tally.torn_bytes[0] <= tally.l2_bytes[0]
    assert tally.l2_bytes[0] == pytest.approx(requests * each[0] * SECTOR_BYTES)


def test_a_row_that_begins_inside_a_sector_tears_its_ends() -> None:
    ones = np.ones(1)
    tally = Tally(ones)
    each = sectors(lanes_of([ones * WARP]), [8], 8, offset=8)
    tally.add_stores(ones, ones, each, ones * WARP * 8)
    assert tally.torn_bytes[0] == 2 * SECTOR_BYTES
