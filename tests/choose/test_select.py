"""Kernels and programs: the grid, its ranking, kernels without loops, failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.diagnostics import ExitCode, NoSolutionError
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose import (
    Cell,
    Conflict,
    KernelSelection,
    ModelOptions,
    Solution,
    build_problem,
    select_kernel,
    select_program,
    solve,
)
from eatss.choose.problem import choose_block, max_launchable_threads
from eatss.choose.select import traffic
from eatss.choose.selection import CellResult

MakeFacts = Callable[..., KernelFacts]

PAPER = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)


def test_the_papers_example_is_selected(ga100: GpuProfile, matmul: KernelFacts) -> None:
    kernel = select_kernel(matmul, ga100, PAPER)
    assert kernel.tile_sizes == (("i", 16), ("j", 384), ("k", 16))
    assert (kernel.objective, kernel.optimal) == (18432, "proven")
    assert kernel.objective_formula == "T_i*T_j + 32*T_j"
    assert kernel.weights == (("i", 0), ("j", 32), ("k", 0))
    assert (kernel.split_factor, kernel.warp_fraction, kernel.alignment) == (0.5, 0.5, 16)
    assert [r.memory for r in kernel.references] == ["l1", "shared", "l1"]
    assert kernel.note is None


def test_usage_counts_what_the_tile_uses_and_says_what_binds(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    usage = {u.name: u for u in select_kernel(matmul, ga100, PAPER).usage}
    assert (usage["l1"].used, usage["l1"].available) == (2 * 16 * 384 * 8, 96 * 1024)
    assert (usage["shared_per_block"].used, usage["shared_per_block"].available) == (
        16 * 16 * 8,
        48 * 1024,
    )
    assert (usage["registers"].used, usage["registers"].available) == (16 * 384 * 6, 65536)
    assert {u.name for u in usage.values() if u.binding} == {"l1", "registers"}
    assert usage["l1"].unit == "bytes"


@pytest.mark.parametrize(
    ("options", "cells"),
    [
        (ModelOptions(model="eatss", split=0.5), 4),
        pytest.param(ModelOptions(model="eatss"), 24, marks=pytest.mark.long),
    ],
    ids=["one split", "every split"],
)
def test_the_grid_is_ranked_by_traffic_and_lists_the_next_three(
    options: ModelOptions, cells: int, ga100: GpuProfile, matmul: KernelFacts
) -> None:
    kernel = select_kernel(matmul, ga100, options)
    entries = []
    for cell in options.cells:
        problem = build_problem(matmul, ga100, cell, options)
        answer = solve(problem)
        assert isinstance(answer, Solution)
        sizes = dict(answer.values)
        flow = Fraction(
            sizes["i"] * sizes["j"] + sizes["i"] * sizes["k"] + sizes["k"] * sizes["j"],
            sizes["i"] * sizes["j"] * sizes["k"],
        )
        entries.append((flow, -answer.objective, -cell.warp_fraction, cell.split, answer.values))
    entries.sort()
    listed: list[KernelSelection | CellResult] = [kernel, *kernel.alternatives]
    assert len(listed) == 4
    for entry, given in zip(entries, listed, strict=False):
        assert given.tile_sizes == entry[4]
        assert given.traffic == float(entry[0])
        assert (given.split_factor, given.warp_fraction) == (entry[3], -entry[2])
    assert kernel.cells == cells


def test_infeasible_cells_are_dropped_with_their_reason(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    kernel = select_kernel(nests["heat"](), ga100, ModelOptions(model="eatss"))
    assert kernel.dropped
    assert len(kernel.dropped) + len([kernel, *kernel.alternatives]) <= kernel.cells == 24
    for cell in kernel.dropped:
        problem = build_problem(
            nests["heat"](),
            ga100,
            Cell(split=cell.split_factor, warp_fraction=cell.warp_fraction),
            ModelOptions(model="eatss"),
        )
        assert isinstance(solve(problem), Conflict)
        assert "at least" in cell.reason


def test_traffic_counts_inner_loops_on_both_sides(nests: dict[str, MakeFacts]) -> None:
    facts = nests["conv"](taps=3)
    sizes = {"n": 4, "k": 4, "h": 8, "w": 8, "r": 3, "s": 3}
    elements = 4 * 4 * 8 * 8 + 4 * 10 * 10 + 4 * 3 * 3
    assert traffic(facts, 4, sizes) == Fraction(elements, 4 * 4 * 8 * 8 * 9)


def test_equal_input_gives_equal_output(ga100: GpuProfile, nests: dict[str, MakeFacts]) -> None:
    kernels = [make(1000) for make in nests.values()]
    options = ModelOptions(model="eatss", split=0.5, warp_fraction=0.25)
    first = select_program(kernels, ga100, options)
    again = select_program(kernels, ga100, options)
    assert first == again
    assert hash(first) == hash(again)


def test_threads_select_the_same(ga100: GpuProfile, nests: dict[str, MakeFacts]) -> None:
    kernels = [make(1000) for make in nests.values()]
    options = ModelOptions(model="eatss", split=0.5, warp_fraction=0.25)
    alone = select_program(kernels, ga100, options)
    with ThreadPoolExecutor(4) as pool:
        for other in pool.map(lambda _: select_program(kernels, ga100, options), range(4)):
            assert other == alone


def test_a_kernel_without_loops_runs_in_one_thread(ga100: GpuProfile, facts_of: MakeFacts) -> None:
    facts = facts_of(loops=[], references=[("s[0]", Memory.L1, Polynomial.constant(1))])
    kernel = select_kernel(facts, ga100, ModelOptions(model="eatss"))
    assert (kernel.tile_sizes, kernel.objective, kernel.optimal) == ((), 0, "proven")
    assert kernel.solver_calls == 0
    assert kernel.note is not None
    assert "one thread" in kernel.note
    assert kernel.threads_per_block == 1
    assert (
        select_program([facts], ga100, ModelOptions(model="eatss", uniform=True)).uniform_sizes
        is None
    )


def test_a_program_without_a_solution_reports_every_kernel(
    profile_with: Callable[..., GpuProfile], matmul_with: MakeFacts, nests: dict[str, MakeFacts]
) -> None:
    card = profile_with(registers_per_sm=10)
    kernels = [matmul_with(name="first"), nests["mvt"](), matmul_with(name="second")]
    with pytest.raises(NoSolutionError) as caught:
        select_program(kernels, card, PAPER)
    assert [d.code for d in caught.value.diagnostics] == ["EATSS-M020"] * 3
    assert caught.value.exit_code is ExitCode.NO_SOLUTION
    assert "kernel first" in caught.value.diagnostics[0].message
    assert "registers" in caught.value.diagnostics[0].message


def test_without_any_feasible_cell_the_least_demanding_one_is_named(
    profile_with: Callable[..., GpuProfile], matmul: KernelFacts
) -> None:
    card = profile_with(registers_per_sm=95)
    with pytest.raises(NoSolutionError) as caught:
        select_kernel(matmul, card, ModelOptions(model="eatss"))
    message = caught.value.diagnostics[0].message
    # 3 references × 2 registers × 4 × 4 points is the least there can be
    assert "at least 96 registers, the card has 95 an SM" in message
    assert "warp fraction 0.125" in message


def test_when_time_is_over_sizes_are_best_found(ga100: GpuProfile, matmul: KernelFacts) -> None:
    selection = select_program([matmul], ga100, ModelOptions(model="eatss", timeout_s=1e-9))
    kernel = selection.kernels[0]
    assert kernel.optimal == selection.optimal == "best found"
    assert kernel.tile_sizes


def test_one_vector_serves_every_kernel(
    ga100: GpuProfile, matmul_with: MakeFacts, nests: dict[str, MakeFacts]
) -> None:
    kernels = [matmul_with(name="one"), nests["mvt"](), matmul_with(4000, name="two")]
    selection = select_program(
        kernels, ga100, ModelOptions(model="eatss", uniform=True, split=0.5, warp_fraction=0.5)
    )
    vector = selection.uniform_sizes
    assert vector is not None
    assert len(vector) == 3
    for kernel in selection.kernels:
        assert tuple(size for _, size in kernel.tile_sizes) == vector[: len(kernel.loops)]
        assert all(usage.used <= usage.available for usage in kernel.usage)
        assert kernel.optimal == "proven"


def test_under_one_vector_a_short_loop_is_one_tile_and_does_not_bound_the_others(
    ga100: GpuProfile, matmul_with: MakeFacts
) -> None:
    kernels = [
        matmul_with(name="long"),
        matmul_with(name="short", loops=[("i", True, 5), ("j", True, None), ("k", False, None)]),
    ]
    selection = select_program(
        kernels, ga100, ModelOptions(model="eatss", uniform=True, split=0.5, warp_fraction=0.5)
    )
    assert selection.uniform_sizes is not None
    assert selection.kernel("long").tile_size("i") == selection.uniform_sizes[0] >= 16
    assert selection.kernel("short").tile_size("i") == 5


def test_the_program_has_no_common_vector_where_one_kernel_has_none(
    profile_with: Callable[..., GpuProfile], nests: dict[str, MakeFacts]
) -> None:
    card = profile_with(l1_shared_bytes=64 * 1024)
    options = ModelOptions(model="eatss", uniform=True, split=0.5, warp_fraction=1.0)
    select_program([nests["mvt"]()], card, options)
    with pytest.raises(NoSolutionError) as caught:
        select_program([nests["mvt"](), nests["heat"]()], card, options)
    assert "heat: " in caught.value.diagnostics[0].message


def test_the_element_type_is_named(ga100: GpuProfile, matmul_with: MakeFacts) -> None:
    assert select_program([matmul_with(element_bytes=4)], ga100, PAPER).dtype == "float"
    assert select_program([matmul_with()], ga100, PAPER).dtype == "double"
    assert select_program([matmul_with()], ga100, PAPER, dtype="int64").dtype == "int64"


def test_no_more_threads_than_launch_with_the_most_registers(
    ga100: GpuProfile, profile_with: Callable[..., GpuProfile]
) -> None:
    assert max_launchable_threads(ga100) == 256
    assert max_launchable_threads(profile_with(registers_per_block=32768)) == 128
    assert max_launchable_threads(profile_with(registers_per_thread=32)) == 1024


@pytest.mark.parametrize(
    ("tiles", "block"),
    [
        ((16, 384), (4, 64)),
        ((32, 32), (8, 32)),
        ((1024, 4), (64, 4)),
        ((5, 7), (5, 7)),
        ((16, 16), (16, 16)),
        ((1, 1), (1, 1)),
    ],
)
def test_blocks_divide_the_tile_and_fill_a_warp_along_x(
    ga100: GpuProfile, matmul: KernelFacts, tiles: tuple[int, int], block: tuple[int, int]
) -> None:
    sizes = dict(zip("ijk", (*tiles, 16), strict=True))
    assert choose_block(matmul, sizes, ga100) == (("i", block[0]), ("j", block[1]))


def test_every_block_divides_its_tile_and_launches(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    for tiles in itertools.product([3, 4, 24, 160, 1024], repeat=3):
        block = choose_block(nests["heat"](), dict(zip("ijk", tiles, strict=True)), ga100)
        threads = 1
        for (_, size), tile in zip(block, tiles, strict=True):
            assert tile % size == 0
            threads *= size
        assert threads <= 256


def test_only_leading_parallel_loops_map_to_threads(ga100: GpuProfile, facts_of: MakeFacts) -> None:
    facts = facts_of(
        loops=[("i", True, None), ("j", False, None), ("k", True, None)],
        references=[("A[i][j][k]", Memory.L1, Polynomial.product("ijk"))],
        cma="k",
        stride_one={"k": 1},
    )
    assert choose_block(facts, {"i": 32, "j": 32, "k": 32}, ga100) == (("i", 32),)
