"""Recipes: written, read, and those written before.

Recipes: kept, read again, carried out again, and refused where they do not belong.

Recipes and a selection that code of before wrote are read as they were, and carried out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.analysis.layout import (
    ClassBlock,
    FusedRows,
    GridSplitK,
    Layout,
    LoopBlock,
    SplitK,
    WarpUse,
)
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.cuda import expected_of
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.cli.options import read_selection
from eatss.frontend.options import Reading
from eatss.lower.recipe import (
    CodegenOptions,
    CodeRequest,
    KernelRecipe,
    NamedThreads,
    Recipe,
    read_recipe,
    recipe_from_dict,
    recipe_text,
    recipe_to_dict,
)
from eatss.lower.requests import check_alone, choices
from eatss.lower.variants import kernel_variants_for
from eatss.program import load_program, save_program
from eatss.session.session import Session

H200 = load_profile("h200")


@cache
def analysed(kernel: str) -> Session:
    return Session(data_directory("kernels") / f"{kernel}.c", code=True)


@cache
def selected(kernel: str, *, strict_fp: bool) -> Selection:
    return analysed(kernel).select(H200, SelectOptions(target="cuda"), strict_fp=strict_fp)


def decided(kernel: str, limit: int | None = None, **own: Any) -> Recipe:
    session, wanted = analysed(kernel), CodeRequest(**own)
    return session.recipe(selected(kernel, strict_fp=wanted.strict_fp), H200, wanted, limit)


@pytest.mark.parametrize(
    "options", [{"strict_fp": True}, {"block": {"kernel0": {"i": 4}}, "placements": {"A": "l1"}}]
)
def test_a_recipe_that_was_kept_makes_the_same_program(
    options: Mapping[str, Any], tmp_path: Path
) -> None:
    recipe = decided("gemm", **options)
    program = analysed("gemm").generate(recipe, H200)
    kept = tmp_path / "recipe.json"
    kept.write_text(recipe_text(recipe))
    save_program(program, tmp_path)
    for path in (kept, tmp_path):
        again = read_recipe(path)
        assert again == recipe
        assert analysed("gemm").generate(again, H200) == program
    assert load_program(tmp_path) == program
    assert program.recipe == recipe_to_dict(recipe)


@pytest.mark.parametrize(
    ("gpu", "wanted", "boxes"),
    [("h200", 1, 1), ("v100", 3, 1)],
)
def test_what_is_expected_with_boxes_of_the_user_is_the_prediction_of_the_code(
    gpu: str, wanted: int, boxes: int
) -> None:
    session, card = analysed("gemm"), load_profile(gpu)
    selection = session.select(card, SelectOptions(target="cuda"))
    recipe = session.recipe(selection, card, CodeRequest(stages=wanted), None)
    (found,) = session.expected(selection, recipe, card).kernels
    (code,) = session.generate(recipe, card).kernels
    (kernel,), (facts,) = selection.kernels, session.analysed.facts
    warps = kernel.warps and replace(kernel.warps, stages=boxes)
    as_made = replace(kernel, warps=warps, stages=kernel.stages if warps else boxes)
    variants = kernel_variants_for(session.analysed, card)[facts.name]
    assert (found.predicted, None) == expected_of(facts, variants, card, as_made)
    assert found.predicted is not None
    assert (found.predicted.shared_bytes, found.pipeline_stages) == (code.shared_bytes, boxes)


# as JSON

SIZES = st.dictionaries(st.text(max_size=3), st.integers(1, 4096), max_size=3)
PAIRS = SIZES.map(lambda sizes: tuple(sizes.items()))
THREADS = st.lists(st.integers(1, 64), min_size=1, max_size=3).map(tuple)
BLOCKS = THREADS | st.builds(NamedThreads, threads=PAIRS)


def of_kernels(own: Any) -> Any:
    return st.dictionaries(st.text(max_size=3), own, max_size=2).map(lambda d: tuple(d.items()))


OPTIONS = st.builds(
    CodegenOptions,
    tile_sizes=of_kernels(PAIRS),
    block=of_kernels(BLOCKS),
    placements=of_kernels(st.sampled_from(["l1", "shared"])),
    index_bits=...,
    shared_limit_bytes=...,
)
KERNELS = st.builds(KernelRecipe, tile_sizes=PAIRS, block=PAIRS, spread=..., warps=...)
RECIPES = st.builds(Recipe, kernels=st.lists(KERNELS, max_size=2).map(tuple), options=OPTIONS)


@given(RECIPES)
def test_a_recipe_is_read_as_it_was_written(recipe: Recipe) -> None:
    assert recipe_from_dict(json.loads(recipe_text(recipe))) == recipe


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("gpu"),
        lambda d: d.update(kernels=["k"]),
        lambda d: d["kernels"][0].pop("block"),
        lambda d: d["kernels"][0].update(note="mine"),
    ],
)
def test_what_is_no_recipe_is_refused(damage: Any) -> None:
    document = recipe_to_dict(decided("gemm"))
    damage(document)
    with pytest.raises(InputError, match="EATSS-K017"):
        recipe_from_dict(document)


# where it does not belong


def wanted(**options: Any) -> Recipe:
    return replace(decided("gemm"), options=CodegenOptions(**options))


def changed(**changes: Any) -> Recipe:
    recipe = decided("gemm")
    (kernel,) = recipe.kernels
    return replace(recipe, kernels=(replace(kernel, **changes),))


K0 = ("kernel0",)
ROWS = FusedRows(kernels=K0, loops=1, rows=4, lanes=48, tile=48)


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (lambda: replace(decided("gemm"), gpu="a100-40gb"), "on a100-40gb, not for"),
        (lambda: changed(statements=("S0",)), "other statements"),
        (lambda: changed(tile_sizes=(("i", 4), ("j", 0), ("k", 4))), "of no launch"),
        (lambda: changed(block=(("z", 4),)), "other statements, loops"),
        (lambda: changed(spread=SplitK(lanes=3, tile=1, chunks=1)), "of no launch"),
        (lambda: changed(warps=WarpUse(instruction="fma", stages=1)), "of no launch"),
        (lambda: changed(class_block=ClassBlock(kernels=K0, threads=48, width=1)), "of no launch"),
        (lambda: changed(class_block=ClassBlock(kernels=K0, threads=32, width=64)), "of no launch"),
        (lambda: changed(loop_block=LoopBlock(kernels=("kernel1",), threads=64)), "of no launch"),
        (lambda: changed(row_block=ROWS), "of no launch"),
        (lambda: changed(row_block=replace(ROWS, lanes=16, whole=-1)), "of no launch"),
        (lambda: changed(row_block=replace(ROWS, lanes=16, steps=2)), "of no launch"),
        (lambda: changed(resident=0), "of no launch"),
        (lambda: wanted(shared_limit_bytes=-5), "of no launch"),
    ],
)
def test_a_recipe_for_another_program_is_refused(recipe: Any, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        analysed("gemm").generate(recipe(), H200)
    assert caught.value.code == "EATSS-K011"


def test_nothing_is_chosen_beside_a_recipe() -> None:
    recipe = decided("gemm")
    nothing = choices(CodeRequest(), SelectOptions(target="cuda", timeout_s=3), None, Reading())
    check_alone(recipe, nothing)
    check_alone(None, ["--tile"])
    wanted, paper = CodeRequest(tiles={"i": 3}, index_bits=64), SelectOptions(split=0.0)
    anew = Reading(recompute="all")
    named = "tiles, index_bits, split, recompute beside a recipe"
    with pytest.raises(InputError, match=named) as caught:
        check_alone(recipe, choices(wanted, paper, None, anew))
    assert caught.value.code == "EATSS-C012"


BEFORE = Path(__file__).parent / "written_before"


def is_as_before(written: dict[str, Any], path: Path, *later: str) -> None:
    """Demand that something is written as a file has it, but for what came later."""
    before = json.loads(path.read_text())
    assert before["kernels"][0].pop("host_loop") is None
    for name in ("split", "classes", "factored", "private", "reverse", "chunks"):
        assert not written.pop(name)
    assert written.pop("fused") == "none"
    assert not any(written["kernels"][0].pop(name) for name in (*later, "class_block"))
    assert written == before


PRODUCT = Layout(
    tile_sizes=(("i", 96), ("j", 192), ("k", 32)),
    block=(("i", 16), ("j", 16)),
    warps=WarpUse(instruction="mma_f64_16x8x4", stages=2),
)
STREAMED = Layout(
    tile_sizes=(("i", 128), ("j", 128), ("k", 16)),
    block=(("i", 16), ("j", 16)),
    shared_sum=GridSplitK(loop="k", blocks=132, streamed=True),
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
    written = recipe_to_dict(recipe)
    assert written["options"].pop("fast_math") is False
    is_as_before(written, path, "time_tile", "loop_block")
    session = Session(data_directory("kernels") / "gemm.c", Reading(defines=defines), code=True)
    (code,) = session.generate(recipe, load_profile(recipe.gpu)).kernels
    assert code.shared_bytes == shared_bytes


def test_a_selection_of_before_is_read() -> None:
    path = BEFORE / "selection_gemm.json"
    selection = read_selection(path)
    (kernel,) = selection.kernels
    assert kernel.chosen() == PRODUCT.chosen()
    assert kernel.predicted is not None
    assert kernel.predicted.shared_bytes == 155648
    written = selection.to_dict()
    assert written["options"].pop("gap") is None  # what came later
    is_as_before(written, path, "bound", "boxes", "time_tile", "loop_block")
