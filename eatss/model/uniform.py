"""One vector of tile sizes for a whole program, as the paper and ``ppcg --tile-size`` have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.analysis.facts import KernelFacts
from eatss.gpu.profile import GpuProfile
from eatss.model.build import build_problem, inner_extent, is_untiled, tile_variable
from eatss.model.options import Cell, ModelOptions
from eatss.model.problem import Constraint, Direction, Problem, Variable
from eatss.polyhedral.kernel import Loop
from eatss.polynomial import Polynomial


def position_name(position: int) -> str:
    """Return the name of the tile size at ``position``, 0 outermost."""
    return f"d{position}"


def build_uniform_problem(
    kernels: Sequence[KernelFacts], profile: GpuProfile, cell: Cell, options: ModelOptions
) -> Problem:
    """Build one problem for all kernels.

    The variables are the entries of the vector, outermost first; a kernel uses as many
    of them as its band has loops. All kernels' constraints hold, each named after its
    kernel, and the objective is the sum of the kernels' objectives. An entry is at most
    the trip count of every loop it sizes, but for loops shorter than the
    alignment: those stay untiled, their kernel counts them with their trip count, and they
    do not bound the entry. Kernels without a band take no part.
    """
    kernels = [facts for facts in kernels if facts.loops]
    waf = cell.alignment(profile)
    constraints: list[Constraint] = []
    objective = Polynomial.constant(0)
    for facts in kernels:
        problem = build_problem(facts, profile, cell, options)
        renaming = _renaming(facts, waf)
        unique = [other.name for other in kernels].count(facts.name) == 1
        label = facts.name if unique else f"{facts.name}#{facts.index}"
        objective = objective + _renamed(problem.objective, *renaming)
        constraints += [
            replace(
                constraint,
                name=f"{label}.{constraint.name}",
                title=f"{label}: {constraint.title}",
                expression=_renamed(constraint.expression, *renaming),
            )
            for constraint in problem.constraints
        ]
    depth = max((len(facts.loops) for facts in kernels), default=0)
    return Problem(
        kernel="the program",
        variables=tuple(_entry(kernels, at, waf, profile) for at in range(depth)),
        constraints=tuple(constraints),
        objective=objective,
        preference=_preference(kernels, depth),
    )


def kernel_sizes(facts: KernelFacts, waf: int, vector: dict[str, int]) -> dict[str, int]:
    """Return the sizes of a kernel's own problem under the program's ``vector``.

    A loop shorter than the alignment is one tile, so its size is its trip count.
    """
    names, constants = _renaming(facts, waf)
    return {name: vector[entry] for name, entry in names.items()} | constants


def _loops_at(kernels: Sequence[KernelFacts], position: int) -> list[Loop]:
    return [facts.loops[position] for facts in kernels if position < len(facts.loops)]


def _entry(
    kernels: Sequence[KernelFacts], position: int, waf: int, profile: GpuProfile
) -> Variable:
    """Return the entry at ``position`` with the bounds all its loops agree on."""
    loops = _loops_at(kernels, position)
    tiled = [tile_variable(loop, waf, profile) for loop in loops if not is_untiled(loop, waf)]
    short = [tile_variable(loop, waf, profile) for loop in loops if is_untiled(loop, waf)]
    # where every loop is short, the longest decides: each of the others is one tile as well
    decisive = min(tiled, key=lambda v: v.upper) if tiled else max(short, key=lambda v: v.upper)
    return replace(decisive, name=position_name(position))


def _renaming(facts: KernelFacts, waf: int) -> tuple[dict[str, str], dict[str, int]]:
    """Return the entry of each tiled loop, and the extents that are no variables."""
    names = {
        loop.name: position_name(position)
        for position, loop in enumerate(facts.loops)
        if not is_untiled(loop, waf)
    }
    constants = {
        loop.name: max(1, loop.trip_count or 1) for loop in facts.loops if is_untiled(loop, waf)
    }
    return names, constants | {loop.name: inner_extent(loop, waf) for loop in facts.inner_loops}


def _renamed(
    polynomial: Polynomial, names: dict[str, str], constants: dict[str, int]
) -> Polynomial:
    terms = []
    for term in polynomial.terms:
        coefficient = term.coefficient
        for loop in term.loops:
            coefficient *= constants.get(loop, 1)
        terms.append((coefficient, [names[loop] for loop in term.loops if loop in names]))
    return Polynomial.of(terms)


def _preference(kernels: Sequence[KernelFacts], depth: int) -> tuple[tuple[str, Direction], ...]:
    """Decide ties: larger where most CMA loops stand, then smaller serial, then smaller."""
    votes = [
        sum(facts.cma_loop == facts.loops[at].name for facts in kernels if at < len(facts.loops))
        for at in range(depth)
    ]
    cma = [votes.index(max(votes))] if any(votes) else []
    rest = [at for at in range(depth) if at not in cma]
    serial = [at for at in rest if not any(loop.parallel for loop in _loops_at(kernels, at))]
    parallel = [at for at in rest if at not in serial]
    return tuple((position_name(at), Direction.LARGER) for at in cma) + tuple(
        (position_name(at), Direction.SMALLER) for at in (*serial, *parallel)
    )
