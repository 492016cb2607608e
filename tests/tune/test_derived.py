"""The derived space contains what the model compares and what it selects."""

from __future__ import annotations

from functools import cache
from math import prod
from pathlib import Path
from random import Random

import pytest

from eatss.analysis.facts import KernelFacts
from eatss.analysis.variant import KernelVariant
from eatss.base.diagnostics import NoSolutionError
from eatss.cards import load_profile
from eatss.choose.cuda import ranked_cuda
from eatss.choose.cuda_candidates import PLAIN_TILE
from eatss.choose.options import ModelOptions, SelectOptions
from eatss.lower.variants import kernel_variants_for
from eatss.session.session import Session
from eatss.tune.bound import bind
from eatss.tune.derived import PPCG_TILES, derived_space, kernel_spaces, point_of, ppcg_space
from eatss.tune.document import space_from_text, space_text
from eatss.tune.points import card_constants

KERNELS = Path(__file__).parents[2] / "kernels"


@cache
def session_of(name: str) -> Session:
    return Session(KERNELS / f"{name}.c", cut="eatss")


def kernel_variants_of(name: str, card: str) -> dict[str, tuple[KernelVariant, ...]]:
    return kernel_variants_for(session_of(name).analysed, load_profile(card))


def test_the_selection_is_a_point() -> None:
    session, profile = session_of("gemm"), load_profile("h200")
    facts, variants = session.analysed.facts, kernel_variants_of("gemm", "h200")
    space = derived_space(kernel_spaces(facts, variants, profile), name="gemm")
    assert space_from_text(space_text(space), "again") == space
    bound = bind(space, card_constants(profile))
    selection = session.select(profile, SelectOptions(target="cuda"))
    assert (
        bound.allows(point_of(selection.kernels, kernel_spaces(facts, variants, profile))) is None
    )
    ranked = [
        (own, ranked_cuda(own, variants[own.name], profile, ModelOptions(target="cuda"), 30))
        for own in facts
    ]
    spaces = kernel_spaces(facts, variants, profile)
    point = point_of(selection.kernels, kernel_spaces(facts, variants, profile))
    for own, kernels in ranked:
        for kernel in kernels:
            changed = point | spaces[own.name].point(kernel)
            assert bound.allows(changed) is None, changed


def test_every_structure_is_in_the_space() -> None:
    profile = load_profile("h200")
    facts, variants = session_of("gemm").analysed.facts, kernel_variants_of("gemm", "h200")
    for one in facts:
        check_structures(one, {one.name: variants[one.name]})
    assert profile.sm_count == 132


def check_structures(facts: KernelFacts, variants: dict[str, tuple[KernelVariant, ...]]) -> None:
    """Draw layouts of each layouts that fit the card: all are points."""
    profile = load_profile("h200")
    (space,) = kernel_spaces([facts], variants, profile).values()
    if not space.every:
        return
    bound = bind(derived_space(kernel_spaces([facts], variants, profile)), card_constants(profile))
    held = "accumulators fit into registers"
    shared = "staged tiles fit into shared memory"
    for layouts in space.every:
        allowed = 0
        for row in Random(1).choices(range(len(layouts)), k=60):
            own = layouts.at(row)
            decided = space.values(own, own.staged)
            point = {name: decided[name] for name in space.dimensions}
            reason = bound.allows(point)
            assert reason is None or held in reason or shared in reason, (reason, point)
            allowed += reason is None
        assert allowed


def test_all_kernels_of_gemm_s_space_are_counted() -> None:
    facts, variants = session_of("gemm").analysed.facts, kernel_variants_of("gemm", "h200")
    space = derived_space(kernel_spaces(facts, variants, load_profile("h200")), name="gemm")
    bound = bind(space, card_constants(load_profile("h200")))
    assert bound.names[:2] == ("warps", "stages")
    count = bound.count()
    assert count.raw == prod(len(dimension.listed) for dimension in bound.walk.dimensions)
    assert count.kept == sum(1 for _ in bound.points())
    assert all(bound.decisions(point) == point for point in bound.sample(5, 0))


def test_sums_that_are_spread_have_one_tile() -> None:
    profile, facts = load_profile("h200"), session_of("atax").analysed.facts
    variants = kernel_variants_of("atax", "h200")
    bound = bind(derived_space(kernel_spaces(facts, variants, profile)), card_constants(profile))
    selection = session_of("atax").select(profile, SelectOptions(target="cuda"))
    (first, _) = selection.kernels
    assert first.spread is not None
    point = point_of(selection.kernels, kernel_spaces(facts, variants, profile))
    assert (point["k0.tile_j"], bound.allows(point)) == (PLAIN_TILE, None)
    for other in (PLAIN_TILE // 2, 2 * PLAIN_TILE):
        reason = bound.allows(point | {"k0.tile_j": other})
        assert reason is not None
        assert "the kernel variant has tile_j" in reason


def test_ppcg_s_space_of_2mm_has_the_3375_variants_of_the_paper() -> None:
    session = Session(KERNELS / "2mm.c", cut="ppcg")
    space = ppcg_space(session.analysed.facts, name="2mm")
    bound = bind(space, {})
    assert len(bound) == 3375 == len(PPCG_TILES) ** 3
    assert bound.names == ("tile_0", "tile_1", "tile_2")
    assert bound.allows({"tile_0": 32, "tile_1": 32, "tile_2": 32}) is None


def test_a_program_without_sizes_has_no_space() -> None:
    with pytest.raises(NoSolutionError) as raised:
        derived_space({})
    assert raised.value.code == "EATSS-S016"
