"""How the lanes of a warp meet memory, against counting the lanes one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.cost.access import bank_wavefronts, line_wavefronts, lines, sectors
from eatss.plan.launch import lanes_of

WARP = 32
SPLITS = [(32,), (1,), (8,), (16, 2), (4, 8), (1, 32), (8, 4), (2, 4, 4), (4, 4, 2), (16, 1, 2)]
FULL_SPLITS = [split for split in SPLITS if int(np.prod(split)) == WARP]

splits = st.sampled_from(SPLITS)
full_splits = st.sampled_from(FULL_SPLITS)
widths = st.sampled_from([4, 8])


def columns(values: Sequence[float]) -> list[np.ndarray]:
    return [np.array([float(value)]) for value in values]


def offsets(lanes: Sequence[int], steps: Sequence[int]) -> list[int]:
    """Return where each working lane looks, ``x`` moving first."""
    found = []
    for lane in range(int(np.prod(lanes))):
        left, offset = lane, 0
        for along, step in zip(lanes, steps, strict=True):
            offset += left % along * step
            left //= along
        found.append(offset)
    return found


def pieces(lanes: Sequence[int], steps: Sequence[int], piece: int) -> int:
    return len({offset // piece for offset in offsets(lanes, steps)})


def bank_cycles(lanes: Sequence[int], steps: Sequence[int], width: int) -> int:
    """Return the cycles of a request: one without conflict, else those of each half."""
    elements = list(offsets(lanes, steps))
    each = 32 * 4 // width
    if most_of_a_bank(elements, width) == 1:
        return 1
    return sum(
        most_of_a_bank(elements[at : at + each], width) for at in range(0, len(elements), each)
    )


def most_of_a_bank(elements: Sequence[int], width: int) -> int:
    """Return the most different elements that lanes want of one bank of their width."""
    return max(Counter(element % (32 * 4 // width) for element in set(elements)).values())


@pytest.mark.parametrize(
    ("threads", "lanes"),
    [
        ((32, 16), (32, 1)),
        ((16, 32), (16, 2)),
        ((8, 2, 64), (8, 2, 2)),
        ((1, 4, 512), (1, 4, 8)),
        ((512,), (32,)),
        ((5,), (5,)),
        ((64, 4, 4), (32, 1, 1)),
    ],
)
def test_a_warp_takes_the_threads_along_x_first(
    threads: tuple[int, ...], lanes: tuple[int, ...]
) -> None:
    assert [int(along[0]) for along in lanes_of(columns(threads))] == list(lanes)


@given(split=splits, width=widths, rows=st.lists(st.integers(0, 8), min_size=2, max_size=2))
def test_sectors_of_rows_that_lie_apart_are_counted_exactly(
    split: tuple[int, ...], width: int, rows: list[int]
) -> None:
    pitch = 32 * 8 * 2  # wider than any row, and a whole number of sectors
    steps = [width, *(pitch * 64**at * (row > 0) for at, row in enumerate(rows))][: len(split)]
    found = sectors(columns(split), [float(step) for step in steps], width)
    assert found == pieces(split, steps, 32)


@given(lanes=st.sampled_from([1, 2, 4, 8, 16, 32]), width=widths, stride=st.integers(0, 80))
def test_sectors_of_one_row_are_counted_exactly_for_every_stride(
    lanes: int, width: int, stride: int
) -> None:
    found = sectors(columns([lanes]), [float(stride * width)], width)
    assert found == pieces([lanes], [stride * width], 32)


@given(lanes=st.sampled_from([4, 32]), width=widths, stride=st.integers(-40, 40))
def test_it_does_not_matter_which_way_a_row_is_walked(lanes: int, width: int, stride: int) -> None:
    back = sectors(columns([lanes]), [float(-stride * width)], width)
    assert back == sectors(columns([lanes]), [float(stride * width)], width)


def test_one_element_for_all_lanes_is_one_sector() -> None:
    assert sectors(columns([32]), [0.0], 8) == 1


@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_a_row_that_begins_inside_a_sector_touches_one_more(lanes: int) -> None:
    aligned = sectors(columns([lanes]), [8.0], 8)
    assert sectors(columns([lanes]), [8.0], 8, 8) == aligned + 1
    assert sectors(columns([lanes]), [8.0], 8, 64) == aligned


@given(lanes=st.just(32), width=widths, stride=st.integers(0, 80))
def test_each_line_beyond_those_of_the_data_costs_its_cycles(
    lanes: int, width: int, stride: int
) -> None:
    least = WARP * width / 128
    counted = pieces([lanes], [stride * width], 128)
    touched = lines(columns([lanes]), [float(stride * width)], width)
    assert line_wavefronts(least, touched, 2.0) == least + 2.0 * max(0.0, counted - least)


@given(
    split=full_splits,
    width=widths,
    steps=st.lists(st.integers(0, 200), min_size=3, max_size=3),
)
def test_bank_conflicts_are_those_of_the_lanes_one_by_one(
    split: tuple[int, ...], width: int, steps: list[int]
) -> None:
    steps = steps[: len(split)]
    found = bank_wavefronts(columns(split), columns(steps), width)
    assert found[0] == bank_cycles(split, steps, width)


@pytest.mark.parametrize(
    ("width", "step", "cycles"),
    [
        (4, 0, 1),
        (4, 1, 1),
        (4, 2, 2),
        (4, 32, 32),
        (4, 33, 1),
        (8, 0, 1),
        (8, 1, 2),
        (8, 16, 32),
        (8, 17, 2),
    ],
)
def test_known_strides_conflict_as_known(width: int, step: int, cycles: int) -> None:
    assert bank_wavefronts(columns([32]), columns([step]), width) == cycles


@given(st.lists(st.tuples(full_splits, st.integers(0, 70), st.integers(0, 70)), min_size=1))
def test_many_candidates_at_once_are_counted_like_each_alone(
    rows: list[tuple[tuple[int, ...], int, int]],
) -> None:
    padded = [((*split, 1, 1)[:3], (x, y, 3)) for split, x, y in rows]
    lanes = [np.array([float(split[at]) for split, _ in padded]) for at in range(3)]
    steps = [np.array([float(step[at]) for _, step in padded]) for at in range(3)]
    together = bank_wavefronts(lanes, steps, 4)
    alone = [bank_wavefronts(columns(split), columns(step), 4)[0] for split, step in padded]
    assert together.tolist() == alone
