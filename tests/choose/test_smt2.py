"""The SMT-LIB text is the very problem that was solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3 as z3_module

from eatss.analysis.facts import KernelFacts
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose import (
    Cell,
    Constraint,
    Direction,
    ModelOptions,
    Problem,
    Solution,
    Variable,
    build_problem,
    program_to_smt2,
    select_program,
    solve,
    to_smt2,
)

MakeFacts = Callable[..., KernelFacts]

z3: Any = z3_module


def run(text: str) -> list[str]:
    """Run a whole script, pushes and pops included, and return what it prints."""
    context = z3.Context()
    try:
        return str(z3.Z3_eval_smtlib2_string(context.ref(), text)).splitlines()
    except z3.Z3Exception as error:  # a model was asked for where there is none
        output: str = error.args[0].decode()
        return output.splitlines()


def answers(text: str) -> list[str]:
    return [line for line in run(text) if line in ("sat", "unsat", "unknown")]


def optimum(text: str) -> int:
    """Find the greatest objective of the problem as written, by bisection."""
    text = text[: text.index("(check-sat)")]
    low, high = 0, 1 << 20
    assert answers(f"{text}(assert (> objective {high}))(check-sat)") == ["unsat"]
    while low < high:
        middle = (low + high + 1) // 2
        (answer,) = answers(f"{text}(assert (>= objective {middle}))(check-sat)")
        assert answer != "unknown"
        low, high = (middle, high) if answer == "sat" else (low, middle - 1)
    return low


def test_matmul_reads_back_to_the_papers_optimum(ga100: GpuProfile, matmul: KernelFacts) -> None:
    problem = build_problem(
        matmul, ga100, Cell(split=0.5, warp_fraction=0.5), ModelOptions(model="paper")
    )
    text = to_smt2(problem)
    assert optimum(text) == 18432
    for word in (":named limit_l1", "; L1 cache", "(check-sat)", "(get-model)"):
        assert word in text


@pytest.mark.parametrize("name", ["mvt", "heat", "mttkrp"])
def test_other_nests_read_back_to_their_optimum(
    ga100: GpuProfile, nests: dict[str, MakeFacts], name: str
) -> None:
    problem = build_problem(
        nests[name](500), ga100, Cell(split=0.25, warp_fraction=0.25), ModelOptions(model="eatss")
    )
    solution = solve(problem)
    assert isinstance(solution, Solution)
    assert optimum(to_smt2(problem)) == solution.objective


def test_the_script_with_its_answer_runs_to_the_proof(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    problem = build_problem(
        matmul, ga100, Cell(split=0.5, warp_fraction=0.5), ModelOptions(model="paper")
    )
    assert answers(to_smt2(problem, {"i": 16, "j": 384, "k": 16})) == ["sat", "unsat", "unsat"]
    assert answers(to_smt2(problem, {"i": 16, "j": 368, "k": 16})) == ["sat", "sat", "unsat"]
    assert answers(to_smt2(problem, {"i": 16, "j": 384, "k": 1024}))[0] == "unsat"


@pytest.mark.parametrize("uniform", [False, True])
def test_a_program_is_dumped_as_it_was_solved(
    ga100: GpuProfile, matmul_with: MakeFacts, nests: dict[str, MakeFacts], uniform: bool
) -> None:
    kernels = [matmul_with(name="first"), nests["mvt"](100), matmul_with(name="last")]
    selection = select_program(
        kernels, ga100, ModelOptions(model="eatss", split=0.5, warp_fraction=0.5, uniform=uniform)
    )
    count = 1 if uniform else 3
    assert answers(program_to_smt2(kernels, ga100, selection)) == ["sat", "unsat", "unsat"] * count


def test_odd_names_and_negative_numbers_are_written_correctly() -> None:
    problem = Problem(
        kernel="odd\nname",
        variables=(
            Variable(name="c0'", step=2, lower=2, upper=8, reason="free"),
            Variable(name="x", step=3, lower=3, upper=3, reason="fixed"),
        ),
        constraints=(
            Constraint(
                name="a b",
                title="limit\nof lines",
                expression=Polynomial.of([(-2, ("c0'",)), (1, ("x", "x"))]),
                limit=-3,
                unit="points",
                detail="drawn",
            ),
        ),
        objective=Polynomial.of([(-1, ("c0'",))]),
        preference=(("c0'", Direction.LARGER), ("x", Direction.SMALLER)),
    )
    assert answers(to_smt2(problem, {"c0'": 6, "x": 3})) == ["sat", "unsat", "unsat"]
