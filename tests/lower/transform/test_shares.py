"""Blocks that take shares have each step of each tile once, and agree on who has which."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import Let
from eatss.program import Constant, evaluate
from tests.examples import examples
from tests.streamed_blocks import (
    COLUMNS,
    ROWS,
    STEP,
    Turn,
    grid_of,
    sizes_with,
    streamed_product,
    turns_of,
)

COUNTS = (2, 3, 7, 16)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 20), st.integers(1, 4), st.integers(0, 9), st.sampled_from(COUNTS))
@example(1, 1, 1, 16)  # one step
@example(1, 1, 0, 16)  # none
@example(1, 1, 9, 7)  # many blocks of a tile, the last of which has nothing
@example(7, 1, 5, 7)  # as many tiles as blocks
@example(7, 2, 5, 7)  # twice as many: a wave of whole ones
@example(9, 3, 1, 7)  # steps that nothing cuts
def test_every_step_of_every_tile_is_done_once(
    rows: int, columns: int, steps: int, blocks: int
) -> None:
    sizes = sizes_with(rows, columns, steps)
    tiles, grid, every = rows * columns, grid_of(blocks, sizes), max(1, steps)
    assert grid == min(blocks, tiles * every)
    turns = list(turns_of(blocks, sizes))
    done = [(turn.tile, step) for turn in turns for step in turn.steps]
    assert sorted(done) == [(tile, step) for tile in range(tiles) for step in range(steps)]
    places = {turn.tile: turn.place for turn in turns}
    assert sorted(places) == list(range(tiles))
    assert all(turn.place == places[turn.tile] for turn in turns)
    assert sorted(places.values()) == [
        (i, j) for i in range(0, sizes["NI"], ROWS) for j in range(0, sizes["NJ"], COLUMNS)
    ]
    check_waves(turns, tiles, grid, steps)
    check_parts(turns, grid, blocks)


def check_waves(turns: list[Turn], tiles: int, grid: int, steps: int) -> None:
    """Whole tiles come first, as many for each block, then shares that differ little."""
    of_block: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        of_block[turn.block].append(turn)
    waves = max(0, tiles // grid - 1)
    for own in of_block.values():
        assert [turn.whole for turn in own] == [at < waves for at in range(len(own))]
        assert all(turn.steps == range(steps) for turn in own if turn.whole)
        assert sum(len(turn.steps) < steps for turn in own) <= 2
        assert all(turn.steps == range(steps) for turn in own[waves + 1 : -1])
    left = (tiles - waves * grid) * max(1, steps)
    most = max(sum(len(turn.steps) for turn in own[waves:]) for own in of_block.values())
    assert most <= -(-left // grid)


def check_parts(turns: list[Turn], grid: int, blocks: int) -> None:
    """Blocks of a tile know how many they are, and have places of their own."""
    of_tile: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        of_tile[turn.tile].append(turn)
    for several in of_tile.values():
        assert [turn.block for turn in several] == sorted({turn.block for turn in several})
        for at, turn in enumerate(several):
            assert turn.number == len(several)
            if len(several) > 1:
                assert turn.own == at
                assert turn.arrived == several[0].arrived
    parts = [turn for turn in turns if turn.number > 1]
    slots = [turn.left for turn in parts]
    assert len(set(slots)) == len(slots)
    assert all(0 <= slot < 2 * grid <= 2 * blocks for slot in slots)
    counters = {turn.tile: turn.arrived for turn in parts}
    assert len(set(counters.values())) == len(counters)
    _, kernel = streamed_product(blocks)
    assert kernel.streamed is not None
    (extent,) = kernel.streamed.arrived.layout.extents
    assert isinstance(extent, Constant)
    assert all(at % 2 == 0 and at >= 0 and at + 1 < extent.value for at in counters.values())
    slots_there, registers, threads = kernel.streamed.parts.layout.extents
    assert slots_there == Constant(2 * blocks)
    assert registers == Constant(ROWS * COLUMNS // kernel.threads)
    assert threads == Constant(kernel.threads)


def test_the_steps_of_all_tiles_are_those_of_the_launch() -> None:
    _, kernel = streamed_product(7)
    assert kernel.streamed is not None
    assert kernel.streamed.blocks == 7

    def counts(rows: int, columns: int, steps: int) -> list[int]:
        assert kernel.streamed is not None
        return [evaluate(one, sizes_with(rows, columns, steps)) for one in kernel.streamed.counts]

    assert counts(5, 3, 4) == [3, 5, 1, 4]
    assert counts(5, 3, 0) == [3, 5, 1, 1]
    (steps,) = (one for one in kernel.body if isinstance(one, Let) and one.name == "steps")
    assert evaluate(steps.value, {"NK": 5 * STEP + 1}) == 6
