"""Optima equal brute force, and rows of tables are proven."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import z3 as z3_module
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose.options import Cell, ModelOptions
from eatss.choose.problem import (
    Conflict,
    Constraint,
    Direction,
    Problem,
    Solution,
    Variable,
    build_problem,
)
from eatss.choose.smt import refutation, scripts_text
from eatss.choose.solver import solve
from tests.examples import examples

z3: Any = z3_module  # carries no types

MakeFacts = Callable[..., KernelFacts]

EXAMPLES = examples(20)
HALF = Cell(split=0.5, warp_fraction=0.5)


def brute_force(problem: Problem) -> tuple[tuple[str, int], ...] | None:
    """Look at every vector; compare by objective, then by preference, entry for entry."""
    best = None
    names = [v.name for v in problem.variables]
    for vector in itertools.product(
        *(range(v.lower, v.upper + 1, v.step) for v in problem.variables)
    ):
        sizes = dict(zip(names, vector, strict=True))
        if any(c.expression.evaluate(sizes) > c.limit for c in problem.constraints):
            continue
        key = [problem.objective.evaluate(sizes)]
        for name, way in problem.preference:
            key.append(sizes[name] if way is Direction.LARGER else -sizes[name])
        if best is None or key > best[0]:
            best = (key, tuple(zip(names, vector, strict=True)))
    return None if best is None else best[1]


def agrees(problem: Problem) -> None:
    expected = brute_force(problem)
    answer = solve(problem)
    if expected is None:
        assert isinstance(answer, Conflict)
        assert set(answer.constraints) <= {c.name for c in problem.constraints}
        only = replace(
            problem,
            constraints=tuple(c for c in problem.constraints if c.name in answer.constraints),
        )
        assert brute_force(only) is None
        return
    assert isinstance(answer, Solution)
    assert answer.proven
    assert answer.values == expected
    assert answer.objective == problem.objective.evaluate(dict(expected))
    assert not satisfiable(refutation(problem, dict(expected)).text())


def satisfiable(text: str) -> bool:
    """Whether Z3 finds numbers that keep all that a script asserts."""
    asked = z3.Solver(ctx=z3.Context())
    asked.from_string(text)
    answer = asked.check()
    assert answer != z3.unknown
    return bool(answer == z3.sat)


def cvc5_answers(text: str) -> list[str]:
    """What cvc5 prints for a script."""
    cvc5: Any = import_module("cvc5")  # no other test needs it; carries no types
    solver = cvc5.Solver()
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "script")
    answers = []
    while not (command := parser.nextCommand()).isNull():
        answers += command.invoke(solver, parser.getSymbolManager()).split()
    return answers


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any problem of up to four variables, constraints that fall as sizes grow included."""
    names = "abcd"[: draw(st.integers(1, 4))]
    most = {1: 12, 2: 8, 3: 6, 4: 4}[len(names)]
    variables = []
    for name in names:
        step = draw(st.sampled_from([1, 2, 3, 4, 8]))
        if draw(st.booleans()):
            upper = step * draw(st.integers(1, most))
            variables.append(Variable(name=name, step=step, lower=step, upper=upper))
        else:
            size = draw(st.integers(1, 9))
            variables.append(Variable(name=name, step=size, lower=size, upper=size))
    term = st.tuples(st.integers(-2, 4), st.lists(st.sampled_from(names), max_size=3))
    positive = st.tuples(st.integers(1, 4), st.lists(st.sampled_from(names), max_size=3))
    constraints = []
    for position in range(draw(st.integers(0, 3))):
        terms = draw(st.lists(draw(st.sampled_from([term, positive])), max_size=4))
        constraints.append(
            Constraint(
                name=f"c{position}",
                title="limit",
                expression=Polynomial.of(terms),
                limit=draw(st.integers(-5, 400)),
                unit="points",
                detail="drawn",
            )
        )
    objective = Polynomial.of(draw(st.lists(draw(st.sampled_from([term, positive])), max_size=4)))
    directions = [draw(st.sampled_from(list(Direction))) for _ in names]
    order = draw(st.permutations(list(names)))
    return Problem(
        kernel="drawn",
        variables=tuple(variables),
        constraints=tuple(constraints),
        objective=objective,
        preference=tuple(zip(order, directions, strict=True)),
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=problems(), data=st.data())
def test_the_text_holds_where_sizes_are_better(problem: Problem, data: st.DataObject) -> None:
    sizes = {v.name: data.draw(st.sampled_from(v.values)) for v in problem.variables}
    best = brute_force(problem)
    better = best is not None and problem.objective.evaluate(
        dict(best)
    ) > problem.objective.evaluate(sizes)
    assert satisfiable(refutation(problem, sizes).text()) is better


@pytest.mark.parametrize("name", ["matmul", "mvt", "heat", "mttkrp"])
@pytest.mark.parametrize("trips", [64, None])
def test_a_second_solver_agrees(
    name: str, trips: int | None, ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    problem = build_problem([nests[name](trips)], ga100, HALF, ModelOptions(model="paper"))
    answer = solve(problem)
    assert isinstance(answer, Solution)
    proof = refutation(problem, dict(answer.values))
    *limits, (_, better) = proof.assertions
    reached = replace(proof, assertions=(*limits, ("reached", better.replace("(>", "(>="))))
    assert cvc5_answers(scripts_text([proof, reached, proof])) == ["unsat", "sat", "unsat"]


@settings(max_examples=EXAMPLES * 3, deadline=None)
@given(problem=problems())
def test_the_optimum_of_any_small_problem_equals_brute_force(problem: Problem) -> None:
    agrees(problem)


@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=problems(), data=st.data())
def test_what_was_found_before_changes_no_answer(problem: Problem, data: st.DataObject) -> None:
    vectors = st.fixed_dictionaries(
        {v.name: st.integers(v.lower - 1, v.upper + 1) for v in problem.variables}
    )
    alone, after = solve(problem), solve(problem, found=data.draw(st.lists(vectors, max_size=3)))
    if isinstance(alone, Solution):
        assert isinstance(after, Solution)
        assert (after.values, after.proven) == (alone.values, True)
    else:
        assert isinstance(after, Conflict)


@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=problems())
def test_cutting_into_boxes_loses_no_vector(problem: Problem) -> None:
    expected = brute_force(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eatss.choose.solver._EFFORT", 1)
        answer = solve(problem)
    if expected is None:
        assert isinstance(answer, Conflict)
    else:
        assert isinstance(answer, Solution)
        assert (answer.values, answer.proven) == (expected, True)


@st.composite
def kernel_arguments(draw: st.DrawFn, depth_most: int = 3, name: str = "kernel") -> dict[str, Any]:
    """A small nest: loops, inner loops, references over random loops with random halos."""
    depth = draw(st.integers(1, depth_most))
    loops = [
        (
            loop,
            draw(st.booleans()) if position else True,
            draw(st.sampled_from([None, 1, 3, 7, 8, 20, 40])),
        )
        for position, loop in enumerate("ijk"[:depth])
    ]
    inner = [("r", draw(st.sampled_from([None, 2, 3, 50])))] if draw(st.booleans()) else []
    every = [loop for loop, _, _ in loops] + [loop for loop, _ in inner]
    references = []
    for position in range(draw(st.integers(1, 4))):
        volume = Polynomial.constant(1)
        for loop in draw(st.lists(st.sampled_from(every), max_size=3, unique=True)):
            halo = draw(st.sampled_from([0, 0, 0, 1, 2]))
            volume = volume * Polynomial.of([(1, loop), (halo, "")])
        memory = draw(st.sampled_from(list(Memory)))
        references.append((f"A{position}[…]", memory, volume))
    parallel = [loop for loop, is_parallel, _ in loops if is_parallel]
    return {
        "name": name,
        "loops": loops,
        "inner": inner,
        "references": references,
        "cma": draw(st.sampled_from([*parallel, None])),
        "stride_one": {loop: draw(st.integers(0, 3)) for loop, _, _ in loops},
        "element_bytes": draw(st.sampled_from([4, 8])),
    }


profile_changes = st.fixed_dictionaries(
    {
        "threads_per_block": st.sampled_from([32, 48, 64]),
        "threads_per_warp": st.sampled_from([8, 16]),
        "registers_per_sm": st.sampled_from([64, 500, 4000, 65536]),
        "l1_shared_bytes": st.sampled_from([256, 2000, 8192, 50000]),
        "l2_bytes": st.sampled_from([1024, 65536]),
        "sm_count": st.sampled_from([1, 4]),
        "shared_per_sm_bytes": st.sampled_from([1024, 6000, 40000]),
        "shared_per_block_bytes": st.sampled_from([512, 4096]),
    }
)

cells = st.builds(
    Cell,
    split=st.sampled_from([0.0, 0.25, 0.5, 0.67, 1.0]),
    warp_fraction=st.sampled_from([1.0, 0.5, 0.25]),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(arguments=kernel_arguments(), changes=profile_changes, cell=cells)
def test_the_optimum_of_small_nests_on_small_cards_equals_brute_force(
    facts_of: MakeFacts,
    profile_with: Callable[..., GpuProfile],
    arguments: dict[str, Any],
    changes: dict[str, int],
    cell: Cell,
) -> None:
    agrees(
        build_problem(
            [facts_of(**arguments)], profile_with(**changes), cell, ModelOptions(model="paper")
        )
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    first=kernel_arguments(name="first"),
    second=kernel_arguments(name="second", depth_most=2),
    changes=profile_changes,
    cell=cells,
)
def test_one_vector_for_two_kernels_equals_brute_force(
    facts_of: MakeFacts,
    profile_with: Callable[..., GpuProfile],
    first: dict[str, Any],
    second: dict[str, Any],
    changes: dict[str, int],
    cell: Cell,
) -> None:
    kernels = [facts_of(**first), facts_of(**second)]
    agrees(build_problem(kernels, profile_with(**changes), cell, ModelOptions(model="paper")))
