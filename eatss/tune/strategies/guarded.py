"""What holds for every strategy, whoever wrote it: no point twice, none outside the space."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf, isnan

from eatss.base.diagnostics import input_error
from eatss.tune.point import Configuration, Point, variant_key
from eatss.tune.strategies.in_order import Unseen
from eatss.tune.strategies.strategy import WAIT, Asked, Strategy, StrategyJob

_REPEATS = 100


class Guarded:
    """A strategy that never asks for a point twice, nor for one that was told.

    The points of ``job.start`` come first. A point that the strategy proposes again is answered
    with what is known of it, one that the space does not allow with infinity. After a hundred
    such proposals in a row a point that is new is drawn at random.
    """

    def __init__(self, name: str, strategy: Strategy, job: StrategyJob) -> None:
        self.name = name
        self._strategy = strategy
        self._space = job.space
        self._unseen = Unseen(job.space, job.seed)
        self._start = deque(job.start)
        self._costs: dict[str, float] = {}
        self._inside: set[str] = set()
        self._held: Configuration | None = None

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: ``EATSS-T006``, the strategy proposes what is no point of the space's names.
        """
        while self._start:
            point = dict(self._start.popleft())
            if self._unseen.take(point):
                return point
        for _ in range(_REPEATS):
            asked = self._proposed()
            if not isinstance(asked, dict):
                return asked
            key = variant_key(asked)
            if not self._allowed(asked, key):
                self._strategy.tell(asked, inf)
            elif self._unseen.take(asked):
                return asked
            elif key in self._costs:
                self._strategy.tell(asked, self._costs[key])
            else:
                self._held = asked
                return WAIT
        return self._unseen.draw()

    def expect(self, point: Point) -> None:
        """Learn that a point is measured already and is told later: it is not asked for."""
        self._unseen.see(point)

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point costs; a cost that is no number is infinite."""
        cost = inf if isnan(cost) else cost
        key = variant_key(point)
        self._unseen.see(point)
        self._costs[key] = cost
        if self._allowed(point, key):
            self._strategy.tell(point, cost)

    def close(self) -> None:
        """Let go of what the strategy holds; nothing is asked of it afterwards."""
        close = getattr(self._strategy, "close", None)
        if close is not None:
            close()

    def _allowed(self, point: Point, key: str) -> bool:
        if key not in self._inside and self._space.allows(point) is None:
            self._inside.add(key)
        return key in self._inside

    def _proposed(self) -> Asked:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        asked = self._strategy.ask()
        if isinstance(asked, dict) and set(asked) != set(self._space.names):
            raise input_error(
                "EATSS-T006",
                f"the strategy '{self.name}' proposes a point of {', '.join(asked) or 'nothing'}, "
                f"the space has {', '.join(self._space.names)}",
                hint="mend the strategy, or choose another one",
            )
        return asked


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
        self._waiting: dict[str, list[Configuration]] = {}

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: as :meth:`eatss.tune.strategies.Guarded.ask`.
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
