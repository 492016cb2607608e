"""The problem of one kernel: bounds, limits, objective, order of preference."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from eatss.analysis.facts import KernelFacts, Memory, VolumeKind
from eatss.base.diagnostics import InputError
from eatss.base.polynomial import Polynomial
from eatss.base.text import bytes_text
from eatss.cards.profile import GpuProfile
from eatss.choose import Cell, Direction, ModelOptions, Problem, build_problem
from eatss.choose.options import exact
from eatss.choose.problem import inner_extent, precision_factor, weights
from eatss.polyhedral.kernel import Loop

MakeFacts = Callable[..., KernelFacts]

HALF = Cell(split=0.5, warp_fraction=0.5)
OPTIONS = ModelOptions(model="eatss")


def limit(problem: Problem, name: str) -> int:
    return next(c.limit for c in problem.constraints if c.name == name)


def expression(problem: Problem, name: str) -> str:
    return str(next(c.expression for c in problem.constraints if c.name == name))


def names(problem: Problem) -> list[str]:
    return [c.name for c in problem.constraints]


def test_matmul_has_the_constraints_of_section_iv_a(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, HALF, OPTIONS)
    assert expression(problem, "registers") == "6*T_i*T_j"
    assert expression(problem, "l1") == "T_i*T_j + T_j*T_k"
    assert expression(problem, "shared_per_sm") == "T_i*T_k"
    assert limit(problem, "registers") == 65536
    assert limit(problem, "l1") == limit(problem, "shared_per_sm") == 96 * 1024 // 8


def test_matmul_weights_are_those_of_section_iv_k(matmul: KernelFacts) -> None:
    assert weights(matmul, 16) == (("i", 0), ("j", 32), ("k", 0))


def test_single_precision_doubles_the_elements_and_halves_the_registers(
    ga100: GpuProfile, matmul_with: MakeFacts
) -> None:
    problem = build_problem(matmul_with(element_bytes=4), ga100, HALF, OPTIONS)
    assert expression(problem, "registers") == "3*T_i*T_j"
    assert limit(problem, "l1") == 96 * 1024 // 4


def test_element_width_can_be_overridden(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, HALF, ModelOptions(model="eatss", element_bytes=4))
    assert limit(problem, "l1") == 96 * 1024 // 4


@pytest.mark.parametrize(("size", "factor"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_precision_factor_counts_registers(size: int, factor: int) -> None:
    assert precision_factor(size) == factor


@pytest.mark.parametrize(
    ("fraction", "alignment"), [(1.0, 32), (0.5, 16), (0.25, 8), (0.125, 4), (0.01, 1)]
)
def test_alignment_is_a_fraction_of_a_warp(
    ga100: GpuProfile, fraction: float, alignment: int
) -> None:
    assert Cell(split=0.5, warp_fraction=fraction).alignment(ga100) == alignment


def test_sizes_are_multiples_of_the_alignment_up_to_the_threads_of_a_block(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    variable = build_problem(matmul, ga100, HALF, OPTIONS).variables[0]
    assert (variable.step, variable.lower, variable.upper) == (16, 16, 1024)


@pytest.mark.parametrize(
    ("trips", "bounds"),
    [(100, (16, 96)), (16, (16, 16)), (15, (15, 15)), (1, (1, 1)), (5000, (16, 1024))],
)
def test_known_trip_counts_bound_sizes_and_short_loops_stay_untiled(
    ga100: GpuProfile, matmul_with: MakeFacts, trips: int, bounds: tuple[int, int]
) -> None:
    variable = build_problem(matmul_with(trips), ga100, HALF, OPTIONS).variables[0]
    assert (variable.lower, variable.upper) == bounds
    assert ("untiled" in variable.reason) == (trips < 16)


def test_split_factors_are_taken_as_written(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, Cell(split=0.67, warp_fraction=0.5), OPTIONS)
    combined = 192 * 1024
    assert limit(problem, "shared_per_sm") == combined * 67 // 100 // 8
    assert limit(problem, "l1") == combined * 33 // 100 // 8
    assert exact(0.67) == Fraction(67, 100)


def test_without_a_split_every_reference_goes_through_l1(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem(matmul, ga100, Cell(split=0.0, warp_fraction=0.5), OPTIONS)
    assert names(problem) == ["l1", "l2", "registers"]
    assert expression(problem, "l1") == "T_i*T_j + T_i*T_k + T_j*T_k"
    assert limit(problem, "l1") == 192 * 1024 // 8


def test_a_full_split_puts_the_l2_share_in_the_place_of_l1(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem(matmul, ga100, Cell(split=1.0, warp_fraction=0.5), OPTIONS)
    assert names(problem) == ["l2_share", "shared_per_sm", "shared_per_block", "l2", "registers"]
    assert limit(problem, "l2_share") == (40 << 20) // 108 // 8
    assert expression(problem, "l2_share") == "T_i*T_j + T_j*T_k"


def test_shared_memory_is_bounded_by_what_an_sm_and_a_block_may_have(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    full = Cell(split=1.0, warp_fraction=0.5)
    problem = build_problem(matmul, ga100, full, OPTIONS)
    assert limit(problem, "shared_per_sm") == 164 * 1024 // 8
    assert limit(problem, "shared_per_block") == 48 * 1024 // 8
    opted = ModelOptions(model="eatss", shared_per_block_bytes=163 * 1024)
    assert limit(build_problem(matmul, ga100, full, opted), "shared_per_block") == 163 * 1024 // 8


def test_no_more_shared_memory_can_be_asked_for_than_the_card_gives(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    with pytest.raises(InputError) as caught:
        build_problem(
            matmul, ga100, HALF, ModelOptions(model="eatss", shared_per_block_bytes=200 * 1024)
        )
    assert caught.value.code == "EATSS-M001"


def test_a_block_is_made_of_the_first_three_parallel_loops(
    ga100: GpuProfile, facts_of: MakeFacts
) -> None:
    facts = facts_of(
        loops=[(name, True, None) for name in "abcd"],
        references=[("A[a][b][c][d]", Memory.L1, Polynomial.product("abcd"))],
        cma="d",
        stride_one={"d": 1},
    )
    problem = build_problem(facts, ga100, HALF, OPTIONS)
    assert expression(problem, "registers") == "2*T_a*T_b*T_c"
    assert str(problem.objective) == "T_a*T_b*T_c + 16*T_d"


def test_in_two_dimensions_the_serial_loop_is_weighted_and_the_parallel_one_is_not(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    problem = build_problem(nests["mvt"](), ga100, HALF, OPTIONS)
    assert str(problem.objective) == "T_i + 2*T_j"


def test_in_one_dimension_the_cma_loop_keeps_its_weight(
    ga100: GpuProfile, facts_of: MakeFacts
) -> None:
    facts = facts_of(
        loops=[("i", True, None)],
        references=[("A[i]", Memory.L1, Polynomial.product("i"))],
        cma="i",
        stride_one={"i": 3},
    )
    problem = build_problem(facts, ga100, HALF, OPTIONS)
    assert str(problem.objective) == f"{1 + 3 * 16}*T_i"


def test_preference_names_every_variable_once(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    for make in nests.values():
        problem = build_problem(make(), ga100, HALF, OPTIONS)
        assert sorted(n for n, _ in problem.preference) == sorted(v.name for v in problem.variables)


def test_ties_prefer_the_cma_loop_then_small_serial_loops_then_the_smallest_vector(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem(matmul, ga100, HALF, OPTIONS)
    assert problem.preference == (
        ("j", Direction.LARGER),
        ("k", Direction.SMALLER),
        ("i", Direction.SMALLER),
    )


@pytest.mark.parametrize(("trips", "size"), [(3, 3), (16, 16), (17, 1), (None, 1)])
def test_short_inner_loops_count_whole_and_long_ones_stream(trips: int | None, size: int) -> None:
    assert inner_extent(Loop(name="r", parallel=False, trip_count=trips), 16) == size


def test_the_papers_model_refuses_footprints(ga100: GpuProfile, matmul_with: MakeFacts) -> None:
    facts = matmul_with(kind=VolumeKind.FOOTPRINT)
    with pytest.raises(InputError) as caught:
        build_problem(facts, ga100, HALF, ModelOptions(model="paper"))
    assert caught.value.code == "EATSS-M001"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"model": "magic"}, "EATSS-M001"),
        ({"split": -0.1}, "EATSS-M001"),
        ({"split": 1.1}, "EATSS-M001"),
        ({"split": float("nan")}, "EATSS-M001"),
        ({"warp_fraction": 0.0}, "EATSS-M001"),
        ({"warp_fraction": 2.0}, "EATSS-M001"),
        ({"timeout_s": 0.0}, "EATSS-M001"),
        ({"shared_per_block_bytes": -1}, "EATSS-M001"),
        ({"element_bytes": 0}, "EATSS-M001"),
        ({"split": "auto"}, "EATSS-M001"),
        ({"element_bytes": 4.5}, "EATSS-M001"),
    ],
)
def test_options_out_of_range_are_the_users_mistake(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        ModelOptions(**options)
    assert caught.value.code == code


def test_the_automatic_grid_has_24_cells_and_a_fixed_one_has_one() -> None:
    assert len(ModelOptions().cells) == 24
    assert ModelOptions(model="eatss", split=0.5, warp_fraction=0.5).cells == (HALF,)
    assert len(ModelOptions(model="eatss", split=0.5).cells) == 4


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (48 << 10, "48 KiB"),
        (40 << 20, "40 MiB"),
        (1000, "1000 bytes"),
        (1536, "1.5 KiB"),
        (1 << 90, "over a million TiB"),
    ],
)
def test_sizes_read_as_people_say_them(size: int, text: str) -> None:
    assert bytes_text(size) == text
