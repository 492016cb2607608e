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

from eatss.analysis.layout import Layout, SharedSum, SplitK, WarpUse
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.cuda import expected_of
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.cli.options import read_selection
from eatss.frontend.options import Reading
from eatss.lower.recipe import (
    PLAN,
    CodegenOptions,
    CodeRequest,
    KernelRecipe,
    NamedThreads,
    PlacedReference,
    Recipe,
    read_recipe,
    recipe_from_dict,
    recipe_text,
    recipe_to_dict,
)
from eatss.lower.requests import check_alone, choices
from eatss.lower.structures import structures_for
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
    selection = selected(kernel, strict_fp=wanted.strict_fp)
    return session.recipe(selection, H200, wanted, limit)


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "as selected": {},
    "strict": {"strict_fp": True},
    "own sizes": {"tiles": {"kernel0": {"i": 32}}, "block": {"kernel0": {"i": 4}}},
    "own places": {"placements": {"A": "l1"}},
    "wide, with lines": {"index_bits": 64, "line_info": True},
    "little shared memory": {"limit": 8192},
}


@pytest.mark.samples(1)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(
    "kernel",
    [
        "gemm",
        pytest.param("atax", marks=pytest.mark.long),
        pytest.param("gramschmidt", marks=pytest.mark.long),
    ],
)
def test_a_recipe_that_was_kept_makes_the_same_program(
    kernel: str, options: Mapping[str, Any], tmp_path: Path
) -> None:
    if kernel == "gramschmidt" and "block" in options:
        options = {"tiles": {"j": 32}}
    recipe = decided(kernel, **options)
    program = analysed(kernel).generate(recipe, H200)
    kept = tmp_path / "recipe.json"
    kept.write_text(recipe_text(recipe))
    save_program(program, tmp_path)
    for path in (kept, tmp_path):
        again = read_recipe(path)
        assert again == recipe
        assert analysed(kernel).generate(again, H200) == program
    assert load_program(tmp_path) == program
    assert program.recipe == recipe_to_dict(recipe)


@pytest.mark.long
@pytest.mark.parametrize(
    "source", sorted(data_directory("kernels").glob("*.c")), ids=lambda p: p.stem
)
def test_every_kernel_is_made_again_from_its_recipe(source: Path) -> None:
    recipe = decided(source.stem)
    program = analysed(source.stem).generate(recipe, H200)
    assert analysed(source.stem).generate(recipe_from_dict(program.recipe or {}), H200) == program


def test_an_edited_recipe_is_carried_out() -> None:
    recipe = decided("gemm")
    document = recipe_to_dict(recipe)
    document["kernels"][0]["tile_sizes"]["k"] = 8
    edited = recipe_from_dict(document)
    (kernel,) = analysed("gemm").generate(edited, H200).kernels
    assert dict(kernel.tile_sizes)["k"] == 8
    assert dict(analysed("gemm").generate(recipe, H200).kernels[0].tile_sizes)["k"] != 8


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("gpu", "wanted", "boxes"),
    [("h200", 1, 1), ("h200", 2, 2), ("h200", 3, 2), ("v100", 3, 1)],
    ids=["one", "as selected", "more than a block can have", "a card that cannot copy ahead"],
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
    structures = structures_for(session.analysed, card)[facts.name]
    assert (found.predicted, None) == expected_of(facts, structures, card, as_made)
    assert found.predicted is not None
    assert (found.predicted.shared_bytes, found.boxes) == (code.shared_bytes, boxes)


# as JSON

NAMES = st.text("abcij_", min_size=1, max_size=3)
SIZES = st.dictionaries(NAMES, st.integers(1, 4096), max_size=3).map(lambda d: tuple(d.items()))
SPREADS = st.builds(SplitK, lanes=st.integers(1, 32), tile=st.integers(1, 64), chunks=st.just(4))
PLACES = st.builds(
    PlacedReference,
    array=NAMES,
    access=NAMES,
    statements=st.lists(NAMES, max_size=2).map(tuple),
    memory=st.sampled_from(["l1", "shared", "private"]),
)
KERNELS = st.builds(
    KernelRecipe,
    name=NAMES,
    statements=st.lists(NAMES, max_size=2).map(tuple),
    tile_sizes=SIZES,
    block=SIZES,
    references=st.lists(PLACES, max_size=2).map(tuple),
    spread=st.none() | SPREADS,
    host_loop=st.none() | NAMES,
)
BLOCKS = st.lists(st.integers(1, 64), min_size=1, max_size=3).map(tuple) | st.builds(
    NamedThreads, threads=SIZES
)
RECIPES = st.builds(
    Recipe,
    gpu=NAMES,
    dtype=st.sampled_from(["double", "float"]),
    kernels=st.lists(KERNELS, max_size=2).map(tuple),
    options=st.builds(
        CodegenOptions,
        tile_sizes=st.lists(st.tuples(NAMES, SIZES), max_size=2).map(tuple),
        block=st.lists(st.tuples(NAMES, BLOCKS), max_size=2).map(tuple),
        placements=st.lists(st.tuples(NAMES, st.sampled_from(["l1", "shared"]))).map(tuple),
        strict_fp=st.booleans(),
        index_bits=st.sampled_from([None, 32, 64]),
        shared_limit_bytes=st.none() | st.integers(0, 1 << 18),
    ),
)


@given(RECIPES)
def test_a_recipe_is_read_as_it_was_written(recipe: Recipe) -> None:
    assert recipe_from_dict(json.loads(recipe_text(recipe))) == recipe


@pytest.mark.samples(4)
@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("gpu"),
        lambda d: d.update(schema_version=99),
        lambda d: d.update(kernels=3),
        lambda d: d.update(kernels=["k"]),
        lambda d: d["kernels"][0].update(tile_sizes=[["i", 3]]),
        lambda d: d["kernels"][0]["tile_sizes"].update(i="wide"),
        lambda d: d["kernels"][0].pop("block"),
        lambda d: d["options"].update(index_bits=16),
        lambda d: d["options"].update(index_bits=64.0),
        lambda d: d["options"].update(strict_pf=True),
        lambda d: d["kernels"][0].update(note="mine"),
    ],
)
def test_what_is_no_recipe_is_refused(damage: Any) -> None:
    document = recipe_to_dict(decided("gemm"))
    damage(document)
    with pytest.raises(InputError, match="EATSS-K017"):
        recipe_from_dict(document)


@pytest.mark.parametrize(
    ("text", "code"), [("{", "EATSS-K017"), ("[1]", "EATSS-K017"), (None, "EATSS-C009")]
)
def test_files_that_hold_no_recipe(text: str | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=code):
        read_recipe(path)


def test_a_plan_without_a_recipe_has_none(tmp_path: Path) -> None:
    (tmp_path / PLAN).write_text("{}")
    with pytest.raises(InputError, match="EATSS-K017"):
        read_recipe(tmp_path)


# where it does not belong


MMA = "mma_f64_16x8x16"
UNKNOWN = PlacedReference(array="Z", access="Z[i]", statements=("S0",), memory="l1")


def wanted(**options: Any) -> Recipe:
    return replace(decided("gemm"), options=CodegenOptions(**options))


def changed(**changes: Any) -> Recipe:
    recipe = decided("gemm")
    (kernel,) = recipe.kernels
    return replace(recipe, kernels=(replace(kernel, **changes),))


@pytest.mark.samples(7)
@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (lambda: replace(decided("gemm"), gpu="a100-40gb"), "it is for a100-40gb"),
        (lambda: replace(decided("gemm"), dtype="float"), "it is for float"),
        (lambda: decided("atax"), "it has the kernels kernel0, kernel1"),
        (lambda: changed(statements=("S0",)), "other statements"),
        (lambda: changed(tile_sizes=(("i", 4), ("j", 4))), "a tile size for each loop"),
        (lambda: changed(tile_sizes=()), "a tile size for each loop"),
        (lambda: changed(tile_sizes=(("i", 4), ("j", 0), ("k", 4))), "not from 1 to 1048576"),
        (lambda: changed(tile_sizes=(("i", 4), ("j", 4), ("k", 2**31))), "not from 1 to 1048576"),
        (lambda: changed(block=(("i", 0),)), "not from 1 to 1024"),
        (lambda: changed(block=(("i", 10**9),)), "not from 1 to 1024"),
        (lambda: changed(block=(("z", 4),)), "along other loops"),
        (lambda: changed(host_loop="z"), "another loop on the host"),
        (lambda: changed(references=(UNKNOWN,)), "other references"),
        (lambda: changed(spread=SplitK(lanes=3, tile=1, chunks=1)), "over 3 threads"),
        (lambda: changed(spread=SplitK(lanes=64, tile=1, chunks=1)), "over 64 threads"),
        (lambda: changed(spread=SplitK(lanes=2, tile=1, chunks=10**12)), "no launch has"),
        (lambda: changed(warps=WarpUse(instruction="fma", stages=1)), "no instruction of warps"),
        (lambda: changed(warps=WarpUse(instruction="x", stages=1)), "no instruction of warps"),
        (lambda: changed(warps=WarpUse(instruction=MMA, stages=9)), "not 1 to 8"),
        (lambda: wanted(shared_limit_bytes=10**9), "1000000000 bytes of shared memory"),
        (lambda: wanted(shared_limit_bytes=-5), "-5 bytes of shared memory"),
    ],
)
def test_a_recipe_for_another_program_is_refused(recipe: Any, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        analysed("gemm").generate(recipe(), H200)
    assert caught.value.code == "EATSS-K018"


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("recipe", "code"),
    [
        (lambda: wanted(tile_sizes=(("", (("z", 4),)),)), "EATSS-K001"),
        (lambda: wanted(tile_sizes=(("kernel0", (("i", 2**30),)),)), "EATSS-K002"),
        (lambda: wanted(tile_sizes=(("kernel9", (("i", 4),)),)), "EATSS-K013"),
        (lambda: wanted(block=(("", (64, 64)),)), "EATSS-K003"),
        (lambda: wanted(placements=(("Z", "shared"),)), "EATSS-K005"),
    ],
)
def test_what_the_user_wanted_is_checked_as_options_are(recipe: Any, code: str) -> None:
    with pytest.raises(InputError) as caught:
        analysed("gemm").generate(recipe(), H200)
    assert caught.value.code == code


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
    assert caught.value.code == "EATSS-C015"


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
