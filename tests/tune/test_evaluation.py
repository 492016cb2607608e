"""Whatever stands in a store, a report of it can be made, and warns of nothing.

Correlations against SciPy's own numbers and against planted ones.

Studies over values and sizes, the model's check, progress and failures.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eatss.base.codec import encode
from eatss.measurement.measurement import Status
from eatss.report.sweep_tables import all_tables, report_text, sentences
from eatss.tune.evaluation import (
    correlation,
    correlations,
    evaluate,
    most_telling,
    of_target,
    summed_up,
)
from eatss.tune.points import Value, variant_key
from eatss.tune.population import count_failures, population
from eatss.tune.rows import Role, Row, Stage, Sweep
from eatss.tune.standing import check_prediction, split_study
from tests.synthetic_sweeps import CARDS, of_rows, programs, row, sweep

AMOUNT = st.one_of(
    st.sampled_from([None, 0.0, 1.0, 1.0 + 1e-15]), st.floats(1e-9, 1e6), st.floats(1.0, 2.0)
)
VALUE: st.SearchStrategy[Value] = st.one_of(
    st.integers(-4, 64), st.integers(-4, 64), st.booleans(), st.sampled_from([0.5, "a"])
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    values = tuple((name, draw(VALUE)) for name in draw(st.sampled_from(["i", "ij", "ijk"])))
    size = draw(st.sampled_from([(), (), (), (("N", 1),), (("N", 0),), (("N", 7), ("M", 2))]))
    return Row(
        variant=variant_key({**dict(values), **dict(size)}),
        values=values,
        status=draw(st.sampled_from(["ok", "ok", "ok", *get_args(Status)])),
        role=draw(st.sampled_from(get_args(Role))),
        stage=draw(st.sampled_from(get_args(Stage))),
        card=draw(st.sampled_from([None, CARDS[0], CARDS[0], CARDS[0]])),
        reason=draw(st.sampled_from(["", "too much: 7"])),
        sizes=size,
        time_s=draw(AMOUNT),
        energy_j=draw(AMOUNT),
        power_w=draw(AMOUNT),
        flops=draw(st.sampled_from([None, 0, 10, 10])),
        metrics=tuple(
            (name, draw(st.sampled_from([0.0, 1.0, 2.5, float("inf"), float("nan")])))
            for name in draw(st.sampled_from([[], ["m"], ["m", "predicted_time_s"]]))
        ),
        at_s=draw(st.floats(0, 9)),
    )


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(st.lists(rows(), max_size=16))
def test_every_store_has_a_report(made: list[Row]) -> None:
    found = evaluate(of_rows(made, CARDS))
    report = summed_up([found, found])
    json.dumps(encode(report), allow_nan=False)
    assert report_text(report)
    for table in all_tables(found):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert "nan" not in {cell for row in table.rows for cell in row}


def swept(*powers_w: float, again: tuple[int, ...] = (), stage: Stage = "careful") -> Sweep:
    """Return a sweep on a card with a limit of 700 W; some variants are measured once more."""
    rows = [row(k, 1.0, power_w, at_s=float(k)) for k, power_w in enumerate(powers_w)]
    rows = [replace(one, power_w=one.energy_j) for one in rows]
    more = [replace(rows[k], stage=stage, energy_j=699.0, power_w=699.0) for k in again]
    return of_rows([*rows, *more], CARDS[:1])


@pytest.mark.parametrize(
    ("sweep", "variants"),
    [
        (swept(600.0, 701.0, 790.0, 700.0), 2),
        (swept(600.0, 701.0, 790.0, again=(2,)), 1),
        (swept(600.0, 701.0, again=(1,)), None),
        (swept(600.0, 701.0, again=(1,), stage="reference"), 1),
        (swept(600.0, 700.0), None),
    ],
)
def test_variants_over_the_limit_count_unless_measured_with_care(
    sweep: Sweep, variants: int | None
) -> None:
    found = evaluate(sweep).evaluation
    assert (found.over_limit and found.over_limit.variants) == variants
    told = [one for one in sentences(found) if "700 W" in one]
    assert len(told) == (variants is not None)
    assert all(f"{variants} of the variants" in one for one in told)


def test_of_a_card_without_a_known_limit_nothing_is_said() -> None:
    sweep = swept(600.0, 790.0)
    unknown = tuple(replace(card, power_limit_w=None) for card in sweep.cards)
    assert evaluate(replace(sweep, cards=unknown)).evaluation.over_limit is None


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.floats(0, 1))
def test_coefficients_are_those_of_their_definitions(seed: int, count: int, mixed: float) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=count)
    y = mixed * x + (1 - mixed) * random.normal(size=count)
    found = correlation("m", x, "performance", y)
    assert found is not None
    assert found.samples == count
    assert found.pearson == pytest.approx(np.corrcoef(x, y)[0, 1])
    ranks = [stats.rankdata(one) for one in (x, y)]
    assert found.spearman == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found.low <= found.pearson <= found.high


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Of 400 samples of a known correlation, 95 % of the intervals hold it, within 3 deviations."""
    random, truth = np.random.default_rng(1), 0.6
    held = 0
    for _ in range(400):
        x, noise = random.normal(size=(2, 40))
        found = correlation("m", x, "performance", truth * x + np.sqrt(1 - truth**2) * noise)
        assert found is not None
        held += found.low <= truth <= found.high
    assert abs(held - 380) <= 3 * np.sqrt(400 * 0.95 * 0.05)


def test_what_is_not_known_of_both_does_not_count() -> None:
    x, y = np.array([1.0, 2, 3, 4, np.nan, 6]), np.array([2.0, 1, 4, 3, 9, np.nan])
    found = correlation("m", x, "power", y)
    assert found is not None
    assert found.samples == 4


@pytest.mark.parametrize("x", [[1.0, 1, 1, 1, 1], [1.0, 2, 3, np.nan, np.nan]])
def test_constants_and_few_samples_have_none(x: list[float]) -> None:
    assert correlation("m", np.array(x), "power", np.arange(5.0)) is None


def _planted() -> list[tuple[float, float, float]]:
    """Return times, energies and a metric that goes with speed and against efficiency."""
    random = np.random.default_rng(2)
    speed = random.uniform(1, 2, 80)
    return [(1 / s, 0.2 * s**3, s + random.normal(0, 0.05)) for s in speed]


def test_a_metric_that_goes_otherwise_with_efficiency_is_found() -> None:
    found = population(
        row(k, t, e, metrics=(("traffic", m), ("predicted_time_s", t)), values=(("x", "a"),))
        for k, (t, e, m) in enumerate(_planted())
    )
    related = correlations(found)
    assert {one.metric for one in related} == {"traffic"}
    assert of_target(related, "performance")[0].pearson > 0.9
    assert of_target(related, "efficiency")[0].pearson < -0.9


def test_correlations_are_sorted_and_the_space_s_values_are_among_them() -> None:
    related = correlations(population(sweep(seed=4).latest))
    for target in ("performance", "efficiency", "product", "power"):
        found = [one.pearson for one in of_target(related, target)]
        assert found == sorted(found)
    names = {one.metric for one in related}
    assert {"tile_i", "occupancy", "l2_sectors_read"} <= names
    assert not any(name.startswith("predicted") for name in names)
    assert set(most_telling(related, 3)) <= names


def test_what_the_load_brings_about_goes_with_nothing() -> None:
    rows = [
        row(k, 1.0 + k, 2.0 + k**2, metrics=(("temperature_c", 40.0 + k), ("sm_clock_mhz", 2e3 - k),
            ("registers", 32.0 + k % 3)))
        for k in range(9)
    ]  # fmt: skip
    assert {one.metric for one in correlations(population(rows))} == {"x", "registers"}


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


@pytest.mark.parametrize(
    "made",
    [
        sweep(),
        sweep(cards=2),
        sweep(energy=False, metrics=False),
        sweep(variants=0, roles=False),
        sweep(variants=1, roles=False, failing=0, references=0, careful=0),
        of_rows([row(1, 1.0, 1.0, flops=None), row(2, 2.0, 1.0, flops=None)]),
    ],
    ids=["plain", "cards", "no energy", "nothing", "one variant", "no operations"],
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
