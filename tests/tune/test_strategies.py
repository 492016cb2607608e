"""A space that is a list: neighbours by definition.

Strategies of eatss: what they ask for, in which order, and that no point comes twice.

Budgets as people write them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.tune.points import Point, Value, variant_key
from eatss.tune.strategies import (
    STRATEGIES,
    WAIT,
    Budget,
    ListedSpace,
    StrategyJob,
    drawn,
    make,
)
from tests.refusals import refusing
from tests.tune.spaces import grid, random_costs, spaces, walk, walk_at_once


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


BUILT_IN = ("exhaustive", "random", "model", "local")
seeds = st.integers(0, 2**16)


def job(space: ListedSpace, seed: int = 0) -> StrategyJob:
    """Return a job whose model likes the points of another seed's order."""
    ranked = space.sample(max(1, len(space) // 2), seed)
    return StrategyJob(space=space, seed=seed, ranked=tuple(ranked))


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=30)
@given(space=spaces(), seed=seeds)
def test_each_point_is_asked_for_once_and_all_in_the_end(
    name: str, space: ListedSpace, seed: int
) -> None:
    costs = random_costs(space, seed, failing=0.3)
    asked = walk(make(name, job(space, seed)), lambda point: costs[variant_key(point)])
    assert Counter(map(variant_key, asked)) == Counter(map(variant_key, space.points()))


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=30)
@given(space=spaces(), seed=seeds)
def test_the_same_when_many_are_asked_for_at_once(name: str, space: ListedSpace, seed: int) -> None:
    costs = random_costs(space, seed, failing=0.3)
    strategy = make(name, StrategyJob(space=space, seed=seed, ranked=tuple(space.points())))
    asked = walk_at_once(strategy, lambda point: costs[variant_key(point)], seed)
    assert Counter(asked) == Counter(map(variant_key, space.points()))


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=30)
@given(space=spaces(), seed=seeds, share=st.floats(0, 1))
def test_what_was_told_is_never_asked_for(
    name: str, space: ListedSpace, seed: int, share: float
) -> None:
    costs = random_costs(space, seed, failing=0.3)
    before = space.sample(round(share * len(space)), seed)
    known = [(point, costs[variant_key(point)]) for point in before]
    strategy = make(name, job(space, seed), known)
    asked = walk(strategy, lambda point: costs[variant_key(point)])
    both = [*map(variant_key, asked), *map(variant_key, before)]
    assert Counter(both) == Counter(map(variant_key, space.points()))


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=30)
@given(space=spaces(), seed=seeds)
def test_the_same_seed_and_results_give_the_same_points(
    name: str, space: ListedSpace, seed: int
) -> None:
    costs = random_costs(space, seed)
    first, second = (
        walk(make(name, job(space, seed)), lambda point: costs[variant_key(point)])
        for _ in range(2)
    )
    assert first == second


def test_exhaustive_keeps_the_order_of_the_space() -> None:
    space = grid(3, 4)
    assert walk(make("exhaustive", job(space)), lambda _: 1.0) == list(space.points())


def test_the_model_comes_first_and_its_points_outside_the_space_are_left_out() -> None:
    space = grid(5)
    ranked: tuple[dict[str, Value], ...] = ({"a0": 3}, {"a0": 7}, {"a0": 1})
    strategy = make("model", StrategyJob(space=space, seed=2, ranked=ranked))
    assert [point["a0"] for point in walk(strategy, lambda _: 1.0)][:2] == [3, 1]


def test_without_an_order_of_the_model_that_is_said() -> None:
    with refusing("EATSS-T001"):
        make("model", StrategyJob(space=grid(2)))


def test_random_draws_each_order_equally_often() -> None:
    space = grid(3)
    seen = Counter(
        tuple(point["a0"] for point in walk(make("random", job(space, seed)), lambda _: 1.0))
        for seed in range(3000)
    )
    assert len(seen) == 6
    chi_squared = sum((count - 500) ** 2 / 500 for count in seen.values())
    assert chi_squared < 20.5  # 5 degrees of freedom: exceeded once in a thousand


def test_a_large_space_is_not_listed_to_draw_from_it() -> None:
    space = grid(100, 100)
    counts: list[int] = []

    class Counting(ListedSpace):
        def sample(self, count: int, seed: int) -> list[dict[str, Value]]:
            counts.append(count)
            return super().sample(count, seed)

    job = StrategyJob(space=Counting(space.names, space.points()), seed=1)
    assert len(list(islice(drawn(job), 500))) == 500
    assert counts == [1024]


def bowl(point: Point) -> float:
    """Cost that falls towards the middle of a 9 by 9 grid, along both axes."""
    return sum((float(value) - 4) ** 2 for value in point.values()) + 1


def test_local_search_goes_to_the_best_neighbour() -> None:
    space = grid(9, 9)
    job = StrategyJob(space=space, ranked=({"a0": 0, "a1": 0},))
    asked = walk(make("local", job), bowl, most=1 + 16 + 8)
    assert asked[0] == {"a0": 0, "a1": 0}
    corner, line = asked[1:17], asked[17:]
    assert all(0 in (point["a0"], point["a1"]) for point in corner)
    assert len({variant_key(point) for point in corner}) == 16
    best = min(corner, key=bowl)
    free = next(name for name in best if best[name] == 0)
    assert all({**point, free: 0} == best for point in line)
    assert {"a0": 4, "a1": 4} in line


def test_local_search_begins_again_where_it_is_stuck_or_fails() -> None:
    space = ListedSpace(["a", "b"], [{"a": 0, "b": 0}, {"a": 1, "b": 0}, {"a": 2, "b": 2}])
    job = StrategyJob(space=space, ranked=({"a": 0, "b": 0},))
    fails = walk(make("local", job), lambda point: inf if point["a"] == 0 else 1.0)
    assert len(fails) == 3
    stuck = walk(make("local", job), lambda point: float(str(point["a"])) + 1)
    assert [point["a"] for point in stuck] == [0, 1, 2]


def test_local_search_goes_on_from_the_best_that_it_is_told() -> None:
    space = grid(9, 9)
    known = [({"a0": 4, "a1": 3}, 2.0), ({"a0": 8, "a1": 8}, 33.0)]
    strategy = make("local", StrategyJob(space=space, ranked=({"a0": 0, "a1": 0},)), known)
    point = strategy.ask()
    assert isinstance(point, dict)
    assert point["a0"] == 4 or point["a1"] == 3


def test_local_search_waits_for_the_neighbours() -> None:
    strategy = make("local", StrategyJob(space=grid(3), ranked=({"a0": 1},)))
    assert strategy.ask() == {"a0": 1}
    assert strategy.ask() is WAIT
    strategy.tell({"a0": 1}, 5.0)
    assert [strategy.ask(), strategy.ask()] == [{"a0": 0}, {"a0": 2}]
    assert strategy.ask() is WAIT
    strategy.tell({"a0": 2}, 4.0)
    assert strategy.ask() is WAIT
    strategy.tell({"a0": 0}, 6.0)
    assert strategy.ask() is None


class Stubborn:
    """Proposes the same point for ever, and notes what it is told."""

    def __init__(self, point: Point) -> None:
        self.point = dict(point)
        self.told: list[tuple[Point, float]] = []

    def ask(self) -> dict[str, Value]:
        return self.point

    def tell(self, point: Point, cost: float) -> None:
        self.told.append((point, cost))


@pytest.fixture
def stubborn() -> Stubborn:
    return Stubborn({"a0": 1})


@pytest.fixture
def registered(stubborn: Stubborn) -> Iterator[str]:
    STRATEGIES.register("stubborn", lambda _: stubborn)
    try:
        yield "stubborn"
    finally:
        STRATEGIES.remove("stubborn")


def test_a_strategy_that_repeats_itself_is_answered_and_then_drawn_for(
    stubborn: Stubborn, registered: str
) -> None:
    asked = walk(make(registered, StrategyJob(space=grid(3))), lambda point: float(point["a0"]))
    assert asked[0] == {"a0": 1}
    assert sorted(int(point["a0"]) for point in asked) == [0, 1, 2]
    assert ({"a0": 1}, 1.0) in stubborn.told[1:]


def test_a_point_that_is_still_measured_is_waited_for(registered: str) -> None:
    strategy = make(registered, StrategyJob(space=grid(3)))
    assert strategy.ask() == {"a0": 1}
    assert strategy.ask() is WAIT


def test_a_point_outside_the_space_costs_infinity(stubborn: Stubborn, registered: str) -> None:
    stubborn.point = {"a0": 9}
    asked = walk(make(registered, StrategyJob(space=grid(2))), lambda _: 1.0)
    assert len(asked) == 2
    assert ({"a0": 9}, inf) in stubborn.told


def test_a_point_of_other_names_is_refused(stubborn: Stubborn, registered: str) -> None:
    stubborn.point = {"tile": 1}
    with pytest.raises(InputError, match="proposes a point of tile, not of a0"):
        make(registered, StrategyJob(space=grid(2))).ask()


def test_an_unknown_strategy_is_refused() -> None:
    with refusing("EATSS-X005"):
        make("lokal", StrategyJob(space=grid(2)))


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("300", Budget(variants=300)),
        ("1 variant", Budget(variants=1)),
        ("1.5 h", Budget(seconds=5400)),
        ("300, 30m", Budget(variants=300, seconds=1800)),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("text", ["", "30x", "0", "-5", "20kJ", "300,400", "1e999s"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with refusing("EATSS-T004"):
        Budget.parse(text)


def test_the_share_is_of_what_runs_out_first() -> None:
    budget = Budget(variants=10, seconds=60)
    assert budget.share(variants=5, seconds=45) == 0.75
    assert budget.share(variants=50) == 5
    assert Budget().share(variants=50) == 0


def test_what_is_measured_already_is_waited_for() -> None:
    strategy = make("local", StrategyJob(space=grid(3), ranked=({"a0": 1},)))
    strategy.expect({"a0": 1})
    assert strategy.ask() is WAIT
    strategy.tell({"a0": 1}, 5.0)
    assert strategy.ask() == {"a0": 0}


def test_local_search_begins_again_at_a_point_that_is_new() -> None:
    for seed in range(20):
        space = grid(4, 4)
        asked = walk(make("local", StrategyJob(space=space, seed=seed)), lambda _: 1.0)
        new = [one for one in drawn(StrategyJob(space=space, seed=seed)) if one not in asked[:7]]
        assert asked[7] == new[0]
