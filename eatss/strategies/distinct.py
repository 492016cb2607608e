"""Points that decide the same variant are measured once."""

from __future__ import annotations

from collections.abc import Callable

from eatss.point import Point, Value, variant_key
from eatss.strategies.guarded import Guarded
from eatss.strategies.strategy import Asked

_BETWEEN_LOOKS = 1000
"""Points that are answered without being measured between two looks at whether to go on."""


class Distinct:
    """A strategy that asks for one point of those that decide the same.

    The others are answered with what that one costs.

    Args:
        strategy: the strategy.
        decide: says what the variant of a point decides.
        is_over: whether the budget is spent; asked now and then while nothing new comes.
    """

    def __init__(
        self,
        strategy: Guarded,
        decide: Callable[[Point], Point],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._strategy = strategy
        self._decide = decide
        self._is_over = is_over
        self._costs: dict[str, float] = {}
        self._waiting: dict[str, list[dict[str, Value]]] = {}

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: as :meth:`eatss.strategies.Guarded.ask`.
        """
        number = 0
        while True:
            number += 1
            if number % _BETWEEN_LOOKS == 0 and self._is_over():
                return None
            asked = self._strategy.ask()
            if not isinstance(asked, dict):
                return asked
            key = self._key(asked)
            if key in self._costs:
                self._strategy.tell(asked, self._costs[key])
            elif key in self._waiting:
                self._waiting[key].append(asked)
            else:
                self._waiting[key] = []
                return asked

    def expect(self, point: Point) -> None:
        """Learn that a point is measured already and is told later."""
        self._waiting.setdefault(self._key(point), [])
        self._strategy.expect(point)

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point costs, and so all that decide the same."""
        key = self._key(point)
        self._costs[key] = cost
        self._strategy.tell(point, cost)
        for other in self._waiting.pop(key, ()):
            self._strategy.tell(other, cost)

    def close(self) -> None:
        """Let go of what the strategy holds."""
        self._strategy.close()

    def _key(self, point: Point) -> str:
        return variant_key(self._decide(point))
