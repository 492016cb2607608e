from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from eatss.measurement.assemble import (
    energy_estimate,
    inverse,
    mean_estimate,
    paired_ratio,
    ratio_of_estimates,
)
from eatss.measurement.measurement import Estimate

TRIALS = 2000
LEAST, MOST = 0.935, 0.965
"""95 % ± three standard errors of the share in 2000 trials."""


def holds(low: float | None, truth: float, high: float | None) -> bool:
    assert low is not None
    assert high is not None
    return low <= truth <= high


def test_the_interval_of_a_mean_is_students() -> None:
    values = [1.0, 2.0, 4.0, 3.5]
    found = mean_estimate(values)
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert found.low == pytest.approx(expected.low)
    assert found.high == pytest.approx(expected.high)
    assert found.count == 4


def test_one_window_has_no_interval() -> None:
    found = mean_estimate([2.0])
    assert (found.mean, found.low, found.high, found.relative) == (2.0, None, None, None)
    assert energy_estimate([1.0], [1.0, 1.0]).low is None
    assert paired_ratio([2.0], [1.0]).low is None


def test_intervals_of_means_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(TRIALS):
        found = mean_estimate(random.normal(5.0, 0.4, 4).tolist())
        hits += holds(found.low, 5.0, found.high)
    assert LEAST < hits / TRIALS < MOST


def test_intervals_of_differences_cover_the_truth_where_spreads_differ() -> None:
    random = np.random.default_rng(8)
    hits = 0
    for _ in range(TRIALS):
        gross = random.normal(5.0, 0.1, 6).tolist()
        restoring = random.normal(2.0, 0.3, 3).tolist()
        net = [energy - float(np.mean(restoring)) for energy in gross]
        found = energy_estimate(net, restoring)
        hits += holds(found.low, 3.0, found.high)
    assert hits / TRIALS > LEAST


def test_intervals_of_paired_ratios_cover_the_truth_in_spite_of_drift() -> None:
    random = np.random.default_rng(9)
    hits, widths = 0, []
    for _ in range(TRIALS):
        drift = np.linspace(1.0, 1.3, 5)
        own = 2.0 * drift * random.normal(1.0, 0.01, 5)
        other = drift * random.normal(1.0, 0.01, 5)
        found = paired_ratio(own.tolist(), other.tolist())
        hits += holds(found.low, 2.0, found.high)
        assert found.low is not None
        assert found.high is not None
        widths.append((found.high - found.low) / 2)
    assert LEAST < hits / TRIALS < MOST
    assert np.mean(widths) < 0.05  # drift of 30 % cancels


def test_stopping_when_narrow_keeps_nine_in_ten_intervals_right() -> None:
    random = np.random.default_rng(11)
    hits = 0
    for _ in range(TRIALS):
        values = random.normal(1.0, 0.02, 3).tolist()
        while True:
            found = mean_estimate(values)
            assert found.relative is not None
            if found.relative <= 0.01 or len(values) >= 25:
                break
            values.append(random.normal(1.0, 0.02))
        hits += holds(found.low, 1.0, found.high)
    assert hits / TRIALS > 0.89


def test_an_inverse_turns_the_interval_around() -> None:
    ratio = ratio_of_estimates(
        Estimate(mean=2.0, low=1.9, high=2.1, count=3),
        Estimate(mean=1.0, low=1.0, high=1.0, count=3),
    )
    found = inverse(ratio, factor=3.0)
    assert found.value == pytest.approx(1.5)
    assert found.low == pytest.approx(3 / 2.1)
    assert found.high == pytest.approx(3 / 1.9)


def test_a_mean_of_zero_has_no_relative_width() -> None:
    assert mean_estimate([0.0, 0.0]).relative is None
    assert not math.isnan(mean_estimate([0.0, 0.0]).mean)
