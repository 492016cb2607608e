"""Points that decide the same are asked for once, and the strategy learns of all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.tune.points import Point, variant_key
from eatss.tune.strategies import STRATEGIES, WAIT, Distinct, Guarded, ListedSpace, StrategyJob
from tests.tune.strategies.spaces import grid, spaces, walk_at_once


class Listening(Guarded):
    """Keeps what it is told."""

    def __init__(self, space: ListedSpace, name: str, seed: int) -> None:
        job = StrategyJob(space=space, seed=seed, ranked=tuple(space.points()))
        maker = STRATEGIES.get(name)
        super().__init__(name, maker(job), job)
        self.heard: dict[str, float] = {}

    def tell(self, point: Point, cost: float) -> None:
        self.heard[variant_key(point)] = cost
        super().tell(point, cost)


def first_name(space: ListedSpace) -> str:
    return str(space.names[0])


@settings(max_examples=40)
@given(
    space=spaces(),
    seed=st.integers(0, 2**16),
    name=st.sampled_from(("exhaustive", "random", "model", "local")),
)
def test_one_of_each_is_asked_for_and_all_are_told(
    space: ListedSpace, seed: int, name: str
) -> None:
    decider = first_name(space)

    def decide(point: Point) -> Point:
        return {"tile_i": point[decider]}

    def cost(point: Point) -> float:
        return float(point[decider])

    inner = Listening(space, name, seed)
    asked = walk_at_once(Distinct(inner, decide), cost, seed)
    decided = {variant_key(point): variant_key(decide(point)) for point in space.points()}
    assert sorted(decided[key] for key in asked) == sorted(set(decided.values()))
    assert inner.heard == {variant_key(point): cost(point) for point in space.points()}


def test_what_was_measured_before_stands_for_all_that_decide_the_same() -> None:
    space = grid(3, 4)
    strategy = Distinct(Listening(space, "exhaustive", 0), lambda point: {"tile": point["a0"]})
    strategy.tell({"a0": 0, "a1": 2}, 7.0)
    strategy.expect({"a0": 1, "a1": 0})
    assert strategy.ask() is WAIT
    strategy.tell({"a0": 1, "a1": 0}, 5.0)
    asked = strategy.ask()
    assert isinstance(asked, dict)
    assert asked["a0"] == 2
    strategy.tell(asked, 1.0)
    assert not isinstance(strategy.ask(), dict)


def test_what_is_new_comes_however_much_is_the_same_before_it() -> None:
    space = grid(2, 3000)
    strategy = Distinct(Listening(space, "exhaustive", 0), lambda point: {"tile": point["a0"]})
    for wanted in (0, 1):
        asked = strategy.ask()
        assert isinstance(asked, dict)
        assert asked["a0"] == wanted
        strategy.tell(asked, 1.0)
    assert strategy.ask() is None


def test_it_ends_with_the_budget_where_nothing_new_comes() -> None:
    looks = []

    def is_over() -> bool:
        looks.append(1)
        return len(looks) == 2

    inner = Listening(grid(60, 60), "random", 1)
    strategy = Distinct(inner, lambda _point: {"tile": 1}, is_over)
    asked = strategy.ask()
    assert isinstance(asked, dict)
    strategy.tell(asked, 1.0)
    assert strategy.ask() is None
    assert 1999 <= len(inner.heard) <= 2001
