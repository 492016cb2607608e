"""Sizes for PPCG: what it can parse, blocks that launch, the best by prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import islpy as isl
import numpy as np
import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.polynomial import Polynomial
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose import ModelOptions, PpcgOptions, Selection, select_program
from eatss.choose.objectives import costs
from eatss.choose.options import ObjectiveName
from eatss.choose.ppcg import candidates, offered
from eatss.cost.ppcg_model import PpcgModel
from eatss.session.steps import select_for

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
        kernels, ga100, ModelOptions(model="eatss", split=0.5, warp_fraction=0.25)
    )
    sizes = parse(selection.ppcg_sizes)
    assert set(sizes) == {("tile", 0), ("block", 0), ("tile", 2), ("block", 2)}
    assert len(sizes["tile", 0]) == 4
    assert len(sizes["block", 0]) == 3
    assert len(sizes["block", 2]) == 2


KERNELS = data_directory("kernels")
H200 = load_profile("h200")
SETTINGS = (8192, 0, 16384, 32768, 49152)
"""Of ``--max-shared-memory``, PPCG's own first (docs/model-internals.md, what is chosen from)."""


def options(shared_bytes: int, *, unroll: bool = False) -> PpcgOptions:
    return PpcgOptions(max_shared_memory=shared_bytes, unroll_gpu_tile=unroll)


@cache
def analysed(name: str) -> AnalysedProgram:
    return eatss.inspect(KERNELS / f"{name}.c")


@cache
def selected(name: str, objective: ObjectiveName = "energy") -> Selection:
    return select_for(analysed(name), H200, ModelOptions(objective=objective))


def least_cost(name: str, objective: ObjectiveName, profile: GpuProfile) -> tuple[int, int]:
    """Return the least cost of a program of one kernel within the limits, and the default's.

    By the words of docs/model-internals.md: faster by 1.15, as many warps as the default or 12,
    registers for blocks of more than 256 threads.
    """
    (facts,) = analysed(name).facts
    model = PpcgModel.of(facts, profile)
    vectors = offered(model.kernel)
    found, usual = [], None
    for limit in SETTINGS:
        columns = candidates(model.kernel, vectors, options(limit))
        demand, expected = model.columns(columns)
        cost = costs(expected, objective)
        blocks = np.minimum(expected.resident_blocks, demand.blocks / profile.sm_count)
        warps = blocks * np.ceil(demand.threads / 32)
        if usual is None:
            usual = int(cost[0]), float(expected.time_s[0]), float(warps[0])
        fine = expected.time_s <= usual[1] / 1.15
        fine &= warps >= min(12.0, usual[2])
        fits = 1.1 * demand.registers * demand.threads <= profile.registers_per_block
        fine &= (demand.threads <= 256) | fits
        found += cost[fine].tolist()
    assert usual is not None
    return min(found, default=usual[0]), usual[0]


@pytest.mark.parametrize("objective", ["energy", "edp"])
@pytest.mark.parametrize("name", ["gemm", "seidel-2d"])
def test_the_selected_sizes_are_the_best_of_all(name: str, objective: ObjectiveName) -> None:
    (kernel,) = selected(name, objective).kernels
    if not kernel.tile_sizes and kernel.keeps_default:
        assert name == "seidel-2d"  # runs in one thread
        return
    least, usual = least_cost(name, objective, H200)
    assert kernel.objective == (usual if kernel.keeps_default else least)
    assert kernel.keeps_default == (usual < 1.25 * least)


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
        assert usual >= 1.25 * taken or any(kernel.keeps_default for kernel in selection.kernels)
    for kernel in ours:
        found, default = kernel.predicted, kernel.default
        assert found is not None
        theirs = all(size == 32 for _, size in kernel.tile_sizes)  # exempt under any option
        if default is not None and not theirs:
            assert found.time_s <= default.time_s / 1.15 * 1.000001
        if found.threads > 256:
            assert 1.1 * found.registers * found.threads <= H200.registers_per_block


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
