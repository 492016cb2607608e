"""Greedy local search: to the best neighbour while one is better, then from another place."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from eatss.point import Point, Value, variant_key
from eatss.strategies.in_order import Unseen
from eatss.strategies.strategy import WAIT, Asked, StrategyJob, Wait


class LocalSearch:
    """Measures all neighbours of a point and goes on from the best of them, if it is better.

    It begins at the best point that it was told of, else at the model's first, else at random.
    Where no neighbour is better, or the point where it begins fails, it begins again at random.
    All neighbours of a point may be asked for at once.
    """

    def __init__(self, job: StrategyJob) -> None:
        self._space = job.space
        self._ranked = job.ranked or ()
        self._unseen = Unseen(job.space, job.seed)
        self._costs: dict[str, float] = {}
        self._best: tuple[float, dict[str, Value] | None] = (inf, None)
        self._steps = self._search()

    def ask(self) -> Asked:
        """Return where to begin, or a neighbour; ``WAIT`` while one of them is not told."""
        return next(self._steps, None)

    def tell(self, point: Point, cost: float) -> None:
        """Learn a cost."""
        self._unseen.see(point)
        self._costs[variant_key(point)] = cost
        if cost < self._best[0]:
            self._best = (cost, dict(point))

    def _search(self) -> Iterator[dict[str, Value] | Wait]:
        here = self._first()
        while here is not None:
            if not self._told(here):
                self._unseen.see(here)
                yield here
            while not self._told(here):
                yield WAIT
            while self._cost(here) < inf:
                neighbours = [dict(point) for point in self._space.neighbours(here)]
                for point in neighbours:
                    if not self._unseen.seen(point):
                        self._unseen.see(point)
                        yield point
                while not all(map(self._told, neighbours)):
                    yield WAIT
                best = min(neighbours, key=self._cost, default=here)
                if self._cost(best) >= self._cost(here):
                    break
                here = best
            here = self._unseen.draw()

    def _first(self) -> dict[str, Value] | None:
        ranked = (dict(point) for point in self._ranked if self._space.allows(point) is None)
        return self._best[1] or next(ranked, None) or self._unseen.draw()

    def _told(self, point: Point) -> bool:
        return variant_key(point) in self._costs

    def _cost(self, point: Point) -> float:
        return self._costs[variant_key(point)]
