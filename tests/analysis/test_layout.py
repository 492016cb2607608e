"""Layouts as JSON and columns, and lanes that ask banks of shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.analysis.layout import Candidates, GridSplitK, Layout, SplitK, WarpUse
from eatss.analysis.variant import (
    KernelVariant,
    interleaved_wavefronts,
    interleaves,
    vector_wavefronts,
)
from eatss.base.codec import decode, encode
from eatss.lower.recipe import CodegenOptions, KernelRecipe

SIZES = st.integers(1, 64)
SPREADS = st.builds(SplitK, lanes=SIZES, tile=SIZES, chunks=SIZES)
SHARED = st.builds(GridSplitK, loop=st.just("k"), blocks=SIZES, streamed=st.booleans())
WARPS = st.builds(WarpUse, instruction=st.just("mma"), stages=SIZES, resident=SIZES)
LAYOUTS = st.builds(
    Layout,
    tile_sizes=st.tuples(*(st.tuples(st.just(name), SIZES) for name in "ijk")),
    block=st.tuples(*(st.tuples(st.just(name), SIZES) for name in "ij")),
    spread=st.none() | SPREADS,
    shared_sum=st.none() | SHARED,
    warps=st.none() | WARPS,
    stages=SIZES,
    resident=SIZES,
)


@given(layout=LAYOUTS, factor=st.integers(2, 9))
def test_a_row_of_columns_is_the_layout_that_it_was_made_of(layout: Layout, factor: int) -> None:
    variant = KernelVariant(launches=())
    whole = Candidates(**layout.chosen(), variant=variant, staged={(0, 2): 1})
    columns = whole.map(lambda one: np.array([one, factor * one]))
    assert len(columns) == 2
    assert columns.at(0) == whole
    assert columns.at(1) == whole.map(lambda one: factor * one)
    assert columns.variant is variant
    assert columns.cut == layout.cut
    for name in ("lanes", "sum_tile", "chunks", "streams", "pipeline_stages"):
        own = np.broadcast_to(getattr(columns, name), 2)
        assert own[0] == getattr(layout, name)


@given(layout=LAYOUTS)
def test_a_recipe_s_layout_stands_in_json_as_it_always_did(layout: Layout) -> None:
    recipe = KernelRecipe(**layout.chosen(), name="kernel0", statements=("S0",), references=())
    plain = encode(recipe)
    assert set(plain) == {
        "name", "statements", "tile_sizes", "block", "references", "spread", "shared_sum",
        "warps", "stages", "resident", "row_block", "time_tile", "class_block",
        "loop_block",
    }  # fmt: skip
    assert plain["tile_sizes"] == dict(layout.tile_sizes)
    assert decode(KernelRecipe, plain) == recipe


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ({}, set()),
        ({"fuse_rows": False}, set()),
        ({"tile_sizes": (("kernel0", (("i", 8),)),)}, {"shared_sum", "stages", "resident"}),
        ({"stages": 2}, {"stages", "resident"}),
        ({"strict_fp": True}, {"shared_sum"}),
    ],
)
def test_wishes_leave_of_a_layout_what_goes_with_them(
    options: dict[str, object], gone: set[str]
) -> None:
    selected = Layout(
        tile_sizes=(("i", 32), ("k", 16)),
        block=(("i", 8),),
        shared_sum=GridSplitK(loop="k", blocks=132, streamed=True),
        stages=3,
        resident=4,
    )
    found = CodegenOptions(**options).changed(selected, "kernel0")  # type: ignore[arg-type]
    names = {one.name for one in fields(Layout)}
    assert {name for name in names if getattr(found, name) != getattr(selected, name)} == gone
    asked = GridSplitK(loop="k", blocks=4)
    wanted = CodegenOptions(shared_sums=(("kernel0", asked),))
    assert wanted.changed(selected, "kernel0") == replace(selected, shared_sum=asked)
    assert wanted.changed(selected, "kernel1") == selected


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
