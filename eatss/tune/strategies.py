"""Strategies: which point of a search space is measured next, given what was found so far.

In: a space, a seed, the order of the model. Out: points, one at a time, none twice and none outside
the space, within a budget of variants or seconds. A strategy of one's own is a function of
a :class:`StrategyJob` in ``STRATEGIES``. Next: ``eatss/tune/replay.py``, which tries strategies on
what was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import count
from math import inf, isfinite, isnan
from typing import TypeVar

from eatss.base.diagnostics import input_error
from eatss.base.extensions import Registry
from eatss.base.frozen import frozen
from eatss.base.text import duration_s
from eatss.tune.points import Configuration, Point, variant_key
from eatss.tune.strategy import (
    WAIT,
    Asked,
    ListedSpace,
    LocalSearch,
    MakeStrategy,
    SearchSpace,
    Strategy,
    StrategyJob,
    Wait,
    at_random,
    by_model,
    exhaustive,
)

__all__ = [
    "STRATEGIES",
    "WAIT",
    "Asked",
    "Budget",
    "Guarded",
    "ListedSpace",
    "MakeStrategy",
    "SearchSpace",
    "Strategy",
    "StrategyJob",
    "Wait",
    "make",
]


_VARIANTS = re.compile(r"(\d+)\s*(?:variants?)?")
_AMOUNTS = ("{} variants", "{:g} s")
T = TypeVar("T")
_HINT = "write a number of variants, a time, or both: 300, 30m, 300,30m"


@frozen
class Budget:
    """What may be spent; ``None`` is without limit.

    Attributes:
        variants: How many may be measured.
        seconds: How long the sweep may last.
    """

    variants: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for limit, _ in self._limits(0, 0):
            if not (limit > 0 and isfinite(limit)):
                raise input_error("EATSS-T004", f"a budget of {limit} is none", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``"300"``, ``"300 variants"``, ``"30m"``, or both with a comma.

        Raises:
            InputError: ``EATSS-T004``, it is no budget, or limits one thing twice.
        """
        variants: int | None = None
        seconds: float | None = None
        for part in text.split(","):
            one = part.strip()
            if found := _VARIANTS.fullmatch(one):
                variants = _once(variants, int(found[1]), text)
            elif (time_s := duration_s(one)) is not None:
                seconds = _once(seconds, time_s, text)
            else:
                raise input_error("EATSS-T004", f"{one!r} is no budget", hint=_HINT)
        return cls(variants=variants, seconds=seconds)

    def share(self, variants: int = 0, seconds: float = 0.0) -> float:
        """Return how much of it is spent: of what is used up first; over 1 where that was more."""
        spent = self._limits(variants, seconds)
        return max((used / limit for limit, used in spent), default=0.0)

    def _limits(self, *spent: float) -> list[tuple[float, float]]:
        """Return each limit that there is, and what was spent of it."""
        limits = (self.variants, self.seconds)
        pairs = zip(limits, spent, strict=True)
        return [(limit, used) for limit, used in pairs if limit is not None]

    def __str__(self) -> str:
        amounts = zip((self.variants, self.seconds), _AMOUNTS, strict=True)
        parts = (text.format(limit) for limit, text in amounts if limit is not None)
        return ", ".join(parts) or "no limit"


def _once(before: T | None, now: T, text: str) -> T:
    if before is not None:
        raise input_error("EATSS-T004", f"the budget {text!r} limits one thing twice", hint=_HINT)
    return now


_REPEATS = 100

_BETWEEN_LOOKS = 1000
"""Points that are answered without being measured between two looks at whether to go on."""


class Guarded:
    """A strategy that asks for no point twice, and for one of those that decide the same.

    What is proposed besides is answered with what is known of it, what the space does not allow
    with infinity. After a hundred such proposals in a row a point that is new is drawn at random.

    Args:
        name: what it is called.
        strategy: the strategy.
        job: what it was made for.
        decide: says what the variant of a point decides.
        is_over: whether the budget is spent; asked now and then while nothing new comes.
    """

    def __init__(
        self,
        name: str,
        strategy: Strategy,
        job: StrategyJob,
        decide: Callable[[Point], Point] = lambda point: point,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self._strategy = strategy
        self._space = job.space
        self._decide = decide
        self._is_over = is_over
        self._unseen = job.unseen()
        self._costs: dict[str, float] = {}
        self._waiting: dict[str, list[Configuration]] = {}
        self._held: Configuration | None = None

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: ``EATSS-T005``, the strategy proposes what is no point of the space's names.
        """
        repeats = 0
        for number in count(1):
            if number % _BETWEEN_LOOKS == 0 and self._is_over():
                return None
            is_drawn = repeats >= _REPEATS
            asked = self._unseen.draw() if is_drawn else self._proposed()
            if not isinstance(asked, dict):
                return asked
            if self._space.allows(asked) is not None:
                self._strategy.tell(asked, inf)
                repeats += 1
                continue
            key = self._key(asked)
            if not (self._unseen.take(asked) or is_drawn):
                repeats += 1
                if key in self._waiting:
                    self._held = asked
                    return WAIT
            if key in self._costs:
                self._strategy.tell(asked, self._costs[key])
            elif key in self._waiting:
                self._waiting[key].append(asked)
            else:
                self._waiting[key] = []
                return asked
        raise AssertionError

    def expect(self, point: Point) -> None:
        """Learn that a point is measured already and is told later: it is not asked for."""
        self._unseen.take(point)
        self._waiting.setdefault(self._key(point), [])

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point, and all that decide the same, cost; no number is infinity."""
        key = self._key(point)
        self._costs[key] = cost = inf if isnan(cost) else cost
        for one in (point, *self._waiting.pop(key, ())):
            self._unseen.take(one)
            if self._space.allows(one) is None:
                self._strategy.tell(one, cost)

    def close(self) -> None:
        """Let go of what the strategy holds; nothing is asked of it afterwards."""
        close = getattr(self._strategy, "close", None)
        if close is not None:
            close()

    def _key(self, point: Point) -> str:
        return variant_key(self._decide(point))

    def _proposed(self) -> Asked:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        asked = self._strategy.ask()
        if isinstance(asked, dict) and set(asked) != set(self._space.names):
            raise input_error(
                "EATSS-T005",
                f"the strategy '{self.name}' proposes a point of {', '.join(asked) or 'nothing'}, "
                f"the space has {', '.join(self._space.names)}",
                hint="mend the strategy, or choose another one",
            )
        return asked


def make(
    name: str,
    job: StrategyJob,
    known: Iterable[tuple[Point, float]] = (),
    *,
    decide: Callable[[Point], Point] = lambda point: point,
    is_over: Callable[[], bool] = lambda: False,
) -> Guarded:
    """Return a strategy.

    Args:
        name: one of :data:`STRATEGIES`, or module and function of one: ``own:my_strategy``.
        job: what it is made for.
        known: points with their costs that were measured before; none is asked for again.
        decide: as of :class:`Guarded`.
        is_over: too.

    Raises:
        InputError: ``EATSS-X005`` there is no such strategy, ``EATSS-T001`` the model's order is
            missing.
    """
    strategy = Guarded(name, STRATEGIES.get(name)(job), job, decide, is_over)
    for point, cost in known:
        strategy.tell(point, cost)
    return strategy


STRATEGIES: Registry[MakeStrategy] = Registry(
    "eatss.strategies",
    "strategy",
    {
        "exhaustive": exhaustive,
        "random": at_random,
        "model": by_model,
        "local": LocalSearch,
    },
)
"""What ``--strategy`` can name."""
