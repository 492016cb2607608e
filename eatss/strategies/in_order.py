"""Strategies that do not learn: all points in order, at random, in the order of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eatss.diagnostics import input_error
from eatss.point import Point, Value
from eatss.strategies.strategy import Asked, Strategy, StrategyJob
from eatss.strategies.unseen import Unseen


class InOrder:
    """Asks for points as they come, then for what is left at random; for none that was told."""

    def __init__(
        self, points: Iterable[dict[str, Value]], unseen: Unseen, *, then_random: bool
    ) -> None:
        self._points = iter(points)
        self._unseen = unseen
        self._then_random = then_random

    def ask(self) -> Asked:
        """Return the next point; ``None`` after the last."""
        for point in self._points:
            if not self._unseen.seen(point):
                self._unseen.see(point)
                return point
        return self._unseen.draw() if self._then_random else None

    def tell(self, point: Point, cost: float) -> None:
        """Do not ask for a point again."""
        del cost
        self._unseen.see(point)


def exhaustive(job: StrategyJob) -> Strategy:
    """Return the strategy that measures the space in its order."""
    return InOrder(job.space.points(), Unseen(job.space, job.seed), then_random=False)


def at_random(job: StrategyJob) -> Strategy:
    """Return the strategy that draws points, all that are left with the same chance."""
    return InOrder((), Unseen(job.space, job.seed), then_random=True)


def by_model(job: StrategyJob) -> Strategy:
    """Return the strategy that measures what the model finds best first, then the rest at random.

    Raises:
        InputError: ``EATSS-T003``, the model has not put the points in an order.
    """
    if job.ranked is None:
        raise input_error(
            "EATSS-T003",
            "the strategy 'model' needs an order of the points by the model, and there is none",
            hint="choose another one: local, random",
        )
    return InOrder(_allowed(job), Unseen(job.space, job.seed), then_random=True)


def _allowed(job: StrategyJob) -> Iterator[dict[str, Value]]:
    return (dict(point) for point in job.ranked or () if job.space.allows(point) is None)
