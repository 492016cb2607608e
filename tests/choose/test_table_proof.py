"""Least rows of tables: the least is found, and a solver is asked whether there is a lesser one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import pytest
import z3 as z3_module
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.choose import solver
from eatss.choose.problem import Table, TableProblem
from eatss.choose.solver import solve_table, table_to_smt2
from tests.examples import examples

z3: Any = z3_module  # carries no types

TIMEOUT_S = 20.0


@settings(deadline=None, max_examples=examples(15))
@given(
    data=st.data(), vectors=st.lists(st.tuples(*[st.integers(1, 6)] * 3), min_size=1, unique=True)
)
def test_the_text_of_a_table_finds_the_answer_and_refutes_the_rest(
    data: st.DataObject, vectors: list[tuple[int, ...]]
) -> None:
    values = [data.draw(st.integers(0, 50)) for _ in vectors]
    one = problem(dict(zip(vectors, values, strict=True)))
    for vector, value in zip(vectors, values, strict=True):
        text = table_to_smt2(one, dict(zip(one.variables, vector, strict=True)))
        context = z3.Context()
        answers = z3.Z3_eval_smtlib2_string(context.ref(), text).splitlines()
        assert answers[0] == "sat"
        assert answers[-1] == ("unsat" if value == min(values) else "sat")


rows = st.lists(st.tuples(*[st.integers(1, 6)] * 3), min_size=1, max_size=20, unique=True)
costs = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(0, 5)


Costs: TypeAlias = dict[tuple[int, ...], int]


def problem(table: Costs) -> TableProblem:
    return TableProblem(
        kernel="kernel0",
        variables=("i", "j", "threads:j"),
        cost=Table(rows=tuple(table), values=tuple(table.values()), unit="nJ"),
    )


@settings(deadline=None)
@given(data=st.data(), vectors=rows)
def test_the_least_row_of_a_table_is_found_and_proven(
    data: st.DataObject, vectors: list[tuple[int, ...]]
) -> None:
    values = [data.draw(costs) for _ in vectors]
    table = dict(zip(vectors, values, strict=True))
    solution = solve_table(problem(table), timeout_s=TIMEOUT_S)
    assert solution.proven
    assert solution.solver_calls == 1
    assert solution.objective == min(values)
    assert tuple(value for _, value in solution.values) == vectors[values.index(min(values))]


def test_of_equal_rows_the_first_is_taken() -> None:
    table: Costs = {(4, 1, 1): 7, (2, 1, 1): 5, (1, 1, 1): 5}
    solution = solve_table(problem(table), timeout_s=TIMEOUT_S)
    assert dict(solution.values) == {"i": 2, "j": 1, "threads:j": 1}


def test_a_table_of_one_row_is_proven() -> None:
    assert solve_table(problem({(1, 2, 3): 0}), timeout_s=TIMEOUT_S).proven


def test_a_name_may_have_any_letters() -> None:
    names = ("i", "j", "staged:b[i | 1]")
    named = replace(problem({(2, 1, 1): 5, (1, 1, 1): 7}), variables=names)
    assert solve_table(named, timeout_s=TIMEOUT_S).proven


def test_a_better_row_that_was_overlooked_is_our_own_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table: Costs = {(4, 1, 1): 7, (2, 1, 1): 5, (1, 1, 1): 6}
    monkeypatch.setattr(solver, "min", lambda *_, **__: 0, raising=False)
    with pytest.raises(InternalError, match="better sizes of kernel0") as caught:
        solve_table(problem(table), timeout_s=TIMEOUT_S)
    assert caught.value.diagnostics[0].code == "EATSS-M904"
