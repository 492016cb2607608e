"""Least rows of tables: the least is found, and a solver is asked whether there is a lesser one."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import z3 as z3_module
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.choose import solver
from eatss.choose.problem import TableProblem
from eatss.choose.solver import better_than, solve_table

z3: Any = z3_module  # carries no types

TIMEOUT_S = 20.0


rows = st.lists(st.tuples(*[st.integers(1, 6)] * 3), min_size=1, max_size=20, unique=True)
costs = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(0, 5)


Costs: TypeAlias = dict[tuple[int, ...], int]


def problem(table: Costs) -> TableProblem:
    return TableProblem(
        kernel="kernel0",
        variables=("i", "j", "threads:j"),
        rows=tuple(table),
        costs=tuple(table.values()),
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


@settings(deadline=None)
@given(data=st.data(), vectors=rows)
def test_the_text_holds_for_the_rows_that_cost_less(
    data: st.DataObject, vectors: list[tuple[int, ...]]
) -> None:
    values = [data.draw(costs) for _ in vectors]
    limit = data.draw(st.sampled_from(values))
    context = z3.Context()
    asked = z3.SimpleSolver(ctx=context)
    asked.from_string(better_than(problem(dict(zip(vectors, values, strict=True))), limit))
    found = set()
    while asked.check() == z3.sat:
        model = asked.model()
        names = [z3.Int(f"v{at}", context) for at in range(3)]
        found.add(tuple(model.eval(name).as_long() for name in names))
        asked.add(z3.Or([name != model.eval(name) for name in names]))
    assert found == {v for v, value in zip(vectors, values, strict=True) if value < limit}


def test_a_better_row_that_was_overlooked_is_our_own_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table: Costs = {(4, 1, 1): 7, (2, 1, 1): 5, (1, 1, 1): 6}
    monkeypatch.setattr(solver, "min", max, raising=False)
    with pytest.raises(InternalError, match="better sizes of kernel0") as caught:
        solve_table(problem(table), timeout_s=TIMEOUT_S)
    assert caught.value.diagnostics[0].code == "EATSS-M900"
