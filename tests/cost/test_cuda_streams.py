"""What blocks that take shares are predicted to have is what the code gives them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.plan.shares import Stream, stream_of
from tests.examples import examples
from tests.streamed_blocks import Turn, grid_of, sizes_with, turns_of


def predicted(blocks: int, tiles: int, steps: int) -> Stream:
    """Return what is predicted of blocks that take shares, or do not if there are none."""
    return stream_of(*(np.array([float(one)]) for one in (blocks, tiles, steps)))


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from((2, 3, 7, 16)),
)
def test_shares_are_those_of_the_code(rows: int, columns: int, steps: int, blocks: int) -> None:
    sizes = sizes_with(rows, columns, steps)
    grid, tiles = grid_of(blocks, sizes), rows * columns
    if grid < blocks:  # fewer steps than blocks: nothing that is selected
        return
    of_block: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns_of(blocks, sizes):
        of_block[turn.block].append(turn)
    found = predicted(blocks, tiles, steps)
    most = max(sum(len(turn.steps) for turn in own) for own in of_block.values())
    assert found.tiles[0] == pytest.approx(most / steps)
    counts = [len(own) for own in of_block.values()]
    assert sum(counts) / blocks <= found.turns[0] + 1e-9
    assert max(counts) < found.turns[0] + 2
    whole = sum(turn.whole for own in of_block.values() for turn in own)
    assert found.streamed[0] == pytest.approx(1 - whole / tiles)
    parts = sum(turn.number > 1 for own in of_block.values() for turn in own)
    cut = len({turn.tile for own in of_block.values() for turn in own if turn.number > 1})
    assert (found.cuts[0] > 0) >= (parts > 0)
    assert abs(found.cuts[0] - (parts - cut)) <= max(1.0, blocks / 2)
    if steps == 1:
        assert found.cuts[0] == parts == 0


def test_blocks_with_tiles_of_their_own_have_no_shares() -> None:
    found = predicted(0, 100, 7)
    for column in (found.blocks, found.tiles, found.turns, found.cuts, found.streamed):
        assert column[0] == 0


def test_a_large_product_is_shared_but_for_its_waves_of_whole_tiles() -> None:
    """Of 300 tiles of 10 steps 132 blocks take one each; of the others each has 13 steps."""
    found = predicted(132, 300, 10)
    assert found.tiles[0] == pytest.approx(1 + 13 / 10)
    assert found.streamed[0] == pytest.approx(168 / 300)
    assert found.turns[0] == pytest.approx(1 + 13 / 10 + 1)
    assert found.cuts[0] == pytest.approx(1680 / 13 - 1)
