"""What is proven of generated code: no layout costs less than the bound of a box that has it."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.variant import Rewrites
from eatss.base.diagnostics import (
    Diagnostic,
    IllegalScheduleError,
    InternalError,
    IslFailedError,
)
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose import cuda
from eatss.choose.cuda import CudaChoice
from eatss.choose.cuda_space import _FEW, CudaSpace
from eatss.choose.objectives import NEVER
from eatss.choose.options import ModelOptions, SelectOptions
from eatss.choose.search import Effort, Sizes, search
from eatss.choose.select import DearerError
from eatss.lower.variants import kernel_variants_for
from eatss.session import session
from eatss.session.session import Session
from eatss.session.steps import run_cost, select_for
from tests.choose.cuda_kernels import analysed
from tests.choose.test_ppcg import BODIES, SMALL

SEARCH = Effort(gap=0.0, most_boxes=1_000_000)

BLUR = """void blur(float a[2050][2050], float c[2050][2050]) {
  float b[2050][2050];
#pragma scop
  for (int i = 0; i < 2050; i++)
    for (int j = 1; j < 2049; j++)
      b[i][j] = a[i][j - 1] + a[i][j] + a[i][j + 1];
  for (int i = 1; i < 2049; i++)
    for (int j = 1; j < 2049; j++)
      c[i][j] = b[i - 1][j] + b[i][j] + b[i + 1][j];
#pragma endscop
}
"""


def spaces(
    program: AnalysedProgram,
    card: GpuProfile,
    objective: str,
    slowest_s: float = inf,
    *,
    in_graph: bool = False,
) -> list[CudaSpace]:
    """Return the spaces of all variants of a program's kernels, with their layouts."""
    options, own = (
        ModelOptions(target="cuda", objective=objective),
        kernel_variants_for(program, card),
    )
    choices = (CudaChoice(one, own.get(one.name, ()), card, options) for one in program.facts)
    least = ((one, float(one.costs.min(initial=NEVER))) for one in choices)
    each = (one.searches(SEARCH, cost) for one, cost in least if cost < NEVER)
    return [
        CudaSpace(own.model, [own.offered], card, options, slowest_s, in_graph=in_graph)
        for several in each
        for own in (one.space for one in several)
        if isinstance(own, CudaSpace)
    ]


def keeps_bounds(space: CudaSpace, dice: np.random.Generator, count: int = _FEW + 1) -> int:
    """Check boxes of all widths around layouts; return how many layouts fit."""
    roots = [*zip(*space.root(), strict=True)]
    found = 0
    for spread in (0.0, 0.4, 1.0, 2.5):
        least, most = (
            np.array(own)
            for own in zip(
                *(roots[int(dice.integers(len(roots)))] for _ in range(count)), strict=True
            )
        )
        points = dice.integers(least, most + 1)
        near = space.points[dice.integers(0, len(space.points), count // 2)]
        for at, point in enumerate(near):  # the others are around those that are offered
            low, high = next(
                own for own in roots if (own[0] <= point).all() and (point <= own[1]).all()
            )
            least[at], most[at], points[at] = low, high, point
        wide = np.exp(dice.random((count, 1)) * spread)
        lows = np.maximum(least, (points / wide).astype(np.int64))
        highs = np.minimum(most, np.ceil(points * wide).astype(np.int64))
        inside = np.stack([points, *(dice.integers(lows, highs + 1) for _ in range(15))], axis=1)
        costs = space.costs(inside.reshape(-1, points.shape[1])).reshape(count, -1)
        shrunk = space.shrunk(lows, highs)
        fits: Any = (shrunk[0] <= shrunk[1]).all(axis=1)
        held = (inside >= shrunk[0][:, None]) & (inside <= shrunk[1][:, None])
        assert (costs[~held.all(axis=2)] == inf).all()
        bounds = space.bounds(*(own[fits] for own in shrunk))
        assert (bounds <= costs[fits].min(axis=1) * (1 + 1e-9)).all()
        found += int(np.isfinite(costs).sum())
    return found


@pytest.mark.parametrize(
    ("name", "dtype", "gpu"),
    [("syrk", "double", "h200"), ("mvt", "float", "a100"), ("conv-2d", "float", "v100"),
     ("trmm", "double", "xavier")],
)  # fmt: skip
def test_no_layout_of_a_box_costs_less_than_its_bound(name: str, dtype: str, gpu: str) -> None:
    dice = np.random.default_rng(7)
    program, card = analysed(name, dtype).program, load_profile(gpu)
    every = spaces(program, card, "energy", in_graph=gpu in ("a100", "xavier"))
    assert sum(keeps_bounds(space, dice) for space in every) > 0
    assert sum(keeps_bounds(space, dice, _FEW) for space in every) > 0  # by their ends alone


def test_no_box_of_parts_that_become_one_costs_less_than_its_bound() -> None:
    dice, source = np.random.default_rng(7), data_directory("kernels") / "gemver.c"
    fused = Session(source, rewrites=Rewrites(fused="sums"), code=True).symbolic.program
    every = spaces(fused, load_profile("h200"), "energy")
    assert any(
        own.across
        for one in every
        for launch in one.offered.variant.launches
        for own in launch.held
    )
    assert sum(keeps_bounds(space, dice) for space in every) > 0


def small_program(dice: np.random.Generator, folder: Path) -> AnalysedProgram:
    source = folder / "small.c"
    body = BODIES[int(dice.integers(len(BODIES)))]
    source.write_text(SMALL.format(n=int(dice.integers(3, 40)), body=body))
    return eatss.inspect(source, cut="eatss")


def every_point(space: CudaSpace) -> Sizes:
    """Return all vectors between those offered, at most so many of each kind."""
    found = []
    for low, high in zip(*space.root(), strict=True):
        if np.prod(high - low + 1.0) <= 50_000:
            ranges = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
            found.append(np.stack(np.meshgrid(*ranges), axis=-1).reshape(-1, len(low)))
        else:
            found.append(np.random.default_rng(0).integers(low, high + 1, (50_000, len(low))))
    return np.concatenate(found)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proven_holds_for_every_layout_of_small_programs(seed: int, tmp_path: Path) -> None:
    dice = np.random.default_rng(seed)
    card = replace(
        load_profile("h200"),
        sm_count=int(dice.integers(1, 200)),
        tdp_w=float(dice.integers(200, 900)),
    )
    objective = str(dice.choice(["energy", "time", "edp"]))
    in_graph = bool(dice.integers(2))
    for space in spaces(small_program(dice, tmp_path), card, objective, in_graph=in_graph):
        costs = space.costs(every_point(space))
        gap = float(dice.choice([0.02, 0.1]))
        found = search(space, space.points[:1], replace(SEARCH, gap=gap, children=0))
        assert found.bound <= costs.min() * (1 + 1e-9)
        assert found.bound >= (1 - gap) * found.cost * (1 - 1e-9)


def test_layouts_that_are_offered_cost_what_they_do_in_the_space() -> None:
    card, program = load_profile("h200"), analysed("mvt").program
    (facts, *_), own = program.facts, kernel_variants_for(program, card)
    choice = CudaChoice(facts, own[facts.name], card, ModelOptions(target="cuda"))
    searches = choice.searches(SEARCH, float(choice.costs.min()))
    every = [one.space for one in searches if isinstance(one.space, CudaSpace)]
    costs = np.concatenate([space.costs(space.points) for space in every])
    offered = np.sort(choice.costs[choice.costs < NEVER])
    np.testing.assert_allclose(np.sort(costs[costs < inf]), offered, rtol=1e-8)
    for space in every:
        again = space.layouts(space.points[-1:])
        assert again.at(0).tile_sizes == space.offered.at(len(space.offered) - 1).tile_sizes


def test_a_gap_that_is_asked_for_is_proven_and_the_layout_is_no_worse() -> None:
    program, card = analysed("syrk").program, load_profile("h200")
    (plain,) = select_for(program, card, ModelOptions(target="cuda")).kernels
    (found,) = select_for(program, card, ModelOptions(target="cuda", gap=0.05)).kernels
    assert (plain.bound, plain.optimal) == (0, "best found")
    assert found.objective <= plain.objective
    assert found.bound >= 0.95 * found.objective
    assert found.optimal == "proven"


def test_however_little_time_there_is_each_kernel_has_a_bound() -> None:
    program, card = analysed("atax").program, load_profile("h200")
    found = select_for(program, card, ModelOptions(target="cuda", timeout_s=1e-6)).kernels
    assert all(0 < one.bound <= one.objective for one in found)
    boxes = [one.boxes for one in found]
    longer = select_for(program, card, ModelOptions(target="cuda", gap=0.04)).kernels
    assert sum(one.boxes for one in longer) > sum(boxes)
    assert all(one.bound >= 0.96 * one.objective for one in longer)


def test_kernels_that_are_one_launch_are_compared_with_all_layouts_of_each_apart() -> None:
    card, own = load_profile("h200"), SelectOptions(target="cuda")
    plain = Session(data_directory("kernels") / "jacobi-2d.c").select(card, own)
    found = Session(data_directory("kernels") / "jacobi-2d.c").select(card, replace(own, gap=0.05))
    first, second = found.kernels
    assert first.time_tile == plain.kernels[0].time_tile
    assert first.time_tile is not None
    assert first.predicted is not None
    assert first.objective == pytest.approx(1e9 * first.predicted.energy_j, abs=1)
    assert 0.95 * first.objective <= first.bound <= first.objective
    assert (first.optimal, second.bound) == ("proven", 0)
    assert [one.objective for one in plain.kernels] == [first.objective, 0]


@pytest.mark.parametrize("kernel", ["durbin", "seidel-2d"])
def test_a_loop_that_one_block_runs_is_compared_with_all_layouts_of_its_launches(
    kernel: str,
) -> None:
    card, own = load_profile("h200"), SelectOptions(target="cuda", gap=0.05)
    found = Session(data_directory("kernels") / f"{kernel}.c").select(card, own)
    (block,) = (one for one in found.kernels if one.loop_block is not None)
    assert (block.optimal, block.bound) == ("proven", block.objective)
    assert block.boxes > 0


def test_a_run_that_costs_more_than_another_is_left_before_all_of_it_is_selected() -> None:
    program, card = analysed("conv-2d").program, load_profile("h200")
    options = ModelOptions(target="cuda")
    whole = select_for(program, card, options)
    cost = run_cost(whole)
    again = select_for(program, card, options, below=cost)
    assert [one.chosen() for one in again.kernels] == [one.chosen() for one in whole.kernels]
    with pytest.raises(DearerError, match="more than a run does otherwise"):
        select_for(program, card, options, below=cost // 2)


def test_an_array_is_left_out_only_where_the_card_stays_full_without(tmp_path: Path) -> None:
    source = tmp_path / "blur.c"
    source.write_text(BLUR)
    for file, needed in (source, False), (data_directory("kernels") / "fdtd-apml.c", True):
        arrays = Session(file).recomputable
        anew = Session(file)._with(Rewrites(recomputed=arrays))
        assert arrays
        assert all(anew.needs_anew((one,)) == needed for one in arrays)


@pytest.mark.parametrize(("objective", "least"), [("energy", 8.8), ("mine", 4.4)])
def test_bounds_of_kernels_add_up_where_costs_do(objective: Any, least: float) -> None:
    own = SelectOptions(target="cuda")
    (one, *_) = Session(data_directory("kernels") / "jacobi-2d.c").select("h200", own).kernels
    effort = SimpleNamespace(gap=0.0)
    apart: Any = SimpleNamespace(
        found=SimpleNamespace(bound=4.0, cost=4.0, boxes=1, points=1, seconds=0.0), effort=effort
    )
    options: Any = SimpleNamespace(objective=objective)
    found = cuda._bounded(
        replace(one, predicted=None, objective=100),
        cast("CudaChoice", None),
        [[apart]] * 2,
        options,
    )
    assert found.bound == int(least)


def test_a_fault_of_a_way_is_shown_and_a_refusal_drops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, raised = tmp_path / "blur.c", list[InternalError]()
    source.write_text(BLUR)

    def refused(*_: object) -> bool:
        raise raised[-1]

    monkeypatch.setattr(session, "keeps_loops", refused)
    finding = Diagnostic(code="EATSS-P901", message="some instances are lost")
    for error in (IllegalScheduleError(finding), IslFailedError(finding)):
        raised.append(error)
        assert not Session(source).select("h200", SelectOptions(target="cuda")).recomputed
    raised.append(InternalError(finding))
    with pytest.raises(InternalError):
        Session(source).select("h200", SelectOptions(target="cuda"))


def test_only_what_is_taken_of_a_program_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded: list[str] = []
    searches = CudaChoice.searches

    def counted(own: CudaChoice, *how: Any, **named: Any) -> Any:
        bounded.append(own.facts.name)
        return searches(own, *how, **named)

    monkeypatch.setattr(CudaChoice, "searches", counted)
    source = tmp_path / "blur.c"
    source.write_text(BLUR)
    options = SelectOptions(target="cuda", gap=0.1)
    found = Session(source).select("h200", options)
    assert [one.array for one in found.recomputed] == ["b"]
    assert found.options.gap == 0.1
    assert bounded == [one.name for one in found.kernels]
