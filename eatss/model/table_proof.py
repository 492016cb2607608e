"""Z3's word that no row of a table is better.

The table goes to Z3 as text: a tree of the variables with the costs as leaves. Z3 compares every
cost with the one that was found, in exact integers, and answers *unsatisfiable* where none is less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import z3 as z3_module

from eatss.diagnostics import Diagnostic, InternalError
from eatss.model.problem import TableProblem
from eatss.model.solution import Solution

z3: Any = z3_module  # carries no types


def solve_table(problem: TableProblem, *, timeout_s: float) -> Solution:
    """Find the row of least cost, the first of equal ones, and let Z3 refute any better one.

    Raises:
        InternalError: ``EATSS-M904``, Z3 knows a better row.
    """
    began = time.perf_counter()
    cost = problem.cost
    position = min(range(len(cost.values)), key=cost.values.__getitem__)
    row, least = cost.rows[position], cost.values[position]
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("timeout", max(1, int(1000 * timeout_s)))
    solver.from_string(better_than(problem, least))
    answer = solver.check()
    if answer == z3.sat:
        message = f"the solver knows better sizes of {problem.kernel} than the best of the table"
        raise InternalError(Diagnostic(code="EATSS-M904", message=message))
    return Solution(
        values=tuple(zip(problem.variables, row, strict=True)),
        objective=least,
        proven=bool(answer == z3.unsat),
        solver_calls=1,
        solve_time_s=time.perf_counter() - began,
    )


def better_than(problem: TableProblem, least: int) -> str:
    """Return SMT-LIB text that holds where a row costs less than ``least``."""
    lines = [f"(declare-const {symbol(name)} Int)" for name in problem.variables]
    lines.append(f"(assert {_disjunction(problem, lambda value: f'(< {value} {least})')})")
    return "\n".join(lines)


def table_to_smt2(problem: TableProblem, best: Mapping[str, int]) -> str:
    """Return a table as SMT-LIB 2: a script that finds ``best`` again and refutes anything better.

    ``cost`` is the value of the row that the variables name. Demanding that it be less than that of
    ``best`` gives ``unsat`` where ``best`` is the optimum.
    """
    cost = problem.cost
    row = tuple(best[name] for name in problem.variables)
    least = cost.entries[row]
    names = " ".join(symbol(name) for name in problem.variables)
    chosen = " ".join(f"(= {symbol(name)} {best[name]})" for name in problem.variables)
    return "\n".join(
        [
            f"; Sizes of {problem.kernel}: minimise cost, in {cost.unit}.",
            f"; {len(cost.rows)} rows; a variable threads:x is the threads of a block along x.",
            "(set-option :produce-models true)",
            "(set-logic QF_LIA)",
            *(f"(declare-const {symbol(name)} Int)" for name in problem.variables),
            "(declare-const cost Int)",
            f"(assert {_disjunction(problem, lambda value: f'(= cost {value})')})",
            f"; the answer costs {least}",
            "(push 1)",
            f"(assert (and {chosen}))",
            "(check-sat)",
            f"(get-value (cost {names}))",
            "(pop 1)",
            "; the proof: no row costs less (unsat)",
            "(push 1)",
            f"(assert (< cost {least}))",
            "(check-sat)",
            "(pop 1)",
            "",
        ]
    )


def _disjunction(problem: TableProblem, leaf: Callable[[int], str]) -> str:
    names = [symbol(name) for name in problem.variables]
    pairs = zip(problem.cost.rows, problem.cost.values, strict=True)
    return _tree(names, list(pairs), 0, leaf)


def symbol(name: str) -> str:
    """Return a variable's name as a symbol."""
    return f"|{name}|"


def _tree(
    names: Sequence[str],
    rows: Iterable[tuple[tuple[int, ...], int]],
    depth: int,
    leaf: Callable[[int], str],
) -> str:
    """Return the disjunction over the values of one variable, and inside it over the next."""
    if depth == len(names):
        return " ".join(leaf(value) for _, value in rows)
    branches: dict[int, list[tuple[tuple[int, ...], int]]] = {}
    for row in rows:
        branches.setdefault(row[0][depth], []).append(row)
    parts = [
        f"(and (= {names[depth]} {value}) {_tree(names, inside, depth + 1, leaf)})"
        for value, inside in branches.items()
    ]
    return parts[0] if len(parts) == 1 else f"(or {' '.join(parts)})"
