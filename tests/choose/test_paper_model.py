"""The paper's model as a problem, its solution by Z3, and what is selected over the grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.diagnostics import ExitCode, InputError, InternalError, NoSolutionError
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose.options import Cell, ModelOptions
from eatss.choose.problem import (
    Conflict,
    Direction,
    Problem,
    Solution,
    build_problem,
    choose_block,
    require_fit,
)
from eatss.choose.select import select_program
from eatss.choose.selection import CellResult, KernelSelection
from eatss.choose.solver import solve

MakeFacts = Callable[..., KernelFacts]

HALF = Cell(split=0.5, warp_fraction=0.5)
OPTIONS = ModelOptions(model="paper")


def limit(problem: Problem, name: str) -> int:
    return next(c.limit for c in problem.constraints if c.name == name)


def expression(problem: Problem, name: str) -> str:
    return str(next(c.expression for c in problem.constraints if c.name == name))


def names(problem: Problem) -> list[str]:
    return [c.name for c in problem.constraints]


def test_matmul_has_the_constraints_of_section_iv_a(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem([matmul], ga100, HALF, OPTIONS)
    assert expression(problem, "registers") == "6*T_i*T_j"
    assert expression(problem, "l1") == "T_i*T_j + T_j*T_k"
    assert expression(problem, "shared_per_sm") == "T_i*T_k"
    assert limit(problem, "registers") == 65536
    assert limit(problem, "l1") == limit(problem, "shared_per_sm") == 96 * 1024 // 8


def test_sizes_are_multiples_of_the_alignment_up_to_the_threads_of_a_block(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    variable = build_problem([matmul], ga100, HALF, OPTIONS).variables[0]
    assert (variable.step, variable.lower, variable.upper) == (16, 16, 1024)


@pytest.mark.parametrize(
    ("trips", "bounds"),
    [(100, (16, 96)), (16, (16, 16)), (15, (15, 15)), (1, (1, 1)), (5000, (16, 1024))],
)
def test_known_trip_counts_bound_sizes_and_short_loops_stay_untiled(
    ga100: GpuProfile, matmul_with: MakeFacts, trips: int, bounds: tuple[int, int]
) -> None:
    variable = build_problem([matmul_with(trips)], ga100, HALF, OPTIONS).variables[0]
    assert (variable.lower, variable.upper) == bounds
    assert variable.step == min(trips, 16)


def test_without_a_split_every_reference_goes_through_l1(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem([matmul], ga100, Cell(split=0.0, warp_fraction=0.5), OPTIONS)
    assert names(problem) == ["l1", "l2", "registers"]
    assert expression(problem, "l1") == "T_i*T_j + T_i*T_k + T_j*T_k"
    assert limit(problem, "l1") == 192 * 1024 // 8


def test_a_full_split_puts_the_l2_share_in_the_place_of_l1(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem([matmul], ga100, Cell(split=1.0, warp_fraction=0.5), OPTIONS)
    assert names(problem) == ["l2_share", "shared_per_sm", "shared_per_block", "l2", "registers"]
    assert limit(problem, "l2_share") == (40 << 20) // 108 // 8
    assert expression(problem, "l2_share") == "T_i*T_j + T_j*T_k"


def test_shared_memory_is_bounded_by_what_an_sm_and_a_block_may_have(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    full = Cell(split=1.0, warp_fraction=0.5)
    problem = build_problem([matmul], ga100, full, OPTIONS)
    assert limit(problem, "shared_per_sm") == 164 * 1024 // 8
    assert limit(problem, "shared_per_block") == 48 * 1024 // 8
    opted = ModelOptions(model="paper", shared_per_block_bytes=163 * 1024)
    assert limit(build_problem([matmul], ga100, full, opted), "shared_per_block") == 163 * 1024 // 8


def test_a_block_is_made_of_the_first_three_parallel_loops(
    ga100: GpuProfile, facts_of: MakeFacts
) -> None:
    facts = facts_of(
        loops=[(name, True, None) for name in "abcd"],
        references=[("A[a][b][c][d]", Memory.L1, Polynomial.product("abcd"))],
        cma="d",
        stride_one={"d": 1},
    )
    problem = build_problem([facts], ga100, HALF, OPTIONS)
    assert expression(problem, "registers") == "2*T_a*T_b*T_c"
    assert str(problem.objective) == "T_a*T_b*T_c + 16*T_d"


def test_in_two_dimensions_the_serial_loop_is_weighted_and_the_parallel_one_is_not(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    problem = build_problem([nests["mvt"]()], ga100, HALF, OPTIONS)
    assert str(problem.objective) == "T_i + 2*T_j"


def test_ties_prefer_the_cma_loop_then_small_serial_loops_then_the_smallest_vector(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem([matmul], ga100, HALF, OPTIONS)
    assert problem.preference == (
        ("j", Direction.LARGER),
        ("k", Direction.SMALLER),
        ("i", Direction.SMALLER),
    )


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"model": "magic"}, "EATSS-C004"),
        ({"split": -0.1}, "EATSS-C004"),
        ({"split": 1.1}, "EATSS-C004"),
        ({"split": float("nan")}, "EATSS-C004"),
        ({"warp_fraction": 0.0}, "EATSS-C004"),
        ({"warp_fraction": 2.0}, "EATSS-C004"),
        ({"timeout_s": 0.0}, "EATSS-C004"),
        ({"shared_per_block_bytes": -1}, "EATSS-C004"),
        ({"element_bytes": 0}, "EATSS-C004"),
        ({"split": "auto"}, "EATSS-C004"),
        ({"element_bytes": 4.5}, "EATSS-C004"),
    ],
)
def test_options_out_of_range_are_the_users_mistake(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        ModelOptions(**options)
    assert caught.value.code == code


PAPER = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)


def test_the_papers_example_is_selected(ga100: GpuProfile, matmul: KernelFacts) -> None:
    kernel = select_program([matmul], ga100, PAPER).kernels[0]
    assert kernel.tile_sizes == (("i", 16), ("j", 384), ("k", 16))
    assert (kernel.objective, kernel.optimal) == (18432, "proven")
    assert kernel.objective_formula == "T_i*T_j + 32*T_j"
    assert kernel.weights == (("i", 0), ("j", 32), ("k", 0))
    assert (kernel.split_factor, kernel.warp_fraction, kernel.alignment) == (0.5, 0.5, 16)
    assert [r.memory for r in kernel.references] == ["l1", "shared", "l1"]
    assert kernel.note is None


@pytest.mark.parametrize(
    ("options", "cells"),
    [(ModelOptions(model="paper", split=0.5), 4)],
)
def test_the_grid_is_ranked_by_traffic_and_lists_the_next_three(
    options: ModelOptions, cells: int, ga100: GpuProfile, matmul: KernelFacts
) -> None:
    kernel = select_program([matmul], ga100, options).kernels[0]
    entries = []
    for cell in options.cells:
        problem = build_problem([matmul], ga100, cell, options)
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
    kernel = select_program([nests["heat"]()], ga100, ModelOptions(model="paper")).kernels[0]
    assert kernel.dropped
    assert len(kernel.dropped) + len([kernel, *kernel.alternatives]) <= kernel.cells == 24
    for cell in kernel.dropped:
        problem = build_problem(
            [nests["heat"]()],
            ga100,
            Cell(split=cell.split_factor, warp_fraction=cell.warp_fraction),
            ModelOptions(model="paper"),
        )
        assert isinstance(solve(problem), Conflict)
        assert "at least" in cell.reason


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


def test_one_vector_serves_every_kernel(
    ga100: GpuProfile, matmul_with: MakeFacts, nests: dict[str, MakeFacts]
) -> None:
    kernels = [matmul_with(name="one"), nests["mvt"](), matmul_with(4000, name="two")]
    selection = select_program(
        kernels, ga100, ModelOptions(model="paper", uniform=True, split=0.5, warp_fraction=0.5)
    )
    vector = selection.uniform_sizes
    assert vector is not None
    assert len(vector) == 3
    for kernel in selection.kernels:
        assert tuple(size for _, size in kernel.tile_sizes) == vector[: len(kernel.loops)]
        assert all(usage.used <= usage.available for usage in kernel.usage)
        assert kernel.optimal == "proven"


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


HALF = Cell(split=0.5, warp_fraction=0.5)
AS_PUBLISHED = ModelOptions(model="paper")


def solved(problem: Problem, **arguments: object) -> Solution:
    answer = solve(problem, **arguments)  # type: ignore[arg-type]
    assert isinstance(answer, Solution)
    return answer


def test_matmul_on_ga100_matches_the_paper(ga100: GpuProfile, matmul: KernelFacts) -> None:
    solution = solved(build_problem([matmul], ga100, HALF, AS_PUBLISHED))
    assert solution.values == (("i", 16), ("j", 384), ("k", 16))
    assert solution.objective == 18432
    assert solution.proven


def test_a_conflict_names_its_constraint_in_the_users_terms(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    options = ModelOptions(model="paper", shared_per_block_bytes=4096)
    answer = solve(build_problem([matmul], ga100, Cell(split=0.5, warp_fraction=1.0), options))
    assert isinstance(answer, Conflict)
    assert answer.constraints == ("shared_per_block",)
    assert answer.message == (
        "shared memory: 1 reference needs at least 8 KiB, the card has 4 KiB a block"
    )
    assert answer.excess == 2.0


def test_when_time_is_over_the_best_found_is_never_called_proven(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem([matmul], ga100, HALF, AS_PUBLISHED)
    with pytest.raises(NoSolutionError, match="time ran out"):
        solve(problem, timeout_s=1e-9)
    solution = solved(problem, timeout_s=1e-9, found=[{"i": 16, "j": 32, "k": 16}])
    assert solution.values == (("i", 16), ("j", 32), ("k", 16))
    assert not solution.proven
    assert solution.objective == problem.objective.evaluate(dict(solution.values))


def test_a_wrong_answer_is_caught(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem([matmul], ga100, HALF, AS_PUBLISHED)
    for wrong in ({"i": 17, "j": 16, "k": 16}, {"i": 1024, "j": 1024, "k": 1024}):
        with pytest.raises(InternalError):
            require_fit(problem, wrong)


def test_threads_solve_side_by_side(ga100: GpuProfile, nests: dict[str, MakeFacts]) -> None:
    problems = [
        build_problem(
            [make(512)], ga100, Cell(split=0.5, warp_fraction=0.25), ModelOptions(model="paper")
        )
        for make in nests.values()
    ] * 2
    alone = [solved(p) for p in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(solved, problems))
    assert together == alone
