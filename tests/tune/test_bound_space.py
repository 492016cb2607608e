"""Strategies on a space that is declared, not listed."""

from __future__ import annotations

from collections import Counter

import pytest

from eatss.tune.bound import bind
from eatss.tune.points import Point, Space, variant_key
from eatss.tune.strategies import SearchSpace, StrategyJob, make
from tests.tune.spaces import walk, walk_at_once

SPACE = Space(
    name="threads",
    iterators={
        "threads_i": {"powers": (2, 1, 16)},
        "tile_i": {"start": "threads_i", "stop": 16, "step": "threads_i"},
        "threads_j": {"powers": (2, 1, 16)},
    },
    filters={"too many threads": "threads_i * threads_j <= 64"},
)


@pytest.mark.parametrize("name", ["exhaustive", "random", "model", "local"])
def test_all_points_of_a_declared_space_come_once(name: str) -> None:
    space: SearchSpace = bind(SPACE, {})
    ranked = tuple(space.sample(9, 1))
    job = StrategyJob(space=space, seed=4, ranked=ranked)

    def cost(point: Point) -> float:
        return abs(float(point["tile_i"]) - 8) + abs(float(point["threads_j"]) - 8)

    everything = Counter(map(variant_key, space.points()))
    assert Counter(map(variant_key, walk(make(name, job), cost))) == everything
    assert Counter(walk_at_once(make(name, job), cost, seed=3)) == everything
