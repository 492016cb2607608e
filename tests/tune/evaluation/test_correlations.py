"""Correlations against SciPy's own numbers and against planted ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eatss.tune.evaluation import (
    correlation,
    correlations,
    mean_split,
    most_telling,
    movers,
    of_target,
)
from eatss.tune.population import population
from tests.synthetic_sweeps import row, sweep


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
    assert found.pearson_p == pytest.approx(stats.linregress(x, y).pvalue, abs=1e-9)


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


def test_a_planted_mover_is_found_and_sides_of_the_mean_differ() -> None:
    found = population(
        row(k, t, e, metrics=(("traffic", m), ("predicted_time_s", t)), values=(("x", "a"),))
        for k, (t, e, m) in enumerate(_planted())
    )
    related = correlations(found)
    assert {one.metric for one in related} == {"traffic"}
    assert of_target(related, "performance")[0].pearson > 0.9
    assert of_target(related, "efficiency")[0].pearson < -0.9
    (mover,) = movers(related)
    assert mover.clear
    split = mean_split(found, "traffic")
    assert split is not None
    assert split.above + split.below == 80
    assert split.performance_above > split.performance_below
    assert split.efficiency_above is not None
    assert split.efficiency_below is not None
    assert split.efficiency_above < split.efficiency_below


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


def test_the_time_under_a_profiler_is_the_time_again_and_explains_nothing() -> None:
    rows = [
        row(k, 1.0 + k, 2.0 + k**2, metrics=(("gpu__time_duration.sum", 1.0 + k),
            ("dram__bytes_read.sum", 64.0 + k % 3)))
        for k in range(9)
    ]  # fmt: skip
    found = population(rows)
    assert {one.metric for one in correlations(found)} == {"x", "dram__bytes_read.sum"}
    assert found.column("gpu__time_duration.sum").tolist() == [1.0 + k for k in range(9)]


def test_a_text_of_the_space_counts_as_there_or_not() -> None:
    texts = ["none", "mma", "mma", "none", "none", "mma", "none", "none"]
    found = population(
        row(k, 1.0 + (text == "none") + 0.1 * k, values=(("n", k), ("warps", text)))
        for k, text in enumerate(texts)
    )
    (one,) = [c for c in correlations(found) if c.metric.startswith("warps")]
    assert one.metric == "warps=mma"
    assert one.target == "performance"
    there = np.array([text == "mma" for text in texts], dtype=float)
    assert one.pearson == pytest.approx(np.corrcoef(there, found.performance)[0, 1])
    assert one.pearson > 0.5
    split = mean_split(found, "warps=mma")
    assert split is not None
    assert (split.above, split.below) == (3, 5)


def test_three_texts_have_three_columns_and_rows_without_one_do_not_count() -> None:
    texts = ["a", "b", "c", None, "a", "b", "c", "a"]
    found = population(
        row(k, 1.0 + k, values=(("n", k), *((("model", text),) if text else ())))
        for k, text in enumerate(texts)
    )
    named = {one.metric: one.samples for one in correlations(found) if "=" in one.metric}
    assert named == {"model=a": 7, "model=b": 7, "model=c": 7}
    assert np.isnan(found.column("model=a")[3])
    assert np.isnan(found.column("model=z")).tolist() == [text is None for text in texts]


def test_texts_that_nearly_each_row_has_alone_and_roles_have_no_column() -> None:
    values = [(("name", f"v{k}"), ("role", "ours" if k % 2 else "default")) for k in range(8)]
    found = population(row(k, 1.0 + k, values=one) for k, one in enumerate(values))
    assert correlations(found) == ()
