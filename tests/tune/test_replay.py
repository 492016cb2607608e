"""Replays of made-up sweeps: what is known of them by definition or in closed form.

What a replay prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.report.pages import printed
from eatss.tune.points import Point
from eatss.tune.replay import recorded, replayed
from eatss.tune.rows import Sweep
from eatss.tune.strategies import STRATEGIES, WAIT, Asked, Budget, StrategyJob
from tests.refusals import refusing
from tests.tune.recorded import random_sweep, row, sweep

BUILT_IN = ("exhaustive", "random", "model", "local")


@settings(max_examples=20)
@given(side=st.integers(1, 5), seed=st.integers(0, 2**16))
def test_every_strategy_finds_the_best_in_the_end(side: int, seed: int) -> None:
    made = random_sweep(side, seed, failing=0.2)
    if not any(one.measured for one in made.rows):
        return
    found = replayed(made, BUILT_IN, 2)
    least = min(one.time_s for one in made.rows if one.time_s is not None)
    assert found.best == least
    for summary in found.summaries:
        assert summary.regrets[-1] == 0
        assert summary.reached == summary.runs == 2
    assert all(len(run.steps) == side * side for run in found.runs)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), budget=st.integers(1, 30))
def test_a_run_is_the_record_of_its_evaluations(seed: int, budget: int) -> None:
    made = random_sweep(5, seed, failing=0.3)
    times = {one.variant: one.time_s for one in made.rows}
    for run in replayed(made, BUILT_IN, 1, Budget(variants=budget)).runs:
        assert len(run.steps) == min(budget, 25)
        assert len({step.variant for step in run.steps}) == len(run.steps)
        working: list[float] = []
        for place, step in enumerate(run.steps, 1):
            time_s = times[step.variant]
            assert step.cost == time_s
            working += [] if time_s is None else [time_s]
            assert step.best == min(working, default=None)
            assert step.spent_s == 3.0 * place


def closed_form(costs: Sequence[float], draws: int) -> tuple[float, float]:
    """Return mean and variance of the least of so many draws without replacement."""
    ordered, count = sorted(costs), len(costs)
    chance = [comb(count - place, draws - 1) / comb(count, draws) for place in range(1, count + 1)]
    mean = sum(one * cost for one, cost in zip(chance, ordered, strict=True))
    square = sum(one * cost**2 for one, cost in zip(chance, ordered, strict=True))
    return mean, square - mean**2


def test_random_finds_what_the_closed_form_says() -> None:
    made = random_sweep(7, seed=11)
    seeds = 300
    found = replayed(made, ("random",), seeds, Budget(variants=1))
    best = [run.steps[-1].best for run in found.runs]
    mean, variance = closed_form([one.time_s for one in made.rows if one.time_s], 1)
    error = sqrt(variance / seeds)
    assert abs(sum(one for one in best if one is not None) / seeds - mean) < 4 * error
    assert error < 0.02


def test_regret_is_that_of_the_middle_run_at_shares_of_the_budget() -> None:
    rows = [row(0, j, time_s) for j, time_s in enumerate([2.0, None, 1.5, 1.2, 1.0])]
    (one,) = replayed(sweep(rows), ("exhaustive",), 1, Budget(variants=4)).summaries
    assert one.regrets[:3] == (None, 1.0, 1.0)
    assert one.regrets[3] == pytest.approx(0.2)
    assert one.evaluations_within is None
    found = replayed(random_sweep(5, seed=5), ("random",), 4, Budget(variants=3))
    regrets = sorted((run.steps[-1].best or 0) / found.best - 1 for run in found.runs)
    assert found.summaries[0].regrets[-1] == regrets[1]


def test_a_budget_of_seconds_ends_with_the_last_variant_that_fits() -> None:
    rows = [row(0, j, 1.0, made_s=10.0 * j, card_s=1.0) for j in range(4)]
    (run,) = replayed(sweep(rows), ("exhaustive",), 1, Budget(seconds=40)).runs
    assert [step.spent_s for step in run.steps] == [1.0, 12.0, 33.0]


def test_evaluations_until_near_the_best() -> None:
    rows = [row(0, j, time_s) for j, time_s in enumerate([2.0, 1.06, 1.04, 1.0])]
    summary = replayed(sweep(rows), ("exhaustive",), 1).summaries[0]
    assert (summary.evaluations_within, summary.reached) == (3, 1)


@pytest.mark.parametrize(
    ("objective", "best"), [("time", 1.0), ("energy", 100.0), ("edp", 1.5 * 100)]
)
def test_each_objective_has_its_own_best(objective: str, best: float) -> None:
    rows = [row(0, 0, 1.0, energy_j=200.0), row(0, 1, 1.5, energy_j=100.0)]
    found = replayed(sweep(rows), ("exhaustive",), 1, objective=objective)  # type: ignore[arg-type]
    assert found.best == best


def test_the_model_asks_in_the_order_of_what_was_predicted() -> None:
    rows = [
        row(0, j, 1.0 + j / 10, metrics=(("predicted_time_s", predicted),))
        for j, predicted in enumerate([3.0, 1.0, 2.0])
    ]
    found = replayed(sweep([*rows, row(0, 9, 0.9)]), ("model",), 1)
    assert [step.cost for step in found.runs[0].steps] == [1.1, 1.2, 1.0, 0.9]


def test_without_predictions_the_model_cannot_be_tried() -> None:
    with refusing("EATSS-T001"):
        replayed(sweep([row(0, 0, 1.0)]), ("model",), 1)


def test_a_role_beside_the_space_is_not_offered() -> None:
    beside = replace(row(0, 0, 0.5, role="default"), variant="x", values=(("tile", 32),))
    found = replayed(sweep([row(0, 0, 1.0), row(0, 1, 2.0), beside]), ("exhaustive",), 1)
    assert (found.variants, found.best) == (2, 1.0)


def test_careful_rows_count_and_the_first_says_what_it_took() -> None:
    rows = [
        row(0, 0, 1.0),
        row(0, 0, 1.1, stage="careful", card_s=50.0),
        row(0, 0, 9.0, stage="reference"),
    ]
    (step,) = replayed(sweep(rows), ("random",), 1).runs[0].steps
    assert (step.cost, step.spent_s) == (1.1, 3.0)


def test_rows_of_one_card_are_replayed() -> None:
    other = [row(1, 1, 0.1, card="GPU-2")]
    rows = [row(0, 0, 1.0), row(0, 1, 2.0), row(0, 2, None), *other]
    found = replayed(sweep(rows), ("random",), 1)
    assert (found.variants, found.failed, found.best) == (3, 1, 1.0)


@pytest.mark.parametrize("rows", [[], [row(0, 0, None)], [row(0, 0, 1.0, energy_j=None)]])
def test_where_nothing_was_measured_that_is_said(rows: Sequence[object]) -> None:
    empty: Sweep = sweep(rows)  # type: ignore[arg-type]
    with refusing("EATSS-T007"):
        recorded(empty, "energy")


@pytest.mark.parametrize(("strategies", "seeds"), [((), 1), (("random",), 0)])
def test_a_replay_of_nothing_is_refused(strategies: tuple[str, ...], seeds: int) -> None:
    with pytest.raises(InputError, match="EATSS-T007"):
        replayed(random_sweep(2, 1), strategies, seeds)


class Waiting:
    """Waits for ever."""

    def ask(self) -> Asked:
        return WAIT

    def tell(self, point: Point, cost: float) -> None:
        raise AssertionError


def test_a_strategy_that_waits_for_nothing_is_named() -> None:
    def waiting(_: StrategyJob) -> Waiting:
        return Waiting()

    STRATEGIES.register("waiting", waiting)
    try:
        with pytest.raises(InputError, match="the strategy 'waiting' waits"):
            replayed(random_sweep(2, 1), ("waiting",), 1)
    finally:
        STRATEGIES.remove("waiting")


@pytest.mark.parametrize(
    ("nothing", "objective"), [(0.0, "time"), (None, "energy"), (float("nan"), "edp")]
)
def test_a_cost_that_is_not_over_0_was_not_measured(nothing: float | None, objective: str) -> None:
    rows = [row(0, 0, 1.0), row(0, 1, 2.0)]
    field = "time_s" if objective == "time" else "energy_j"
    rows.append(replace(row(0, 2, 0.5), **{field: nothing}))  # type: ignore[arg-type]
    found = replayed(sweep(rows), ("random",), 1, objective=objective)  # type: ignore[arg-type]
    assert (found.variants, found.failed) == (3, 1)
    assert found.best_variant == rows[0].variant


ROWS = [
    row(0, 0, 1.5, role="default", metrics=(("predicted_time_s", 1.4),)),
    row(0, 1, 1.02, role="ours", metrics=(("predicted_time_s", 1.0),)),
    row(0, 2, 1.0),
    row(0, 3, None, role="paper"),
]


limit = Budget.parse


def test_a_replay_as_a_table() -> None:
    assert printed(
        replayed(sweep(ROWS), ["exhaustive", "model"], 2, limit("4"), "time"), "table"
    ) == (
        "made up (cuda) on Made Up 100\n"
        "4 variants, 1 of them failed; least time 1.000 s\n"
        "Best found, in % above the least, after a share of 4 variants:\n"
        "the middle of 2 seeds. near: variants until within 5 %.\n"
        "\n"
        "  strategy    10 %  25 %  50 %  100 %  near  runs near\n"
        "  exhaustive     -  50.0   2.0    0.0     2  2 of 2\n"
        "  model          -   2.0   2.0    0.0     1  2 of 2\n"
    )


def test_the_size_that_is_replayed_is_told() -> None:
    beside = replace(row(0, 0, 0.8, role="ours"), variant="x", values=(("role", "ours"),))
    rows = [replace(one, sizes=(("N", 4096),)) for one in (*ROWS[:1], *ROWS[2:], beside)]
    text = printed(replayed(sweep(rows), ["exhaustive"], 1, None, "time"), "table")
    assert "3 variants at N=4096, 1 of them failed" in text
