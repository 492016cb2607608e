"""Small spaces and costs for tests of strategies."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf
from random import Random

from hypothesis import strategies as st

from eatss.tune.points import Point, Value, variant_key
from eatss.tune.strategies import WAIT, ListedSpace, Strategy


@st.composite
def spaces(draw: st.DrawFn) -> ListedSpace:
    """Draw some of the points of a small grid of numbers, texts and truths."""
    tiles = draw(st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True))
    axes: list[list[Value]] = [list(tiles), ["row", "column"], [False, True]]
    axes = axes[: draw(st.integers(1, 3))]
    grid: list[tuple[Value, ...]] = list(product(*axes))
    kept = draw(st.lists(st.sampled_from(grid), min_size=1, unique=True))
    names = ("tile_i", "layout", "staged_A")[: len(axes)]
    return ListedSpace(names, [dict(zip(names, values, strict=True)) for values in kept])


def grid(*sizes: int) -> ListedSpace:
    """Return the whole grid ``a0, a1, …`` of so many values each."""
    names = [f"a{index}" for index in range(len(sizes))]
    points = product(*(range(size) for size in sizes))
    return ListedSpace(names, [dict(zip(names, point, strict=True)) for point in points])


def random_costs(space: ListedSpace, seed: int, failing: float = 0.0) -> dict[str, float]:
    """Return a cost for each point by its key, infinity for some."""
    dice = Random(seed)
    return {
        variant_key(point): inf if dice.random() < failing else dice.uniform(1, 2)
        for point in space.points()
    }


def walk(
    strategy: Strategy, cost: Callable[[Point], float], most: int | None = None
) -> list[dict[str, Value]]:
    """Ask and tell, one by one, to the end or ``most`` points."""
    asked: list[dict[str, Value]] = []
    while most is None or len(asked) < most:
        point = strategy.ask()
        assert point is not WAIT, "all that was asked for is told"
        if not isinstance(point, dict):
            break
        asked.append(point)
        strategy.tell(point, cost(point))
    return asked


def walk_at_once(strategy: Strategy, cost: Callable[[Point], float], seed: int) -> list[str]:
    """Ask for several at once, tell in any order; return the keys in the order of asking."""
    dice = Random(seed)
    pending: list[dict[str, Value]] = []
    asked: list[str] = []
    while True:
        point = strategy.ask() if dice.random() < 0.7 or not pending else WAIT
        if isinstance(point, dict):
            pending.append(point)
            asked.append(variant_key(point))
        elif pending:
            one = pending.pop(dice.randrange(len(pending)))
            strategy.tell(one, cost(one))
        else:
            assert point is None, "it waits for nothing"
            return asked
