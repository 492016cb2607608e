"""One record has all that is chosen for a kernel: its numbers, its columns, its names."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.analysis.layout import Candidates, Layout, SharedSum, SplitK, WarpUse
from eatss.analysis.structure import Structure
from eatss.base.codec import decode, encode
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.recipe.recipe import KernelRecipe
from eatss.tune.space.derived import cut_values
from eatss.tune.space.nouns import is_decision

SIZES = st.integers(1, 64)
SPREADS = st.builds(SplitK, lanes=SIZES, tile=SIZES, chunks=SIZES)
SHARED = st.builds(SharedSum, loop=st.just("k"), blocks=SIZES, streamed=st.booleans())
WARPS = st.builds(WarpUse, instruction=st.just("mma"), stages=SIZES, resident=SIZES)
LAYOUTS = st.builds(
    Layout,
    tile_sizes=st.tuples(*(st.tuples(st.just(name), SIZES) for name in "ijk")),
    block=st.tuples(*(st.tuples(st.just(name), SIZES) for name in "ij")),
    spread=st.none() | SPREADS,
    shared_sum=st.none() | SHARED,
    host_loop=st.sampled_from([None, "i"]),
    warps=st.none() | WARPS,
    stages=SIZES,
    resident=SIZES,
)


@given(layout=LAYOUTS, factor=st.integers(2, 9))
def test_a_row_of_columns_is_the_layout_that_it_was_made_of(layout: Layout, factor: int) -> None:
    structure = Structure(launches=())
    whole = Candidates(**layout.chosen(), structure=structure, staged={(0, 2): 1})
    columns = whole.map(lambda one: np.array([one, factor * one]))
    assert len(columns) == 2
    assert columns.at(0) == whole
    assert columns.at(1) == whole.map(lambda one: factor * one)
    assert columns.structure is structure
    assert columns.cut == layout.cut
    for name in ("lanes", "sum_tile", "chunks", "streams", "boxes"):
        own = np.broadcast_to(getattr(columns, name), 2)
        assert own[0] == getattr(layout, name)


@given(layout=LAYOUTS)
def test_a_recipe_s_layout_stands_in_json_as_it_always_did(layout: Layout) -> None:
    recipe = KernelRecipe(**layout.chosen(), name="kernel0", statements=("S0",), references=())
    plain = encode(recipe)
    assert list(plain) == [
        "name", "statements", "tile_sizes", "block", "references", "spread", "shared_sum",
        "host_loop", "warps", "stages", "resident", "row_block",
    ]  # fmt: skip
    assert plain["tile_sizes"] == dict(layout.tile_sizes)
    assert decode(KernelRecipe, plain) == recipe


@given(layout=LAYOUTS)
def test_what_a_layout_decides_has_names_in_search_spaces(layout: Layout) -> None:
    values = cut_values(layout)
    assert all(map(is_decision, values))
    assert values["stages"] == layout.boxes
    assert (values["share"] > 1) <= (layout.shared_sum is not None)


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
        shared_sum=SharedSum(loop="k", blocks=132, streamed=True),
        stages=3,
        resident=4,
    )
    found = CodegenOptions(**options).changed(selected, "kernel0")  # type: ignore[arg-type]
    names = {one.name for one in fields(Layout)}
    assert {name for name in names if getattr(found, name) != getattr(selected, name)} == gone
    asked = SharedSum(loop="k", blocks=4)
    wanted = CodegenOptions(shared_sums=(("kernel0", asked),))
    assert wanted.changed(selected, "kernel0") == replace(selected, shared_sum=asked)
    assert wanted.changed(selected, "kernel1") == selected
