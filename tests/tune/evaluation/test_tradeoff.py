"""What choosing for speed alone or energy alone costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.tune.population import EQUAL, equal_speed_spread, population, trade_off
from tests.synthetic_sweeps import row, sweep


def test_the_numbers_of_a_small_example() -> None:
    """The fastest takes 1 s and 8 J, the thriftiest 1.25 s and 5 J."""
    found = population(
        [
            row(1, 1.0, 8.0),
            row(2, 1.25, 5.0),
            row(3, 1.1, 6.0),
            row(4, 1.25, 10.0),
            row(5, 4.0, 7.0),
        ]
    )
    one = trade_off(found)
    assert one is not None
    assert one.energy_wasted == pytest.approx(0.6)
    assert one.time_lost == pytest.approx(0.25)
    assert one.right_of_vertical == 2  # the fastest itself and number 3
    assert one.above_horizontal == 3
    assert one.upper_right == 1  # number 3
    assert one.equal_speed is not None
    assert one.equal_speed.ratio == pytest.approx(2.0)
    assert one.equal_speed.count == 2
    low, high = one.efficiency_at_thriftiest
    assert low == pytest.approx(0.2)
    assert high == pytest.approx(0.4)
    assert set(one.pareto) == {found.rows[k].variant for k in (0, 1, 2)}


def test_without_energy_there_is_no_trade_off() -> None:
    assert trade_off(population([row(1, 1.0), row(2, 2.0)])) is None


def test_a_variant_without_energy_does_not_count() -> None:
    one = trade_off(population([row(1, 1.0), row(2, 2.0, 4.0), row(3, 2.5, 3.0)]))
    assert one is not None
    assert one.time_lost == pytest.approx(0.25)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(10, 11), st.floats(1, 9, allow_subnormal=False)), max_size=20))
def test_the_spread_is_that_of_all_pairs(points: list[tuple[float, float]]) -> None:
    speed, energy = (np.array([point[k] for point in points]) for k in (0, 1))
    ratios = [
        max(a[1], b[1]) / min(a[1], b[1])
        for k, a in enumerate(points)
        for b in points[k + 1 :]
        if max(a[0], b[0]) <= min(a[0], b[0]) * (1 + EQUAL)
    ]
    found = equal_speed_spread(speed, energy)
    if not ratios:
        assert found is None
    else:
        assert found is not None
        assert found.ratio == max(ratios)


def test_a_made_up_sweep_has_a_trade_off() -> None:
    found = population(sweep(seed=3).latest)
    one = trade_off(found)
    assert one is not None
    assert one.energy_wasted > 0
    assert one.time_lost > 0
    assert len(one.weighted) > 1
