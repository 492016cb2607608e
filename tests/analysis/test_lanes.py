"""Wavefronts of loads of vectors against lanes counted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest

from eatss.analysis.structure import interleaved_wavefronts, interleaves, vector_wavefronts

WARP, HALF = 32, 16


def in_turn(thread: int, threads: Sequence[int]) -> tuple[int, ...]:
    """Return the place of a thread along each axis, the first one fastest."""
    place = []
    for count in threads:
        place.append(thread % count)
        thread //= count
    return tuple(place)


def interleaved(thread: int, threads: Sequence[int]) -> tuple[int, ...]:
    """Return that of a thread whose lanes are interleaved along the first two axes."""
    lane, warp = thread % WARP, thread // WARP
    along_x, along_y, *others = threads
    warp_x, warp_y, *rest = in_turn(warp, (along_x // 8, along_y // 4, *others))
    bits = [lane >> at & 1 for at in range(5)]
    x, y = bits[0] + 2 * bits[3] + 4 * bits[4], bits[1] + 2 * bits[2]
    return (x + 8 * warp_x, y + 4 * warp_y, *rest)


def wavefronts(places: Sequence[tuple[int, ...]], moves: Sequence[bool]) -> list[int]:
    """Return what each half of each warp takes, by the rule that was measured."""
    wanted = [tuple(c for c, moved in zip(one, moves, strict=True) if moved) for one in places]
    found = []
    for first in range(0, len(wanted), HALF):
        half = wanted[first : first + HALF]
        same = any(all(half[at] == half[at ^ apart] for at in range(HALF)) for apart in (1, 2))
        found.append(1 if same else 2)
    return found


def blocks(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the blocks of whole warps with so many threads along each axis."""
    every = product(counts, repeat=3)
    return [one for one in every if prod(one) <= 512 and prod(one) % WARP == 0]


MOVES = list(product((False, True), repeat=3))


@pytest.mark.parametrize("moves", MOVES)
def test_lanes_in_turn_take_what_is_counted(moves: tuple[bool, ...]) -> None:
    for threads in blocks((1, 2, 4, 8, 16, 32, 64)):
        places = [in_turn(thread, threads) for thread in range(prod(threads))]
        assert set(wavefronts(places, moves)) == {vector_wavefronts(threads, moves) / 2}, threads


@pytest.mark.parametrize("moves", MOVES)
def test_lanes_of_odd_blocks_take_that_at_most(moves: tuple[bool, ...]) -> None:
    """Some warps of such blocks take less."""
    for threads in blocks((1, 2, 3, 5, 6, 8, 12, 16)):
        places = [in_turn(thread, threads) for thread in range(prod(threads))]
        assert max(wavefronts(places, moves)) <= vector_wavefronts(threads, moves) / 2, threads


@pytest.mark.parametrize("threads", [(8, 4), (8, 32), (16, 16), (32, 8), (24, 12), (16, 8, 3)])
def test_interleaved_lanes_take_what_is_counted(threads: tuple[int, ...]) -> None:
    places = [interleaved(thread, threads) for thread in range(prod(threads))]
    assert sorted(places) == list(product(*map(range, threads)))
    for moves in product((False, True), repeat=2):
        others = [False] * (len(threads) - 2)
        found = interleaved_wavefronts(along_x=moves[0], along_y=moves[1])
        assert set(wavefronts(places, (*moves, *others))) == {found / 2}
        assert set(wavefronts(places, (*moves, *[True] * len(others)))) == {found / 2}
        assert found <= vector_wavefronts(threads, (*moves, *others))


X, Y, BOTH = (True, False), (False, True), (True, True)


@pytest.mark.parametrize(
    ("threads", "loads", "expected"),
    [
        ((16, 16), [X, Y], True),
        ((8, 32), [X, Y], True),
        ((32, 8), [X, Y], True),
        ((24, 4), [X, Y], True),
        ((16, 16), [X], True),
        ((16, 16), [Y], False),  # 2 wavefronts already
        ((16, 16), [BOTH], False),  # 4 however lanes lie
        ((16, 16), [], False),
        ((4, 64), [X, Y], False),
        ((16, 2), [X, Y], False),
        ((12, 8), [X, Y], False),
        ((16, 6), [X, Y], False),  # warps would not be whole
    ],
)
def test_lanes_are_interleaved_where_it_saves_wavefronts(
    threads: tuple[int, int], loads: list[tuple[bool, bool]], *, expected: bool
) -> None:
    assert interleaves(threads, (0, 1), [(moves, True) for moves in loads]) is expected
    assert not interleaves(threads, (0, 1), [(moves, False) for moves in loads])


def test_columns_say_what_numbers_do() -> None:
    every = list(product((1, 2, 4, 8, 12, 16), repeat=3))
    columns = [np.array(one, dtype=float) for one in zip(*every, strict=True)]
    loads = [
        ((True, False, False), True),
        ((False, True, False), True),
        ((False, True, True), True),
    ]
    for along in ((0, 1), (0, 2), (1, 2)):
        found = interleaves(columns, along, loads)
        assert found.tolist() == [bool(interleaves(one, along, loads)) for one in every]
        assert found.any()
    for moves, _ in loads:
        each = [vector_wavefronts(one, moves) for one in every]
        assert vector_wavefronts(columns, moves).tolist() == each
