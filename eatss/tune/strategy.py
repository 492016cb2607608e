"""What a strategy is: it is asked for points, and told what they cost.

    strategy = make("local", StrategyJob(space=space, seed=0))
    while (point := strategy.ask()) is not None:
        strategy.tell(point, measured(point))

Several points may be asked for before the first is told, and they are told in any order.

Strategies without a model of their own: all points in order, at random, by the model's order.

Greedy local search goes to the best neighbour while one is better, then on from another place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from math import inf
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.tune.points import Configuration, Point, Value, nearest, variant_key

if TYPE_CHECKING:
    from eatss.tune.bound import BoundSpace


SearchSpace: TypeAlias = "BoundSpace | ListedSpace"
"""What points are from: a space that is counted, or the list of those that were recorded."""


class Wait(Enum):
    """The type of :data:`WAIT`."""

    WAIT = "wait"


WAIT: Final = Wait.WAIT
"""Nothing can be asked for until a point that was asked for is told."""

Asked: TypeAlias = Configuration | Wait | None
"""The next point; :data:`WAIT`; ``None`` where nothing is left."""


class Strategy(Protocol):
    """Proposes points, and learns what they cost."""

    def ask(self) -> Asked:
        """Return the next point to measure, :data:`WAIT`, or ``None`` where nothing is left."""
        ...

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point costs, less is better; infinity for a variant that failed.

        It may be a point that was not asked for: one that an earlier session measured.
        """
        ...


@frozen
class StrategyJob:
    """What a strategy is made for.

    Attributes:
        space: Where its points are from.
        seed: What its dice are thrown with; the same seed and results give the same points.
        ranked: Points in the model's order, the best first; ``None`` where there is no model.
    """

    space: SearchSpace
    seed: int = 0
    ranked: tuple[Configuration, ...] | None = None

    def unseen(self) -> Unseen:
        """Return what draws points of its space."""
        return Unseen(self.space, self.seed)


MakeStrategy: TypeAlias = Callable[[StrategyJob], Strategy]
"""Returns a strategy for a space."""


_LEAST_BATCH = 1024


class Unseen:
    """Draws points of a space at random, none that was drawn or named as seen before.

    All points that are left are equally likely. A space is not listed as a whole before a quarter
    of it was drawn.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._space = space
        self._random = Random(seed)  # noqa: S311 - no secret
        self._seen: set[str] = set()
        self._batch: list[Configuration] = []
        self._ended = False

    def take(self, point: Point) -> bool:
        """Never draw a point from now on; return whether it was not seen before."""
        before = len(self._seen)
        self._seen.add(variant_key(point))
        return len(self._seen) > before

    def draw(self) -> Configuration | None:
        """Return a point that was not seen; ``None`` where all were."""
        while not self._ended:
            while self._batch:
                point = self._batch.pop()
                if self.take(point):
                    return point
            self._refill()
        return None

    def _refill(self) -> None:
        """Draw so many points that a quarter of them was seen at most, or all."""
        everything = len(self._space)
        count = min(everything, max(_LEAST_BATCH, 4 * len(self._seen)))
        self._batch = list(self._space.sample(count, self._random.getrandbits(32)))
        self._random.shuffle(self._batch)
        if count == everything and self._seen.issuperset(map(variant_key, self._batch)):
            self._ended = True


class InOrder:
    """Asks for points as they come, then for what is left at random; for none that was told."""

    def __init__(
        self, points: Iterable[Configuration], unseen: Unseen, *, then_random: bool
    ) -> None:
        self._points = iter(points)
        self._unseen = unseen
        self._then_random = then_random

    def ask(self) -> Asked:
        """Return the next point; ``None`` after the last."""
        for point in self._points:
            if self._unseen.take(point):
                return point
        return self._unseen.draw() if self._then_random else None

    def tell(self, point: Point, cost: float) -> None:
        """Do not ask for a point again."""
        del cost
        self._unseen.take(point)


def exhaustive(job: StrategyJob) -> Strategy:
    """Return the strategy that measures the space in its order."""
    return InOrder(job.space.points(), job.unseen(), then_random=False)


def at_random(job: StrategyJob) -> Strategy:
    """Return the strategy that draws points, all that are left with the same chance."""
    return InOrder((), job.unseen(), then_random=True)


def by_model(job: StrategyJob) -> Strategy:
    """Return the strategy that measures what the model finds best first, then the rest at random.

    Raises:
        InputError: ``EATSS-T001``, the model has not put the points in an order.
    """
    if job.ranked is None:
        raise input_error(
            "EATSS-T001",
            "the strategy 'model' needs an order of the points by the model, and there is none",
            hint="choose another one: local, random",
        )
    return InOrder(_ranked(job), job.unseen(), then_random=True)


def _ranked(job: StrategyJob) -> Iterator[Configuration]:
    """Yield the points that the model finds best which the space allows."""
    return (dict(point) for point in job.ranked or () if job.space.allows(point) is None)


class ListedSpace:
    """The points of a list, each once, in its order; all have the same names.

    Attributes:
        names: In order.
        values: What each name takes in them: numbers by size, texts as they come.
    """

    def __init__(self, names: Iterable[str], points: Iterable[Point]) -> None:
        self.names = tuple(names)
        self._points = {variant_key(point): {n: point[n] for n in self.names} for point in points}
        self.values = {name: self._taken(name) for name in self.names}

    def __len__(self) -> int:
        """How many points there are."""
        return len(self._points)

    def points(self) -> Iterator[Configuration]:
        """All points in the order of the list."""
        return map(dict, self._points.values())

    def sample(self, count: int, seed: int) -> list[Configuration]:
        """Distinct points, all with the same chance; all there are where they are fewer."""
        everything = list(self.points())
        dice = Random(seed)  # noqa: S311 - no secret
        return dice.sample(everything, min(count, len(everything)))

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the list, or a sentence."""
        return None if variant_key(point) in self._points else "it is not in the list"

    def neighbours(self, point: Point) -> list[Configuration]:
        """Points that differ in one value, nearest first, as values are ordered."""
        own = {name: point[name] for name in self.names}
        return nearest(own, self.values.values(), self.allows)

    def _taken(self, name: str) -> list[Value]:
        """Return the values of a name; 1, 1.0 and true are three."""
        values = {(type(point[name]), point[name]): point[name] for point in self._points.values()}
        texts = any(isinstance(value, str) for value in values.values())
        return [*values.values()] if texts else sorted(values.values())


class LocalSearch:
    """Measures all neighbours of a point and goes on from the best of them, if it is better.

    It begins at the best point that it was told of, else at the model's first, else at random.
    Where no neighbour is better, or the point where it begins fails, it begins again at random.
    All neighbours of a point may be asked for at once.
    """

    def __init__(self, job: StrategyJob) -> None:
        self._space = job.space
        self._ranked = _ranked(job)
        self._unseen = job.unseen()
        self._costs: dict[str, float] = {}
        self._best: tuple[float, Configuration | None] = (inf, None)
        self._steps = self._search()

    def ask(self) -> Asked:
        """Return where to begin, or a neighbour; ``WAIT`` while one of them is not told."""
        return next(self._steps, None)

    def tell(self, point: Point, cost: float) -> None:
        """Learn a cost."""
        self._unseen.take(point)
        self._costs[variant_key(point)] = cost
        if cost < self._best[0]:
            self._best = (cost, dict(point))

    def _search(self) -> Iterator[Configuration | Wait]:
        here = self._best[1] or next(self._ranked, None) or self._unseen.draw()
        while here is not None:
            if not self._told(here):
                self._unseen.take(here)
                yield here
            while not self._told(here):
                yield WAIT
            while self._cost(here) < inf:
                neighbours = [dict(point) for point in self._space.neighbours(here)]
                for point in neighbours:
                    if self._unseen.take(point):
                        yield point
                while not all(map(self._told, neighbours)):
                    yield WAIT
                best = min(neighbours, key=self._cost, default=here)
                if self._cost(best) >= self._cost(here):
                    break
                here = best
            here = self._unseen.draw()

    def _told(self, point: Point) -> bool:
        return variant_key(point) in self._costs

    def _cost(self, point: Point) -> float:
        return self._costs[variant_key(point)]
