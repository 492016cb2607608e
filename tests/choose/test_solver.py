"""Z3's answers: the paper's example, ties, conflicts, time limits, threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from eatss.analysis.facts import KernelFacts
from eatss.base.diagnostics import InternalError, NoSolutionError
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose import (
    Cell,
    Conflict,
    Constraint,
    Direction,
    ModelOptions,
    Problem,
    Solution,
    Variable,
    build_problem,
    solve,
)
from eatss.choose.problem import fits, is_monotone
from eatss.choose.solver import enumerate_best

MakeFacts = Callable[..., KernelFacts]

HALF = Cell(split=0.5, warp_fraction=0.5)
PAPER = ModelOptions(model="paper")


def solved(problem: Problem, **arguments: object) -> Solution:
    answer = solve(problem, **arguments)  # type: ignore[arg-type]
    assert isinstance(answer, Solution)
    return answer


def test_matmul_on_ga100_matches_the_paper(ga100: GpuProfile, matmul: KernelFacts) -> None:
    solution = solved(build_problem(matmul, ga100, HALF, PAPER))
    assert solution.values == (("i", 16), ("j", 384), ("k", 16))
    assert solution.objective == 18432
    assert solution.proven


def test_a_starting_point_leaves_only_the_proof(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, HALF, PAPER)
    climbed = solved(problem)
    proved = solved(problem, start=dict(climbed.values))
    assert (proved.values, proved.objective, proved.proven) == (
        climbed.values,
        climbed.objective,
        True,
    )
    assert proved.solver_calls == 2 < climbed.solver_calls


def test_ties_go_to_the_larger_tile_of_the_cma_loop(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, Cell(split=0.5, warp_fraction=1.0), PAPER)
    # with the weight of warp fraction 0.5 two vectors reach 12288
    objective = Polynomial.of([(1, "ij"), (32, "j")])
    problem = replace(problem, objective=objective)
    tied = ({"i": 96, "j": 96, "k": 32}, {"i": 32, "j": 192, "k": 32})
    assert all(fits(problem, sizes) and objective.evaluate(sizes) == 12288 for sizes in tied)
    for start in (None, *tied):
        solution = solved(problem, start=start)
        assert (solution.objective, dict(solution.values)) == (12288, tied[1])


def test_a_full_warp_also_takes_the_long_tile(ga100: GpuProfile, matmul: KernelFacts) -> None:
    solution = solved(build_problem(matmul, ga100, Cell(split=0.5, warp_fraction=1.0), PAPER))
    assert dict(solution.values) == {"i": 32, "j": 192, "k": 32}


def free(name: str, step: int, upper: int) -> Variable:
    return Variable(name=name, step=step, lower=step, upper=upper, reason="free")


def cap(expression: Polynomial, limit: int, name: str = "cap") -> Constraint:
    return Constraint(
        name=name,
        title=name,
        expression=expression,
        limit=limit,
        unit="points",
        detail=f"there are {limit}",
    )


def problem_of(
    variables: list[Variable],
    constraints: list[Constraint],
    objective: Polynomial,
    larger: str = "",
) -> Problem:
    return Problem(
        kernel="test",
        variables=tuple(variables),
        constraints=tuple(constraints),
        objective=objective,
        preference=tuple(
            (v.name, Direction.LARGER if v.name in larger else Direction.SMALLER) for v in variables
        ),
    )


def test_preference_decides_where_everything_is_equal() -> None:
    variables = [free("a", 2, 8), free("b", 3, 9)]
    smallest = solved(problem_of(variables, [], Polynomial.constant(7)))
    assert dict(smallest.values) == {"a": 2, "b": 3}
    mixed = solved(problem_of(variables, [], Polynomial.constant(7), larger="b"))
    assert dict(mixed.values) == {"a": 2, "b": 9}


def test_a_problem_without_free_variables_is_solved() -> None:
    fixed = Variable(name="a", step=7, lower=7, upper=7, reason="fixed")
    solution = solved(
        problem_of([fixed], [cap(Polynomial.product("a"), 7)], Polynomial.product("a"))
    )
    assert (solution.values, solution.proven) == ((("a", 7),), True)
    assert isinstance(
        solve(problem_of([fixed], [cap(Polynomial.product("a"), 6)], Polynomial.product("a"))),
        Conflict,
    )


def test_a_conflict_names_its_constraint_in_the_users_terms(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    options = ModelOptions(model="eatss", shared_per_block_bytes=4096)
    answer = solve(build_problem(matmul, ga100, Cell(split=0.5, warp_fraction=1.0), options))
    assert isinstance(answer, Conflict)
    assert answer.constraints == ("shared_per_block",)
    assert answer.message == (
        "shared memory: 1 reference needs at least 8 KiB, the card has 4 KiB a block"
    )
    assert answer.excess == 2.0


def test_a_conflict_of_registers_counts_registers(
    profile_with: Callable[..., GpuProfile], matmul: KernelFacts
) -> None:
    card = profile_with(registers_per_sm=1000)
    answer = solve(build_problem(matmul, card, HALF, PAPER))
    assert isinstance(answer, Conflict)
    assert answer.message == (
        "registers: 3 references at 2 for each point need at least 1536 registers, "
        "the card has 1000 an SM"
    )


def test_a_conflict_of_two_constraints_names_both_and_no_third() -> None:
    a, b = Polynomial.product("a"), Polynomial.product("b")
    variables = [free("a", 1, 9), free("b", 1, 9)]
    constraints = [
        cap(a + b, 100, "loose"),
        cap(a, 4, "few"),
        cap(Polynomial.constant(6) - a, 1, "many"),
    ]
    answer = solve(problem_of(variables, constraints, b))
    assert isinstance(answer, Conflict)
    assert answer.constraints == ("few", "many")


def test_when_time_is_over_the_best_found_is_never_called_proven(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem(matmul, ga100, HALF, PAPER)
    solution = solved(problem, start={"i": 16, "j": 16, "k": 16}, timeout_s=1e-9)
    assert not solution.proven
    assert solution.objective == problem.objective.evaluate({"i": 16, "j": 16, "k": 16})


def test_when_time_is_over_with_nothing_found_there_is_no_solution(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    with pytest.raises(NoSolutionError) as caught:
        solve(build_problem(matmul, ga100, HALF, PAPER), timeout_s=1e-9)
    assert caught.value.code == "EATSS-M020"


def test_a_wrong_starting_point_is_caught(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(matmul, ga100, HALF, PAPER)
    for wrong in ({"i": 17, "j": 16, "k": 16}, {"i": 1024, "j": 1024, "k": 1024}):
        with pytest.raises(InternalError):
            solve(problem, start=wrong)


def test_hard_products_are_cut_into_boxes_until_they_are_decided(
    ga100: GpuProfile, nests: dict[str, MakeFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = build_problem(
        nests["tensor5"](64),
        ga100,
        Cell(split=0.5, warp_fraction=0.125),
        ModelOptions(model="eatss"),
    )
    reference = solved(problem)
    monkeypatch.setattr("eatss.choose.solver._EFFORT", 5000)
    hurried = solved(problem, start=dict(reference.values))
    assert hurried.proven
    assert hurried.values == reference.values
    assert hurried.solver_calls > 2


def proven_from_start(problem: Problem) -> Solution:
    seen = enumerate_best(problem)
    assert seen is not None
    return solved(problem, start=dict(seen.values))


def test_threads_solve_side_by_side(ga100: GpuProfile, nests: dict[str, MakeFacts]) -> None:
    problems = [
        build_problem(
            make(512), ga100, Cell(split=0.5, warp_fraction=0.25), ModelOptions(model="eatss")
        )
        for make in nests.values()
    ] * 2
    alone = [proven_from_start(p) for p in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(proven_from_start, problems))
    assert together == alone


@pytest.mark.samples(4)
@pytest.mark.parametrize("name", ["matmul", "mvt", "heat", "conv", "mttkrp", "tensor5"])
@pytest.mark.parametrize("fraction", [0.125, 0.5])
def test_every_depth_is_proven_and_agrees_with_the_enumeration(
    ga100: GpuProfile, nests: dict[str, MakeFacts], name: str, fraction: float
) -> None:
    for split in (0.25, 1.0):
        cell = Cell(split=split, warp_fraction=fraction)
        problem = build_problem(nests[name](2000), ga100, cell, ModelOptions(model="eatss"))
        seen = enumerate_best(problem)
        if seen is None:
            assert isinstance(solve(problem), Conflict)
            continue
        assert seen.exact
        solution = solved(problem, start=dict(seen.values))
        assert solution.proven
        assert solution.values == seen.values


def test_halos_with_negative_terms_are_known_to_grow() -> None:
    window = (Polynomial.of([(1, "h"), (1, "r"), (-1, "")])) * Polynomial.product("w")
    assert is_monotone(window, {"h": 1, "r": 1, "w": 1})
    falling = Polynomial.of([(1, "h"), (-1, "hr")])
    assert not is_monotone(falling, {"h": 1, "r": 1})
