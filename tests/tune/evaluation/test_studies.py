"""Studies over values and sizes, the model's check, progress and failures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.codec import encode
from eatss.tune.evaluation import evaluate, summed_up
from eatss.tune.population import count_failures, count_statuses, population
from eatss.tune.standing import (
    check_prediction,
    influences,
    size_study,
    split_study,
)
from tests.synthetic_sweeps import of_rows, programs, row, sweep


def test_what_decides_alone_explains_all_and_what_does_nothing_explains_nothing() -> None:
    rows = [
        row(0, 1.0 + i, 1.0, values=(("i", i), ("j", j), ("k", k)))
        for i in range(3)
        for j in range(3)
        for k in range(2)
    ]
    found = {one.value: one for one in influences(population(rows))}
    assert found["i"].time == pytest.approx(1.0)
    assert found["j"].time == pytest.approx(0.0, abs=1e-12)
    assert found["i"].energy == 0.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.1, 10)), min_size=8, max_size=30))
def test_epsilon_squared_is_one_less_the_mean_squares(points: list[tuple[int, float]]) -> None:
    rows = [row(0, t, values=(("i", i), ("n", k))) for k, (i, t) in enumerate(points)]
    for one in influences(population(rows)):
        assert one.value == "i"
        logs = np.log([t for _, t in points])
        within = sum(
            len(own) * np.var(own)
            for level in range(4)
            if (own := [x for x, (i, _) in zip(logs, points, strict=True) if i == level])
        )
        total = len(logs) * np.var(logs)
        free = len(logs) - one.levels
        if total > 1e-9:
            wanted = 1 - within / free / (total / (len(logs) - 1))
            assert one.time == pytest.approx(max(0.0, wanted), abs=1e-6)


def test_a_value_of_many_levels_that_does_nothing_explains_nothing_on_average() -> None:
    random, found = np.random.default_rng(1), []
    for _ in range(100):
        rows = [row(0, float(t), values=(("i", k // 2), ("n", k))) for k, t in
                enumerate(random.lognormal(0, 0.1, 40))]  # fmt: skip
        found.append(influences(population(rows))[0].time)
    assert np.median(found) < 0.1


def test_a_role_is_no_value_of_the_space() -> None:
    rows = [row(0, 1.0 + k % 2, values=(("i", k % 2), ("n", k))) for k in range(8)]
    rows += [row(0, 50.0, role="default", values=(("role", "default"),))]
    (found,) = influences(population(rows))
    assert (found.value, found.levels) == ("i", 2)
    assert found.time == pytest.approx(1)


def test_splits_are_set_beside_the_default() -> None:
    def at(split: float, fraction: float, time: float, energy: float, tile: int) -> object:
        values = (("split", split), ("warp_fraction", fraction), ("tile", tile))
        return row(0, time, energy, values=values)

    rows = [
        row(0, 4.0, 8.0, role="default", values=(("tile", 32),)),
        at(0.0, 1.0, 2.0, 4.0, 8),
        at(0.0, 1.0, 3.0, 2.0, 16),
        at(0.5, 1.0, 1.0, 16.0, 8),
    ]
    found = split_study(population(rows))  # type: ignore[arg-type]
    assert [(one.split, one.speedup, one.energy, one.variants) for one in found] == [
        (0.0, 2.0, 0.5, 2),
        (0.5, 4.0, 2.0, 1),
    ]
    assert split_study(population([row(1, 1.0), row(2, 2.0)])) == ()


def test_sizes_are_set_beside_each_other_by_rising_size() -> None:
    found = size_study(sweep(sizes=(2000, 500, 4000), seed=1).latest)
    scales = [one.scale for one in found if one.choice == "ours"]
    assert scales == pytest.approx([500, 2000, 4000])
    assert {one.choice for one in found} == {"default", "paper", "ours", "fastest"}
    assert size_study(sweep(sizes=(2000,)).latest) == ()


def test_the_model_s_pick_is_judged_by_what_was_measured() -> None:
    def one(k: int, time: float, model: float) -> object:
        return row(k, time, metrics=(("predicted_time_s", model),))

    rows = [one(1, 2.0, 1.0), one(2, 1.0, 1.5), one(3, 4.0, 3.0), one(4, 3.0, 2.0), one(5, 8, 9)]
    found = check_prediction(population(rows), "time")  # type: ignore[arg-type]
    assert found is not None
    assert [(r.tried, r.regret) for r in found.regrets] == [(1, 1.0), (5, 0.0)]
    assert found.spearman == pytest.approx(0.9)
    assert check_prediction(population(rows), "energy") is None  # type: ignore[arg-type]


def test_failures_that_differ_in_numbers_alone_are_counted_together() -> None:
    rows = [
        row(1, None, status="rejected by the model", reason="needs 98304 bytes, has 49152"),
        row(2, None, status="rejected by the model", reason="needs 65600 bytes, has 49152"),
        row(3, None, status="timeout", reason="no result after 30 s"),
        row(4, 1.0),
        row(5, 1.0, status="unstable"),
    ]
    first, second = count_failures(rows)
    assert (first.variants, first.example) == (2, "needs 98304 bytes, has 49152")
    assert second.status == "timeout"
    assert {one.status: one.variants for one in count_statuses(rows)}["unstable"] == 1


@pytest.mark.parametrize(
    "made",
    [
        sweep(),
        sweep(cards=2, sizes=(2000, 500)),
        sweep(energy=False, metrics=False),
        sweep(variants=0, roles=False),
        sweep(variants=1, roles=False, failing=0, references=0, careful=0),
        of_rows([row(1, 1.0, 1.0, flops=None), row(2, 2.0, 1.0, flops=None)]),
    ],
    ids=["plain", "cards and sizes", "no energy", "nothing", "one variant", "no operations"],
)
def test_every_sweep_is_evaluated_and_written_as_json(made: object) -> None:
    report = summed_up([evaluate(made)])  # type: ignore[arg-type]
    text = json.dumps(encode(report), allow_nan=False)
    assert text.startswith("{")


def test_without_operations_performance_is_in_runs() -> None:
    found = evaluate(of_rows([row(1, 0.5, 4.0, flops=None)])).evaluation
    assert (found.performance_unit, found.efficiency_unit) == ("runs/s", "runs/J")
    fastest = found.choice("fastest")
    assert fastest is not None
    assert fastest.figures is not None
    assert fastest.figures.performance == 2.0
    assert fastest.figures.efficiency == 0.25


def test_several_sweeps_have_means() -> None:
    report = summed_up([evaluate(one) for one in programs(3)])
    assert len(report.sweeps) == 3
    assert {one.sweeps for one in report.means} == {3}
