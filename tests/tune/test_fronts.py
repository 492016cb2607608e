"""Hull and front against their definitions.

What choosing for speed alone or energy alone costs.

Ranks with ties, choices, and means over programs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eatss.tune.population import (
    EQUAL,
    convex_hull,
    equal_speed_spread,
    pareto_front,
    population,
    trade_off,
)
from eatss.tune.standing import choices, geometric_means, standing
from tests.synthetic_sweeps import row

COORDINATE = st.integers(-20, 20)
POINTS = st.lists(st.tuples(COORDINATE, COORDINATE), min_size=1, max_size=25)


def columns(points: list[tuple[int, int]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = np.array(points, dtype=float)
    return found[:, 0], found[:, 1]


def turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@settings(max_examples=50, deadline=None)
@given(POINTS)
def test_every_point_lies_within_the_hull_and_every_corner_is_a_point_that_it_needs(
    points: list[tuple[int, int]],
) -> None:
    hull = [points[k] for k in convex_hull(*columns(points))]
    assert len(set(hull)) == len(hull)
    assert min(points) in hull
    assert max(points) in hull
    if len(hull) < 3:
        assert all(turn(hull[0], hull[-1], point) == 0 for point in points)
        return
    for a, b, c in zip(hull, hull[1:] + hull[:1], hull[2:] + hull[:2], strict=True):
        assert turn(a, b, c) > 0  # strictly convex, counterclockwise
        assert all(turn(a, b, point) >= 0 for point in points)


@settings(max_examples=50, deadline=None)
@given(POINTS)
def test_the_front_is_what_no_other_beats(points: list[tuple[int, int]]) -> None:
    def beaten(one: tuple[int, int]) -> bool:
        return any(other[0] >= one[0] and other[1] >= one[1] and other != one for other in points)

    front = pareto_front(*columns(points))
    assert sorted(front) == [k for k, point in enumerate(points) if not beaten(point)]
    assert [points[k][0] for k in front] == sorted(points[k][0] for k in front)


def test_what_was_not_measured_is_on_no_frontier() -> None:
    x, y = np.array([1.0, 2.0, 9.0, 3.0]), np.array([1.0, 4.0, np.nan, 0.0])
    assert 2 not in convex_hull(x, y)
    assert pareto_front(x, y) == (1, 3)


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


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(0, 29))
def test_a_rank_counts_what_is_better(values: list[int], which: int) -> None:
    mine = values[which % len(values)]
    found = standing(np.array(values, dtype=float), float(mine))
    better = [one for one in values if one > mine]
    equal = values.count(mine)
    assert found.rank == len(better) + 1
    assert found.count == len(values)
    worse = len(values) - len(better) - equal
    assert found.percentile == pytest.approx(100 * (worse + equal / 2) / len(values))
    assert found.share_of_best == pytest.approx(mine / max(values))


def test_what_was_not_measured_has_no_rank() -> None:
    assert standing(np.array([1.0, np.nan, 3.0]), 3.0).count == 2


def test_choices_of_a_small_sweep() -> None:
    rows = (
        row(1, 4.0, 4.0, role="default"),
        row(2, 2.0, 3.0),
        row(3, 1.0, 5.0),
        row(4, None, role="paper", status="launch error", reason="too much shared memory"),
        row(5, 1.5, 2.0, role="ours"),
    )
    found = {one.name: one for one in choices(population(rows), rows)}
    assert list(found) == ["median", "default", "paper", "ours", "fastest", "least energy"]
    variant = {name: one.figures and one.figures.variant for name, one in found.items()}
    assert variant["median"] == rows[1].variant  # of 4, the slower one in the middle
    assert variant["paper"] is None
    assert found["paper"].reason == "launch error: too much shared memory"
    assert variant["fastest"] == rows[2].variant
    assert variant["least energy"] == variant["ours"] == rows[4].variant
    ours = found["ours"]
    assert ours.by_performance is not None
    assert ours.by_performance.rank == 2
    assert ours.by_efficiency is not None
    assert ours.by_efficiency.rank == 1


def test_of_several_rows_of_a_role_the_one_of_least_energy_stands() -> None:
    rows = (row(1, 1.0, 9.0, role="ours"), row(2, 2.0, 3.0, role="ours"))
    (ours,) = (one for one in choices(population(rows), rows) if one.name == "ours")
    assert ours.figures is not None
    assert ours.figures.variant == rows[1].variant
    assert ours.rows == 2


def test_nothing_measured_gives_no_choices() -> None:
    rows = (row(1, None, status="timeout"),)
    assert choices(population(rows), rows) == ()


def test_means_are_geometric_and_over_programs_that_have_both() -> None:
    programs = [
        (row(1, 2.0, 8.0, role="default"), row(2, 1.0, 2.0, role="ours")),
        (row(1, 8.0, 2.0, role="default"), row(2, 1.0, 2.0, role="ours")),
        (row(1, 3.0, 1.0, role="default"), row(2, 2.0, 3.0)),
    ]
    found = geometric_means(choices(population(rows), rows) for rows in programs)
    (mean,) = (one for one in found if (one.choice, one.over) == ("ours", "default"))
    assert mean.sweeps == 2
    assert mean.speedup == pytest.approx(math.sqrt(2 * 8))
    assert mean.energy == pytest.approx(math.sqrt(2 / 8 * 2 / 2))
    assert mean.ppw == pytest.approx(2.0)
    assert not [one for one in found if one.choice == "paper"]
