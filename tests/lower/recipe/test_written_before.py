"""Recipes and a selection that code of before wrote are read as they were, and carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eatss.analysis.layout import Layout, SharedSum, WarpUse
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cli.options import read_selection
from eatss.frontend.options import Reading
from eatss.lower.recipe import read_recipe, recipe_to_dict
from eatss.session.session import Session

BEFORE = Path(__file__).parent / "written_before"
PRODUCT = Layout(
    tile_sizes=(("i", 96), ("j", 192), ("k", 32)),
    block=(("i", 16), ("j", 16)),
    warps=WarpUse(instruction="mma_f64_16x8x4", stages=2),
)
STREAMED = Layout(
    tile_sizes=(("i", 128), ("j", 128), ("k", 16)),
    block=(("i", 16), ("j", 16)),
    shared_sum=SharedSum(loop="k", blocks=132, streamed=True),
    stages=2,
)


@pytest.mark.parametrize(
    ("name", "defines", "layout", "shared_bytes"),
    [
        ("recipe_gemm", {}, PRODUCT, 155648),
        (
            "recipe_gemm_stream",
            {"DATA_TYPE": "float", **dict.fromkeys(("NI", "NJ", "NK"), "1111")},
            STREAMED,
            33792,
        ),
    ],
)
def test_a_recipe_of_before_is_read_and_carried_out(
    name: str, defines: dict[str, str], layout: Layout, shared_bytes: int
) -> None:
    path = BEFORE / f"{name}.json"
    recipe = read_recipe(path)
    (kernel,) = recipe.kernels
    assert kernel.chosen() == layout.chosen()
    assert recipe_to_dict(recipe) == json.loads(path.read_text())
    source = data_directory("kernels") / "gemm.c"
    session = Session(source, Reading(defines=defines), code=True)
    (code,) = session.generate(recipe, load_profile(recipe.gpu)).kernels
    assert code.shared_bytes == shared_bytes


def test_a_selection_of_before_is_read() -> None:
    path = BEFORE / "selection_gemm.json"
    selection = read_selection(path)
    (kernel,) = selection.kernels
    assert kernel.chosen() == PRODUCT.chosen()
    assert kernel.predicted is not None
    assert kernel.predicted.shared_bytes == 155648
    assert selection.to_dict() == json.loads(path.read_text())
