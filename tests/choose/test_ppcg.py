"""Sizes for PPCG: what it can parse, blocks that launch, the best by prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np
import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.polynomial import Polynomial
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.objectives import NEVER, costs
from eatss.choose.options import ModelOptions, ObjectiveName
from eatss.choose.ppcg import (
    MARGIN,
    SAFE_REGISTERS,
    UNSURE_MARGIN,
    PpcgSpace,
    candidates,
    proof_script,
    regular_vectors,
)
from eatss.choose.search import Effort, Sizes, search
from eatss.choose.select import select_program
from eatss.choose.selection import PPCG_DEFAULT, Selection
from eatss.cost.ppcg_model import PpcgModel
from eatss.plan.intervals import Box, mixed
from eatss.session.steps import select_for
from tests.choose.test_optima import cvc5_answers, satisfiable

MakeFacts = Callable[..., KernelFacts]


def parse(text: str) -> dict[tuple[str, int], tuple[int, ...]]:
    """Read sizes as PPCG does: from ``kernel[number]`` to a named tuple of constants."""
    sizes: dict[tuple[str, int], tuple[int, ...]] = {}
    union = isl.UnionMap.read_from_str(isl.Context(), text)

    def take(entry: isl.Map) -> None:
        assert entry.get_tuple_name(isl.dim_type.in_) == "kernel"
        (number,) = (int(str(entry.domain().plain_get_val_if_fixed(isl.dim_type.set, 0))),)
        values = entry.range()
        sizes[entry.get_tuple_name(isl.dim_type.out), number] = tuple(
            int(str(values.plain_get_val_if_fixed(isl.dim_type.set, at)))
            for at in range(values.dim(isl.dim_type.set))
        )

    union.foreach_map(take)
    return sizes


def test_matmul_sizes_read_as_ppcg_takes_them(ga100: GpuProfile, matmul: KernelFacts) -> None:
    options = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)
    selection = select_program([matmul], ga100, options)
    assert selection.ppcg_sizes == "{ kernel[0] -> tile[16, 384, 16]; kernel[0] -> block[4, 64] }"
    assert parse(selection.ppcg_sizes) == {("tile", 0): (16, 384, 16), ("block", 0): (4, 64)}


def test_kernels_keep_their_numbers_and_those_without_a_band_are_left_out(
    ga100: GpuProfile, nests: dict[str, MakeFacts], facts_of: MakeFacts, matmul_with: MakeFacts
) -> None:
    lone = facts_of(
        name="lone", index=1, loops=[], references=[("s", Memory.L1, Polynomial.constant(1))]
    )
    kernels = [nests["conv"](300), lone, matmul_with(name="last", index=2)]
    selection = select_program(
        kernels, ga100, ModelOptions(model="paper", split=0.5, warp_fraction=0.25)
    )
    sizes = parse(selection.ppcg_sizes)
    assert set(sizes) == {("tile", 0), ("block", 0), ("tile", 2), ("block", 2)}
    assert len(sizes["tile", 0]) == 4
    assert len(sizes["block", 0]) == 3
    assert len(sizes["block", 2]) == 2


KERNELS = data_directory("kernels")
H200 = load_profile("h200")


@cache
def analysed(name: str) -> AnalysedProgram:
    return eatss.inspect(KERNELS / f"{name}.c")


@cache
def selected(name: str, objective: ObjectiveName = "energy") -> Selection:
    return select_for(analysed(name), H200, ModelOptions(objective=objective))


SMALL = """
#define N {n}
void small(double A[N][N], double B[N][N], double C[N][N], double x[N], double y[N]) {{
#pragma scop
  for (int i = 0; i < N; i++) {body}
#pragma endscop
}}
"""

BODIES = (
    "for (int j = 0; j < N; j++) for (int k = 0; k < N; k++) C[i][j] += A[i][k] * B[k][j];",
    "for (int j = 0; j < N; j++) for (int k = 0; k < N; k++) C[i][j] += A[i][k] * A[j][k];",
    "for (int j = 0; j < N; j++) y[i] += A[i][j] * x[j];",
    "for (int j = 0; j < N; j++) C[i][j] = A[j][i] + B[i][j];",
    "for (int j = 1; j < N - 1; j++) C[i][j] = A[i][j - 1] + A[i][j] + A[i][j + 1] + B[j][i];",
    "y[i] = 2 * x[i] + y[i];",
)


def small_space(dice: np.random.Generator, folder: Path) -> PpcgSpace:
    """Return the space of a small program on a card that is not like others."""
    source = folder / "small.c"
    body = BODIES[int(dice.integers(len(BODIES)))]
    source.write_text(SMALL.format(n=int(dice.integers(3, 8)), body=body))
    (facts,) = eatss.inspect(source).facts
    card = replace(
        H200,
        sm_count=int(dice.integers(1, 200)),
        threads_per_block=int(dice.choice([16, 64, 1024])),
        tdp_w=float(dice.integers(200, 900)),
    )
    most_bytes = int(dice.choice([0, 200, 400, 49152]))
    objective = str(dice.choice(["energy", "time", "edp"]))
    return PpcgSpace(facts, PpcgModel.of(facts, card), card, most_bytes, objective)


def every_point(space: PpcgSpace) -> Sizes:
    """Return every vector of a space, whether it fits or not."""
    highs = space.root()[1][0, : space.width + space.groups]
    return np.stack(np.meshgrid(*(np.arange(1, most + 1) for most in highs)), axis=-1).reshape(
        -1, len(highs)
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_search_finds_the_least_of_all_points_and_proves_it(seed: int, tmp_path: Path) -> None:
    dice = np.random.default_rng(seed)
    space = small_space(dice, tmp_path)
    points = every_point(space)
    some = points if len(points) < 300_000 else points[dice.integers(0, len(points), 300_000)]
    least = float(space.costs(some).min())
    gap = float(dice.choice([0.0, 0.05]))
    effort = Effort(gap=gap, most_boxes=1_000_000)
    found = search(space, space.seeds(effort), effort)
    assert found.bound <= least * (1 + 1e-9)
    assert found.bound >= (1 - gap) * found.cost * (1 - 1e-9)
    assert found.cost <= least / (1 - gap) * (1 + 1e-9)
    if len(some) == len(points):
        assert found.cost >= least * (1 - 1e-9)


def test_kernels_of_one_kind_differ_by_names_and_are_searched_once() -> None:
    kernels = analysed("3mm").facts
    spaces = [PpcgSpace(one, PpcgModel.of(one, H200), H200, 49152, "energy") for one in kernels]
    assert len({space.kind for space in spaces}) == 1
    points = spaces[0].seeds(Effort(gap=0.0, most_boxes=1, children=8))
    for space in spaces[1:]:
        np.testing.assert_allclose(space.costs(points), spaces[0].costs(points), rtol=1e-12)
    chosen = {(*one.tile_sizes, *one.block) for one in selected("3mm").kernels}
    assert len(chosen) == 1
    left, *_ = analysed("gemm").facts
    other = PpcgSpace(left, PpcgModel.of(left, H200), H200, 49152, "energy")
    assert other.kind != spaces[0].kind


@pytest.mark.parametrize("seed", range(8))
def test_solvers_agree_that_nothing_costs_less_than_is_proven(seed: int, tmp_path: Path) -> None:
    space = small_space(np.random.default_rng(seed), tmp_path)
    effort = Effort(gap=0.1, most_boxes=100_000)
    script, found = proof_script(space, effort), search(space, space.seeds(effort), effort)
    weaker = replace(script, assertions=(*script.assertions[:-1], ("better", "(< cost {})")))
    assert not satisfiable(script.text())
    if found.sizes:
        assert satisfiable(weaker.text().format(int(found.cost) + 2))
    assert cvc5_answers(script.text()) == ["unsat"]


@pytest.mark.parametrize(
    "name",
    ["gemm", "jacobi-2d", "syr2k", "heat-3d", "trmm", "fdtd-apml", "gesummv", "symm",
     "correlation"],
)  # fmt: skip
def test_no_point_of_a_box_costs_less_than_its_bound(name: str) -> None:
    dice = np.random.default_rng(3)
    models = [(facts, PpcgModel.of(facts, H200)) for facts in analysed(name).facts]
    for facts, model in models:
        if model.kernel.threads:
            keeps_bounds(PpcgSpace(facts, model, H200, 49152, "energy"), dice)


def kinds_of(space: PpcgSpace, points: Sizes) -> Sizes:
    """Return what boxes say of points in addition: points of a thread, and whether tiles fit."""
    tiles, threads = points[..., : space.depth], points[..., space.depth : space.width]
    trips = np.array([space.kernel.trips[name] for name in space.kernel.band])
    whole = trips % tiles == 0
    whole[..., : space.mapped] &= tiles[..., : space.mapped] % threads == 0
    return np.concatenate([-(-tiles[..., : space.mapped] // threads), 2 - whole], axis=-1)


def keeps_bounds(space: PpcgSpace, dice: np.random.Generator) -> None:
    low, high = (ends[0] for ends in space.root())
    count = space.width + space.groups
    some = space.seeds(Effort(gap=0.0, most_boxes=4096))
    for spread in (0.0, 0.5, 1.0, 2.0):  # boxes of all widths around points that fit
        points = some[dice.integers(0, len(some), 64)]
        points[0, : space.width] = np.minimum(
            32, high[: space.width]
        )  # the first holds the default's kind, near its ends
        points = np.concatenate([points, kinds_of(space, points)], axis=1)
        wide = np.exp(dice.random((64, 1)) * spread)
        lows = np.maximum(low, (points / wide).astype(np.int64))
        highs = np.minimum(high, np.ceil(points * wide).astype(np.int64))
        told = dice.random(points.shape) < 1 / 2
        told[:, :count] = True  # of the others some are known, some are not
        lows, highs = np.where(told, lows, low), np.where(told, highs, high)
        inside = np.stack([dice.integers(lows, highs + 1)[:, :count] for _ in range(64)], axis=1)
        inside[:, 0] = points[:, :count]
        rows = inside.reshape(-1, count)
        costs_of = space.costs(rows)
        finite = np.isfinite(costs_of)
        plain = space._costs_of(*space._columns(rows[finite]))
        np.testing.assert_allclose(costs_of[finite], plain, rtol=1e-13)  # replayed or not
        costs_of = costs_of.reshape(64, 64)
        kinds = kinds_of(space, inside)
        held = (kinds >= lows[:, None, count:]) & (kinds <= highs[:, None, count:])
        costs_of[~held.all(axis=2)] = np.inf
        shrunk = space.shrunk(lows, highs)
        fitting: Any = (shrunk[0] <= shrunk[1]).all(axis=1)
        assert fitting[np.isfinite(costs_of).any(axis=1)].all()
        bounds = space.bounds(*(own[fitting] for own in shrunk))
        assert (bounds <= costs_of[fitting].min(axis=1) * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["symm", "fdtd-apml", "syr2k", "doitgen"])
def test_what_ppcg_would_stage_otherwise_is_known(name: str) -> None:
    dice = np.random.default_rng(4)
    for facts in analysed(name).facts:
        model = PpcgModel.of(facts, H200)
        if not model.kernel.threads:
            continue
        space = PpcgSpace(facts, model, H200, 49152, "energy")
        points = space.seeds(Effort(gap=0.0, most_boxes=1, children=512))
        kinds, count = points[:, space.width :], points.shape[0]
        kinds[: count // 2] = dice.integers(1, 3, (count // 2, space.groups))
        decided = space._decided([*space._columns(points)])
        plan = model.plan(decided)
        room = replace(decided, staged_groups=None, shared_limit_bytes=plan.shared_bytes)
        pairs = [*zip(model.plan(room).staged, plan.staged, strict=True)]
        ruled = np.all([np.broadcast_to(a == b, count) for a, b in pairs], axis=0)
        assert (np.broadcast_to(plan.is_ruled, count) == ruled).all()
        assert ruled.any()


def test_a_difference_that_may_be_negative_has_no_least_share_of_its_first_number() -> None:
    box = Box({"n": (np.array([26.0]), np.array([39.0]))})
    share = box.intervals["n"] / 39.0
    assert (mixed(share, 0.0, 1.0).low <= 0.0).all()
    assert (((1.0 / box.intervals["n"]) - 1.0).low < 0.0).all()
    assert mixed(0.5, 1.0 / box.intervals["n"], 1.0).low[0] <= 0.5 + 0.5 / 39


def test_launches_that_take_less_than_the_host_needs_are_bound_by_it(tmp_path: Path) -> None:
    (tmp_path / "small.c").write_text(SMALL.format(n=40, body=BODIES[3]))
    selection = select_for(eatss.inspect(tmp_path / "small.c"), H200, ModelOptions())
    (expected,) = [kernel.predicted for kernel in selection.kernels]
    assert expected is not None
    assert expected.bound == "launches"
    assert dict(expected.times_s)["launches"] == expected.time_s


@pytest.mark.parametrize("objective", ["energy", "edp"])
@pytest.mark.parametrize("name", ["gemm", "syrk", "jacobi-2d"])
def test_no_regular_sizes_are_better_than_those_selected(
    name: str, objective: ObjectiveName
) -> None:
    """By the words of docs/model.md; of few warps more is asked, so those are left out."""
    selection = selected(name, objective)
    for facts, kernel in zip(analysed(name).facts, selection.kernels, strict=True):
        model = PpcgModel.of(facts, H200)
        sizes = candidates(model.kernel, regular_vectors(model.kernel), PPCG_DEFAULT)
        for shared_bytes in (0, 8192, 49152):
            one = replace(sizes, shared_limit_bytes=np.full(len(sizes), float(shared_bytes)))
            demand, expected = model.columns(one)
            blocks = np.minimum(expected.resident_blocks, demand.blocks / H200.sm_count)
            assert kernel.default is not None
            fine = blocks * np.ceil(demand.threads / 32) >= 12
            fine &= expected.time_s <= kernel.default.time_s
            fine &= (demand.threads <= 256) | (
                SAFE_REGISTERS * demand.registers * demand.threads <= H200.registers_per_block
            )
            margin = UNSURE_MARGIN if kernel.keeps_default else 1.0
            assert kernel.objective <= margin * costs(expected, objective)[fine].min(initial=NEVER)


@pytest.mark.parametrize("name", ["gemm", "atax", "jacobi-2d", "mttkrp", "trmm"])
def test_a_choice_beats_the_default_by_its_margin(name: str) -> None:
    selection = selected(name)
    ours = [kernel for kernel in selection.kernels if not kernel.keeps_default]
    if not ours:
        return
    pairs = [(kernel.predicted, kernel.default) for kernel in selection.kernels]
    taken = sum(found.energy_j for found, _ in pairs if found is not None)
    usual = sum(default.energy_j for _, default in pairs if default is not None)
    if all(default is not None for _, default in pairs):
        assert usual >= MARGIN * taken or any(kernel.keeps_default for kernel in selection.kernels)
    for kernel in ours:
        found, default = kernel.predicted, kernel.default
        assert found is not None
        theirs = all(size == 32 for _, size in kernel.tile_sizes)  # exempt under any option
        if default is not None and not theirs:
            assert found.time_s <= default.time_s * 1.000001
        if found.threads > 256:
            assert SAFE_REGISTERS * found.registers * found.threads <= H200.registers_per_block


@pytest.mark.parametrize("limit", [0, 1000, 8192, 20_000])
def test_a_block_never_has_more_shared_memory_than_it_may(limit: int) -> None:
    selection = select_for(analysed("gemm"), H200, ModelOptions(shared_per_block_bytes=limit))
    assert selection.ppcg_options is not None
    assert selection.ppcg_options.max_shared_memory <= limit
    for kernel in selection.kernels:
        assert kernel.predicted is not None
        assert kernel.predicted.shared_bytes <= limit
        (usage,) = [usage for usage in kernel.usage if usage.name == "shared_per_block"]
        assert usage.available == selection.ppcg_options.max_shared_memory
