"""Hull, front and weighted winners against their definitions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from eatss.tune.population import convex_hull, pareto_front, section, weighted_winners

COORDINATE = st.integers(-20, 20)
POINTS = st.lists(st.tuples(COORDINATE, COORDINATE), min_size=1, max_size=25)
COSTS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=25)


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
def test_the_hull_has_scipy_s_corners(points: list[tuple[int, int]]) -> None:
    distinct = sorted(set(points))
    first, last = distinct[0], distinct[-1]
    if all(turn(first, last, point) == 0 for point in distinct):
        return  # scipy refuses points on a line; the test above has them
    theirs = {distinct[k] for k in ConvexHull(np.array(distinct)).vertices}
    assert {points[k] for k in convex_hull(*columns(points))} == theirs


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


def test_a_vertical_line_cuts_the_hull_at_its_lowest_and_highest_point() -> None:
    x, y = np.array([0.0, 4.0, 4.0, 0.0, 2.0]), np.array([0.0, 0.0, 4.0, 2.0, 1.0])
    hull = convex_hull(x, y)
    assert section(hull, x, y, 2.0) == (0.0, 3.0)
    assert section(hull, x, y, 4.0) == (0.0, 4.0)
    assert section(hull, x, y, 4.1) is None


@settings(max_examples=50, deadline=None)
@given(POINTS, st.integers(0, 40))
def test_a_section_bounds_the_points_on_its_line(points: list[tuple[int, int]], k: int) -> None:
    x, y = columns(points)
    point = points[k % len(points)]
    cut = section(convex_hull(x, y), x, y, point[0])
    assert cut is not None
    assert cut[0] - 1e-9 <= point[1] <= cut[1] + 1e-9


@settings(max_examples=50, deadline=None)
@given(COSTS)
def test_the_winner_of_a_range_has_the_least_weighted_cost_in_it(
    costs: list[tuple[int, int]],
) -> None:
    time_s, energy_j = columns(costs)
    found = weighted_winners(time_s, energy_j)
    assert found[0].low == 0
    assert found[-1].high == 1
    assert all(a.high == b.low for a, b in itertools.pairwise(found))
    least_t, least_e = min(t for t, _ in costs), min(e for _, e in costs)
    for one in found:
        for share in (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)):
            alpha = Fraction(one.low) + share * (Fraction(one.high) - Fraction(one.low))

            def cost(k: int, alpha: Fraction = alpha) -> Fraction:
                t, e = costs[k]
                return alpha * Fraction(t, least_t) + (1 - alpha) * Fraction(e, least_e)

            least = min(cost(k) for k in range(len(costs)))
            assert float(cost(one.point) - least) <= 1e-12


def test_at_both_ends_one_objective_rules() -> None:
    time_s, energy_j = np.array([1.0, 1.2, 2.0, 1.9]), np.array([5.0, 3.0, 2.9, 4.0])
    found = weighted_winners(time_s, energy_j)
    assert [one.point for one in found] == [2, 1, 0]
    assert weighted_winners(time_s, np.full(4, np.nan)) == ()


@pytest.mark.parametrize("count", [1, 2])
def test_few_points_are_their_own_hull(count: int) -> None:
    x = np.arange(count, dtype=float)
    assert convex_hull(x, x) == tuple(range(count))
    assert convex_hull(np.array([]), np.array([])) == ()
