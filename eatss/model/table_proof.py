"""Z3's word that no row of a table is better.

The table goes to Z3 as text: a tree of the variables with the costs as leaves. Z3 compares every
cost with the one that was found, in exact integers, and answers *unsatisfiable* where none is less.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import z3 as z3_module

from eatss.diagnostics import Diagnostic, InternalError
from eatss.model.problem import Solution, TableProblem

z3: Any = z3_module  # carries no types

_of_thread = threading.local()


def solve_table(problem: TableProblem, *, timeout_s: float) -> Solution:
    """Find the row of least cost, the first of equal ones, and let Z3 refute any better one.

    Raises:
        InternalError: ``EATSS-M904``, Z3 knows a better row.
    """
    began = time.perf_counter()
    cost = problem.cost
    position = min(range(len(cost.values)), key=cost.values.__getitem__)
    row, least = cost.rows[position], cost.values[position]
    solver = z3.SimpleSolver(ctx=_context())
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


def _context() -> Any:
    """Return the context of this thread: a new one fills 16 MiB, longer than most proofs take.

    What is asserted belongs to a solver, so that nothing of one proof is left for the next.
    """
    if not hasattr(_of_thread, "context"):
        _of_thread.context = z3.Context()
    return _of_thread.context


def better_than(problem: TableProblem, least: int) -> str:
    """Return SMT-LIB text that holds where a row costs less than ``least``."""
    return "\n".join(
        [
            *_declarations(problem),
            f"(define-fun least () Int {least})",
            f"(assert {_disjunction(problem, lambda value: f'(< {value} least)')})",
        ]
    )


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
            f"; {len(cost.rows)} rows; threads:i is a block's threads along the loop i.",
            *_explained(problem),
            "(set-option :produce-models true)",
            "(set-logic QF_LIA)",
            *_declarations(problem),
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


def symbol(name: str) -> str:
    """Return a name as a quoted symbol, which has no bar and no backslash."""
    return f"|{name.replace('|', '!').replace(chr(92), '!')}|"


def _explained(problem: TableProblem) -> list[str]:
    """Return comments on variables that only some kernels have."""
    found = [name.removeprefix("warps:") for name in problem.variables if name.startswith("warps:")]
    return [
        f"; warps:{name} is 1 where it computes products; stages are boxes at once."
        for name in found
    ]


def _declarations(problem: TableProblem) -> list[str]:
    """Return the variables, and a word for each value that one of them takes in the table."""
    lines = [f"(declare-const {symbol(name)} Int)" for name in problem.variables]
    for name, column in zip(problem.variables, zip(*problem.cost.rows, strict=True), strict=True):
        lines += [
            f"(define-fun {_has(name, value)} () Bool (= {symbol(name)} {value}))"
            for value in sorted(set(column))
        ]
    return lines


def _has(name: str, value: int) -> str:
    return symbol(f"{name}={value}")


def _disjunction(problem: TableProblem, leaf: Callable[[int], str]) -> str:
    """Return that the variables have the values of some row, and what is said of its cost.

    It is a tree: a disjunction over the values of one variable, and inside it over the next. The
    last variable comes first, because few tiles go with the same threads.
    """
    cost = problem.cost
    columns = list(zip(problem.variables, zip(*cost.rows, strict=True), strict=True))[::-1]
    words = [{value: _has(name, value) for value in set(column)} for name, column in columns]
    last = len(words) - 1
    parts = ["(or"]
    before: tuple[int, ...] = ()
    for row, value in sorted(zip((row[::-1] for row in cost.rows), cost.values, strict=True)):
        same = 0
        while before and same < last and row[same] == before[same]:
            same += 1
        if before:
            parts.append("))" * (last - same))
        parts += [f" (and {words[at][row[at]]} (or" for at in range(same, last)]
        parts.append(f" (and {words[last][row[last]]} {leaf(value)})")
        before = row
    return "".join([*parts, "))" * last, ")"])
