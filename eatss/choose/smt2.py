"""A problem as SMT-LIB 2 text that any solver of non-linear integers reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eatss.analysis.facts import KernelFacts
from eatss.base.polynomial import Polynomial
from eatss.base.targets import TARGETS
from eatss.cards.profile import GpuProfile
from eatss.choose.build import build_problem, build_uniform_problem, inner_extent, position_name
from eatss.choose.options import Cell
from eatss.choose.predicted_cuda import Structures, cuda_problems
from eatss.choose.predicted_ppcg import ppcg_problems
from eatss.choose.problem import Direction, Problem, TableProblem, Variable, amount_text
from eatss.choose.selection import KernelSelection, Selection
from eatss.choose.solver import symbol, table_to_smt2


def to_smt2(problem: Problem, best: Mapping[str, int] | None = None) -> str:
    """Return ``problem`` as SMT-LIB 2.

    The script asks for a vector and defines ``objective``. With ``best``, a vector,
    it then demands a better one twice: a greater objective, and the same objective with
    a preferred vector. Both answers are ``unsat`` where ``best`` is the optimum.
    """
    lines = [
        f"; Tile sizes of {_comment(problem.kernel)}: maximise objective.",
        "; A tile size T_x is step * t_x with a small integer t_x.",
        "(set-option :produce-models true)",
        "(set-option :produce-unsat-cores true)",
        "(set-logic QF_NIA)",
        "",
    ]
    for variable in problem.variables:
        lines += _declaration(variable)
    for constraint in problem.constraints:
        limit = amount_text(constraint, constraint.limit)
        lines += [
            "",
            f"; {_comment(constraint.title)}: {_comment(constraint.subject)}, at most {limit}",
            f"; {_comment(constraint.detail)}",
            f"(assert (! (<= {_term(constraint.expression)} {_number(constraint.limit)})"
            f" :named {_symbol('limit_' + constraint.name)}))",
        ]
    lines += ["", f"(define-fun objective () Int {_term(problem.objective)})"]
    sizes = " ".join(_size(v.name) for v in problem.variables)
    query = ["(check-sat)", "(get-model)", f"(get-value ({f'objective {sizes}'.strip()}))"]
    if best is None:
        return "\n".join([*lines, "", *query, ""])
    value = problem.objective.evaluate(best)
    chosen = ", ".join(f"T_{_comment(name)} = {size}" for name, size in best.items())
    lines += [
        "",
        f"; the answer: {chosen} with objective {value}",
        "(push 1)",
        *(f"(assert (= {_size(v.name)} {best[v.name]}))" for v in problem.variables),
        *query,
        "(pop 1)",
        "",
        "; the proof, part 1: no vector has a greater objective (unsat)",
        "(push 1)",
        f"(assert (> objective {_number(value)}))",
        "(check-sat)",
        "(pop 1)",
        "",
        "; the proof, part 2: none with this objective is preferred (unsat)",
        "(push 1)",
        f"(assert (= objective {_number(value)}))",
        f"(assert {_preferred(problem, best)})",
        "(check-sat)",
        "(pop 1)",
        "",
    ]
    return "\n".join(lines)


def program_to_smt2(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    selection: Selection,
    structures: Structures | None = None,
) -> str:
    """Return the problems behind ``selection``, each with its answer and proof.

    One problem a kernel, at the cell that was selected, or the program's one problem
    where it has one vector. ``kernels``, ``profile`` and ``structures`` are what was selected for.
    """
    options = selection.options
    if options.model == "prediction":
        return _tables(kernels, profile, selection, structures)
    tiled = [pair for pair in zip(kernels, selection.kernels, strict=True) if pair[0].loops]
    texts = []
    if selection.uniform_sizes is not None:
        cell = _cell(tiled[0][1])
        problem = build_uniform_problem([f for f, _ in tiled], profile, cell, options)
        vector = {position_name(at): size for at, size in enumerate(selection.uniform_sizes)}
        texts.append(to_smt2(problem, vector))
    else:
        for facts, kernel in tiled:
            problem = build_problem(facts, profile, _cell(kernel), options)
            inner = {loop.name: inner_extent(loop, kernel.alignment) for loop in facts.inner_loops}
            texts.append(to_smt2(problem, {**dict(kernel.tile_sizes), **inner}))
    untiled = [
        f"; {_comment(facts.name)}: no loop of it is parallel, nothing to tile\n"
        for facts in kernels
        if not facts.loops
    ]
    return "\n(reset)\n\n".join(texts) + "".join(untiled)


def _tables(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    selection: Selection,
    structures: Structures | None,
) -> str:
    """Return the tables of a predicted selection."""
    if TARGETS[selection.options.target].own:
        problems = cuda_problems(kernels, structures or {}, profile, selection.options)
    else:
        problems = ppcg_problems(kernels, profile, selection)
    texts = []
    for kernel, problem in zip(selection.kernels, problems, strict=True):
        if problem is None:
            texts.append(f"; {_comment(kernel.name)}: it has nothing to tile\n")
        elif not problem.cost.rows or not _launches(kernel):
            texts.append(f"; {_comment(kernel.name)}: nothing of it is known to launch\n")
        else:
            texts.append(table_to_smt2(problem, _best(problem)))
    return "\n(reset)\n\n".join(texts)


def _launches(kernel: KernelSelection) -> bool:
    return kernel.predicted is not None


def _best(problem: TableProblem) -> dict[str, int]:
    """Return the row of least cost, the first of equal ones, by variable."""
    values = problem.cost.values
    row = problem.cost.rows[min(range(len(values)), key=values.__getitem__)]
    return dict(zip(problem.variables, row, strict=True))


def _cell(kernel: KernelSelection) -> Cell:
    return Cell(split=kernel.split_factor, warp_fraction=kernel.warp_fraction)


def _declaration(variable: Variable) -> list[str]:
    name, count = _size(variable.name), _symbol(f"t_{variable.name}")
    comment = f"; {_comment(variable.name)}: {_comment(variable.reason)}"
    if variable.lower == variable.upper:
        return [comment, f"(define-fun {name} () Int {_number(variable.lower)})"]
    low, high = variable.lower // variable.step, variable.upper // variable.step
    return [
        comment,
        f"(declare-fun {count} () Int)",
        f"(define-fun {name} () Int (* {variable.step} {count}))",
        f"(assert (! (<= {low} {count} {high}) :named {_symbol('bounds_' + variable.name)}))",
    ]


def _preferred(problem: Problem, best: Mapping[str, int]) -> str:
    text = "false"
    for name, direction in reversed(problem.preference):
        sign = ">" if direction is Direction.LARGER else "<"
        size = _size(name)
        text = f"(or ({sign} {size} {best[name]}) (and (= {size} {best[name]}) {text}))"
    return text


def _term(polynomial: Polynomial) -> str:
    parts = []
    for term in polynomial.terms:
        factors = [_size(name) for name in term.loops]
        if term.coefficient != 1 or not factors:
            factors.insert(0, _number(term.coefficient))
        parts.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
    if not parts:
        return "0"
    return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _size(name: str) -> str:
    return _symbol(f"T_{name}")


def _symbol(name: str) -> str:
    """Return a symbol, quoted where the language asks for it."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain else symbol(name)


def _comment(text: str) -> str:
    """Return text that stays within one comment line."""
    return " ".join(text.split())
