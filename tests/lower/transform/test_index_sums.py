"""Sums, quotients and remainders in their shortest form have the values they had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.transform.index_sums import in_order
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate, multiplied, total

NAMES = ("lane", "warp", "step")


def divided(operator: Operator, value: IntExpr, by: int) -> IntExpr:
    return Apply(operator, (value, Constant(by)))


def expressions() -> st.SearchStrategy[IntExpr]:
    leaves = st.sampled_from(NAMES).map(Name) | st.integers(0, 40).map(Constant)
    division = st.sampled_from([Operator.QUOTIENT, Operator.REMAINDER])
    by = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(total, inner, inner)
            | st.builds(multiplied, st.integers(0, 16).map(Constant), inner)
            | st.builds(divided, division, inner, by)
        ),
        max_leaves=8,
    )


@given(expressions(), st.fixed_dictionaries({name: st.integers(0, 63) for name in NAMES}))
def test_values_stay(expression: IntExpr, values: dict[str, int]) -> None:
    assert evaluate(in_order(expression), values) == evaluate(expression, values)


@pytest.mark.parametrize("operator", [Operator.QUOTIENT, Operator.REMAINDER])
@pytest.mark.parametrize("by", [2, 4, 8, 16])
def test_what_is_too_small_to_matter_leaves_the_division(operator: Operator, by: int) -> None:
    step, odd = Name("step"), divided(Operator.REMAINDER, Name("lane"), 2)
    found = in_order(divided(operator, total(multiplied(Constant(2), step), odd), by))
    quotient = step if by == 2 else divided(Operator.QUOTIENT, step, by // 2)
    remainder = odd
    if by > 2:
        rest = divided(Operator.REMAINDER, step, by // 2)
        remainder = total(multiplied(Constant(2), rest), odd)
    assert found == (quotient if operator is Operator.QUOTIENT else remainder)


def test_what_may_matter_stays() -> None:
    step, lane = Name("step"), Name("lane")
    one = divided(Operator.QUOTIENT, total(multiplied(Constant(2), step), lane), 4)
    assert in_order(one) == one
