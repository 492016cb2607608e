"""A space that is a list: neighbours by definition."""

from __future__ import annotations

from hypothesis import given

from eatss.tune.points import variant_key
from eatss.tune.strategies import ListedSpace
from tests.tune.strategies.spaces import spaces


@given(space=spaces())
def test_neighbours_differ_in_one_value(space: ListedSpace) -> None:
    for point in space.points():
        found = space.neighbours(point)
        expected = [
            other
            for other in space.points()
            if sum(other[name] != point[name] for name in space.names) == 1
        ]
        assert sorted(map(variant_key, found)) == sorted(map(variant_key, expected))


def test_the_nearest_values_come_first() -> None:
    space = ListedSpace(["tile"], [{"tile": value} for value in (64, 1, 8, 32, 2)])
    assert [point["tile"] for point in space.neighbours({"tile": 8})] == [2, 32, 1, 64]
    assert space.allows({"tile": 3}) is not None
    assert space.allows({"tile": 8}) is None
