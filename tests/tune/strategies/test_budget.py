"""Budgets as people write them."""

from __future__ import annotations

import pytest

from eatss.base.diagnostics import InputError
from eatss.tune.strategies import Budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("300", Budget(variants=300)),
        ("300 variants", Budget(variants=300)),
        ("1 variant", Budget(variants=1)),
        ("30m", Budget(seconds=1800)),
        ("1.5 h", Budget(seconds=5400)),
        ("90s", Budget(seconds=90)),
        ("20kJ", Budget(joules=20_000)),
        ("5 J", Budget(joules=5)),
        ("300, 30m,20kJ", Budget(variants=300, seconds=1800, joules=20_000)),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    "text", ["", "a lot", "30x", "0", "0s", "-5", "5 kWh", "300,400", "1m,2s", "1e999s", "300,"]
)
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Budget.parse(text)
    assert caught.value.code == "EATSS-T004"


def test_what_is_left() -> None:
    budget = Budget(variants=10, seconds=60)
    assert budget.left(variants=4, seconds=20.0, joules=1e9) == Budget(variants=6, seconds=40)
    assert budget.left(variants=10) is None
    assert budget.left(seconds=60.5) is None
    assert Budget().left(variants=10**9) == Budget()


def test_the_share_is_of_what_runs_out_first() -> None:
    budget = Budget(variants=10, seconds=60)
    assert budget.share(variants=5, seconds=45) == 0.75
    assert budget.share(variants=50) == 1
    assert Budget().share(variants=50) == 0
