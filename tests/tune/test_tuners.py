"""Optuna's samplers, where it is installed."""

from __future__ import annotations

import sys
from collections import Counter
from importlib.util import find_spec
from math import inf

import pytest

from eatss.tune.points import Point, Value, variant_key
from eatss.tune.strategies import ListedSpace, StrategyJob, make
from eatss.tune.tuners import KnownPoints
from tests.refusals import refusing
from tests.tune.spaces import grid, walk, walk_at_once

OPTUNA = pytest.mark.skipif(find_spec("optuna") is None, reason="Optuna is not installed")
BRIDGES = [pytest.param("optuna:tpe", marks=OPTUNA)]


def halves() -> ListedSpace:
    """Return a space of numbers, texts and truths in which half of the combinations are allowed."""
    points: list[dict[str, Value]] = [
        {"tile": tile, "layout": layout, "staged": staged}
        for tile in range(1, 41)
        for layout in ("row", "column")
        for staged in (False, True)
        if staged == (tile > 4)
    ]
    return ListedSpace(["tile", "layout", "staged"], points)


def cost(point: Point) -> float:
    """Cost of a point of :func:`halves`: some fail, rows of 8 are best."""
    if point["tile"] == 40:
        return inf
    return abs(float(point["tile"]) - 8) + (point["layout"] == "column") + 1


@pytest.mark.parametrize("name", BRIDGES)
def test_points_are_of_the_space_and_come_once(name: str) -> None:
    space = halves()
    asked = walk(make(name, StrategyJob(space=space, seed=3)), cost)
    keys = [variant_key(point) for point in asked]
    assert len(keys) >= 6
    assert len(set(keys)) == len(keys)
    assert all(space.allows(point) is None for point in asked)


@pytest.mark.parametrize("name", BRIDGES)
def test_the_same_seed_gives_the_same_points(name: str) -> None:
    runs = [
        walk(make(name, StrategyJob(space=halves(), seed=seed)), cost, most=40)
        for seed in (5, 5, 6)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", BRIDGES)
def test_what_was_told_is_never_asked_for(name: str) -> None:
    space = halves()
    known = [(point, cost(point)) for point in list(space.points())[::2]]
    asked = walk(make(name, StrategyJob(space=space, seed=1), known), cost)
    both = Counter([variant_key(point) for point, _ in known] + [variant_key(one) for one in asked])
    assert asked
    assert set(both.values()) == {1}


@pytest.mark.parametrize("name", BRIDGES)
def test_several_may_be_asked_for_and_told_in_any_order(name: str) -> None:
    asked = walk_at_once(make(name, StrategyJob(space=halves(), seed=2)), cost, seed=2)
    assert len(asked) >= 6
    assert len(set(asked)) == len(asked)


@OPTUNA
def test_tpe_does_better_than_chance() -> None:
    """Mean of the best of 25 of 400 points by 10 seeds, against that of random points."""
    space = grid(20, 20)

    def bowl(point: Point) -> float:
        return sum((float(value) - 12) ** 2 for value in point.values())

    def best(name: str, seed: int) -> float:
        asked = walk(make(name, StrategyJob(space=space, seed=seed)), bowl, most=25)
        return min(map(bowl, asked))

    means = {
        name: sum(best(name, seed) for seed in range(10)) / 10 for name in ("optuna:tpe", "random")
    }
    assert means["optuna:tpe"] < means["random"]


@OPTUNA
def test_what_optuna_proposes_again_goes_to_the_nearest_new_point() -> None:
    asked = walk(make("optuna:tpe", StrategyJob(space=grid(3, 3))), lambda _: 1.0)
    assert len(asked) == 9


@OPTUNA
def test_a_sampler_that_is_none_is_refused_with_all_that_are() -> None:
    with refusing("EATSS-T001") as caught:
        make("optuna:best", StrategyJob(space=halves()))
    assert "optuna:tpe" in (caught.value.diagnostics[0].hint or "")


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["optuna", *(one for one in sys.modules if one.startswith("optuna."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with refusing("EATSS-T001") as caught:
        make("optuna:tpe", StrategyJob(space=halves()))
    assert caught.value.diagnostics[0].hint == "pip install 'eatss[optuna]'"


def test_the_nearest_new_point_is_nearest_by_position() -> None:
    known = KnownPoints(
        ListedSpace(["a", "s"], [{"a": a, "s": s} for a in (1, 2, 64) for s in "xy"]), 0
    )
    assert known.values == {"a": [1, 2, 64], "s": ["x", "y"]}
    known.use({"a": 1, "s": "x"})
    assert not known.is_new({"a": 1, "s": "x"})
    assert known.nearest_new({"a": 1, "s": "x"}) == {"a": 2, "s": "x"}
    known.use({"a": 2, "s": "x"})
    assert known.nearest_new({"a": 1, "s": "y"}) == {"a": 1, "s": "y"}
    assert known.nearest_new({"a": 2, "s": "x"}) == {"a": 64, "s": "x"}
    for point in known.points():
        known.use(point)
    assert known.nearest_new({"a": 1, "s": "x"}) is None


def test_of_a_large_space_some_points_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eatss.tune.tuners.MOST", 50)
    space = grid(10, 10)
    known = KnownPoints(space, seed=1)
    assert len(known) == 50
    assert any(map(known.allows, space.points()))
