"""Optuna's and Kernel Tuner's strategies, where they are installed."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Any

import numpy as np
import pytest

from eatss.base.diagnostics import InputError
from eatss.tune.points import Point, Value, variant_key
from eatss.tune.strategies import WAIT, ListedSpace, StrategyJob, make
from eatss.tune.strategy import KnownPoints
from tests.tune.spaces import grid, walk, walk_at_once

OPTUNA = pytest.mark.skipif(find_spec("optuna") is None, reason="Optuna is not installed")
KERNEL_TUNER = pytest.mark.skipif(
    find_spec("kernel_tuner") is None, reason="Kernel Tuner is not installed"
)
BRIDGES = [
    pytest.param("optuna:tpe", marks=OPTUNA),
    pytest.param("optuna:random", marks=OPTUNA),
    *(
        pytest.param(f"kernel-tuner:{name}", marks=KERNEL_TUNER)
        for name in ("genetic_algorithm", "mls", "random_sample", "diff_evo", "bayes_opt")
    ),
]


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
def test_the_same_seed_gives_the_same_points_and_nobody_elses_dice_are_thrown(name: str) -> None:
    make(name, StrategyJob(space=halves()))  # to load its package may throw dice
    before = random.getstate(), str(np.random.get_state()), np.random.default_rng
    runs = [
        walk(make(name, StrategyJob(space=halves(), seed=seed)), cost, most=40)
        for seed in (5, 5, 6)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert before == (random.getstate(), str(np.random.get_state()), np.random.default_rng)


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


@KERNEL_TUNER
def test_the_thread_ends_with_the_strategy() -> None:
    before = threading.active_count()
    strategy = make("kernel-tuner:mls", StrategyJob(space=halves()))
    assert isinstance(strategy.ask(), dict)
    assert strategy.ask() is WAIT
    assert threading.active_count() == before + 1
    strategy.close()
    assert threading.active_count() == before
    assert strategy.ask() is None


@KERNEL_TUNER
def test_a_strategy_of_kernel_tuner_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mls = import_module("kernel_tuner.strategies.mls")

    def fails(*_: Any) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(mls, "tune", fails)
    with pytest.raises(InputError, match="strategy 'mls' failed: RuntimeError: no luck") as caught:
        make("kernel-tuner:mls", StrategyJob(space=halves())).ask()
    assert caught.value.code == "EATSS-T005"


@KERNEL_TUNER
def test_what_kernel_tuner_prints_is_no_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mls = import_module("kernel_tuner.strategies.mls")

    def talks(*_: Any) -> None:
        print("talk")  # noqa: T201

    monkeypatch.setattr(mls, "tune", talks)
    assert make("kernel-tuner:mls", StrategyJob(space=halves())).ask() is None
    assert capsys.readouterr() == ("", "talk\n")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("optuna:best", marks=OPTUNA),
        pytest.param("kernel-tuner", marks=KERNEL_TUNER),
        pytest.param("kernel-tuner:brute_force", marks=KERNEL_TUNER),
    ],
)
def test_what_the_bridge_does_not_have_is_refused_with_all_that_it_has(name: str) -> None:
    with pytest.raises(InputError) as caught:
        make(name, StrategyJob(space=halves()))
    assert caught.value.code == "EATSS-T001"
    hint = caught.value.diagnostics[0].hint
    assert hint is not None
    assert f"{name.partition(':')[0]}:" in hint


@pytest.mark.parametrize("name", ["optuna:tpe", "kernel-tuner:mls"])
def test_a_package_that_is_missing_is_named_with_its_extra(
    name: str, without: Callable[[str], None]
) -> None:
    family = name.partition(":")[0]
    without(family.replace("-", "_"))
    with pytest.raises(InputError) as caught:
        make(name, StrategyJob(space=halves()))
    assert caught.value.code == "EATSS-T002"
    assert caught.value.diagnostics[0].hint == f"pip install 'eatss[{family}]'"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what makes a package as if it were not installed."""

    def hide(package: str) -> None:
        for name in [package, *(one for one in sys.modules if one.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setitem(sys.modules, f"{package}.interface", None)

    return hide


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
    for point in known.points:
        known.use(point)
    assert known.nearest_new({"a": 1, "s": "x"}) is None


def test_of_a_large_space_some_points_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eatss.tune.strategy.MOST", 50)
    space = grid(10, 10)
    known = KnownPoints(space, seed=1)
    assert len(known.points) == 50
    assert not all(map(known.holds, space.points()))
