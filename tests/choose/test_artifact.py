"""The model of the scripts: the problem is theirs, and the search ends where theirs does.

What they gave: ``gpu-tss-energy.py`` of github.com/mkongiv/eatss at ec24b75 with Python 2.7.18 and
z3-solver 4.12.1, for its inputs of these names and ``a100.gpu``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.analysis.facts import KernelFacts, Memory
from eatss.cards.profile import GpuProfile
from eatss.choose.options import Cell, ModelOptions
from eatss.choose.problem import Conflict, Problem, Solution, as_modelled, build_problem, fits
from eatss.choose.select import select_program
from eatss.choose.solver import solve
from tests.choose.conftest import make_facts, product

SCRIPTS = ModelOptions(model="artifact")

NESTS = {  # loops, parallel ones with a star; the loops of the subscripts of each reference
    "gemm": ("i* j* k", "ik kj ij"),
    "syrk": ("i* j* k", "ik jk ij"),
    "syr2k": ("i* j* k", "ik jk jk ik ij"),
    "mvt": ("i* j", "i i j ij"),
    "jacobi-2d-imper": ("i* j*", "ij ij ij ij"),
    "mttkrp": ("i* j* k* l", "ijk il jl kl"),
    "doitgen": ("i* j* k* l", "ijk ijl lk"),
    "heat-3d": ("i* j* k*", "ijk ijk ijk ijk ijk ijk ijk ijk"),
}

RUNS = [  # kernel, split, warp fraction, sizes, objective
    ("gemm", 0.25, 1.0, (16, 288, 48), 13872),
    ("gemm", 0.0, 0.5, (8, 512, 16), 12304),
    ("syrk", 0.25, 1.0, (16, 16, 496), 32000),
    ("syrk", 0.125, 0.5, (24, 8, 416), 13504),
    ("syr2k", 0.25, 1.0, (16, 16, 240), 61696),
    ("syr2k", 0.125, 1.0, (16, 16, 304), 78080),
    ("mvt", 0.25, 1.0, (32, 512), 8224),
    ("mvt", 0.0, 1.0, (16, 496), 7952),
    ("jacobi-2d-imper", 0.25, 1.0, (16, 256), 53248),
    ("jacobi-2d-imper", 0.0, 0.5, (8, 504), 52416),
    ("mttkrp", 0.25, 1.0, (16, 16, 16, 352), 54784),
    ("mttkrp", 0.0, 0.5, (16, 24, 8, 456), 35904),
    ("doitgen", 0.25, 1.0, (16, 16, 16, 16), 4624),
    ("doitgen", 0.25, 0.5, (8, 8, 80, 16), 6416),
    ("heat-3d", 0.25, 0.5, (8, 8, 32), 16384),
]


def nest(name: str) -> KernelFacts:
    loops, references = NESTS[name]
    facts = make_facts(
        loops=[(loop[0], "*" in loop, None) for loop in loops.split()],
        references=[
            (f"A{at}" + "".join(f"[{loop}]" for loop in loops), Memory.L1, product(*loops))
            for at, loops in enumerate(references.split())
        ],
        name=name,
    )
    pairs = zip(facts.references, references.split(), strict=True)
    return replace(facts, references=tuple(replace(r, spatial=(own[-1],)) for r, own in pairs))


def problem_of(name: str, card: GpuProfile, split: float, warp_fraction: float) -> Problem:
    (facts,), halved = as_modelled([nest(name)], card, SCRIPTS)
    cell = Cell(split=split, warp_fraction=warp_fraction)
    return build_problem([facts], halved, cell, SCRIPTS)


@pytest.mark.parametrize(("name", "split", "warp_fraction", "sizes", "objective"), RUNS)
def test_the_problem_is_that_of_the_scripts_and_the_search_ends_as_near(
    name: str,
    split: float,
    warp_fraction: float,
    sizes: tuple[int, ...],
    objective: int,
    ga100: GpuProfile,
) -> None:
    problem = problem_of(name, ga100, split, warp_fraction)
    theirs = dict(zip((v.name for v in problem.variables), sizes, strict=True))
    assert problem.objective.evaluate(theirs) == objective
    assert fits(problem, theirs)
    ours, optimum = solve(problem), solve(replace(problem, steps=()))
    assert isinstance(ours, Solution)
    assert isinstance(optimum, Solution)
    assert (ours.proven, optimum.proven) == (False, True)
    for found in (objective, ours.objective):
        assert found <= optimum.objective <= found * 4 // 3
    assert solve(problem) == ours


@pytest.mark.parametrize(
    ("name", "split", "limit"),
    [("heat-3d", 0.25, "registers"), ("doitgen", 0.125, "shared_per_sm"), ("gemm", 0.5, "split")],
)
def test_no_sizes_fit_where_the_scripts_find_none(
    name: str, split: float, limit: str, ga100: GpuProfile
) -> None:
    answer = solve(problem_of(name, ga100, split, 1.0))
    assert isinstance(answer, Conflict)
    assert answer.constraints == (limit,)


def test_a_size_may_be_larger_than_its_loop_and_halved_warps_align_it(
    ga100: GpuProfile,
) -> None:
    facts = nest("mvt")
    short = replace(facts, loops=tuple(replace(loop, trip_count=10) for loop in facts.loops))
    options = ModelOptions(model="artifact", split=0.25, warp_fraction=1.0)
    kernel = select_program([short], ga100, options).kernels[0]
    assert kernel.alignment == 16
    assert kernel.tiles["j"] > 10
    assert kernel.optimal == "best found"
    floats = ModelOptions(model="artifact", split=0.25, warp_fraction=1.0, element_bytes=4)
    assert select_program([short], ga100, floats).kernels[0].alignment == 32
