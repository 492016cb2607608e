"""Strategies: which point of a search space is measured next, given what was found so far.

    strategy = make("local", StrategyJob(space=space, seed=0))
    while isinstance(point := strategy.ask(), dict):
        strategy.tell(point, measured(point))

Several points may be asked for before the first is told, and they are told in any order. None comes
twice, and none outside of the space. A strategy of one's own is a function of a
:class:`StrategyJob` in :data:`STRATEGIES`. Next: ``eatss/tune/replay.py``, which tries strategies
on what was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import chain, count
from math import inf, isfinite, isnan
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.extensions import Registry
from eatss.base.frozen import frozen
from eatss.base.text import duration_s
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

    @property
    def best_first(self) -> Iterator[Configuration]:
        """The points of the model's order that the space allows."""
        return (dict(point) for point in self.ranked or () if self.space.allows(point) is None)


MakeStrategy: TypeAlias = Callable[[StrategyJob], Strategy]
"""Returns a strategy for a space."""

_LEAST_BATCH = 1024


def drawn(job: StrategyJob) -> Iterator[Configuration]:
    """Yield all points of a space in random order.

    All that are left are equally likely. A space is not listed as a whole before a quarter of it
    was drawn.
    """
    dice = Random(job.seed)  # noqa: S311 - no secret
    seen: set[str] = set()
    while len(seen) < len(job.space):
        wanted = min(len(job.space), max(_LEAST_BATCH, 4 * len(seen)))
        batch = job.space.sample(wanted, dice.getrandbits(32))
        dice.shuffle(batch)
        for point in reversed(batch):
            if variant_key(point) not in seen:
                seen.add(variant_key(point))
                yield point


class Steps:
    """A strategy whose points come one after the other.

    Attributes:
        costs: What each point costs that was told, by its key.
        best: The point that costs least, and its cost.
    """

    def __init__(self, steps: Callable[[Steps], Iterator[Configuration | Wait]]) -> None:
        self.costs: dict[str, float] = {}
        self.best: tuple[float, Configuration | None] = (inf, None)
        self._steps = steps(self)

    def ask(self) -> Asked:
        """Return the next point, :data:`WAIT`, or ``None`` after the last."""
        return next(self._steps, None)

    def tell(self, point: Point, cost: float) -> None:
        """Learn a cost."""
        self.costs[variant_key(point)] = cost
        if cost < self.best[0]:
            self.best = (cost, dict(point))

    def measured(self, points: Iterable[Configuration]) -> Iterator[Configuration | Wait]:
        """Ask for points, as far as they were not told, and wait until all are."""
        yield from (point for point in points if variant_key(point) not in self.costs)
        for point in points:
            while variant_key(point) not in self.costs:
                yield WAIT

    def cost(self, point: Point) -> float:
        """Return what a point costs that was told."""
        return self.costs[variant_key(point)]


def exhaustive(job: StrategyJob) -> Strategy:
    """Return the strategy that measures the space in its order."""
    return Steps(lambda _: job.space.points())


def at_random(job: StrategyJob) -> Strategy:
    """Return the strategy that draws points, all that are left with the same chance."""
    return Steps(lambda _: drawn(job))


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
    return Steps(lambda _: chain(job.best_first, drawn(job)))


def local(job: StrategyJob) -> Strategy:
    """Return the strategy that measures all neighbours of a point and goes on from the best.

    It begins at the best point that it was told of, else at the model's first, else at random.
    Where no neighbour is better, or the point where it begins fails, it begins again at random.
    All neighbours of a point may be asked for at once.
    """

    def steps(own: Steps) -> Iterator[Configuration | Wait]:
        first = own.best[1] or next(job.best_first, None)
        new = (point for point in drawn(job) if variant_key(point) not in own.costs)
        for start in filter(None, chain([first], new)):
            yield from own.measured([start])
            here = start
            while own.cost(here) < inf:
                neighbours = job.space.neighbours(here)
                yield from own.measured(neighbours)
                best = min((here, *neighbours), key=own.cost)
                if best is here:
                    break
                here = best

    return Steps(steps)


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
        dice = Random(seed)  # noqa: S311 - no secret
        return dice.sample([*self.points()], min(count, len(self)))

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the list, or a sentence."""
        return None if variant_key(point) in self._points else "it is not in the list"

    def decisions(self, point: Point) -> Configuration:
        """What the variant of a point decides: what it says."""
        return dict(point)

    def neighbours(self, point: Point) -> list[Configuration]:
        """Points that differ in one value, nearest first, as values are ordered."""
        own = {name: point[name] for name in self.names}
        return nearest(own, self.values.values(), self.allows)

    def _taken(self, name: str) -> list[Value]:
        """Return the values of a name; 1, 1.0 and true are three."""
        values = {(type(point[name]), point[name]): point[name] for point in self._points.values()}
        texts = any(isinstance(value, str) for value in values.values())
        return [*values.values()] if texts else sorted(values.values())


_REPEATS = 100


class Guarded:
    """A strategy that asks for no point twice.

    What is proposed besides is answered with what is known of it, what the space does not allow
    with infinity. Where a hundred such proposals more come in a row than there are points that are
    known, one that is new is drawn at random.

    Args:
        name: what it is called.
        strategy: the strategy.
        job: what it was made for.
    """

    def __init__(self, name: str, strategy: Strategy, job: StrategyJob) -> None:
        self.name = name
        self._strategy = strategy
        self._space = job.space
        self._drawn = drawn(job)
        self._costs: dict[str, float] = {}
        self._pending: set[str] = set()

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: ``EATSS-T005``, the strategy proposes what is no point of the space's names.
        """
        for turn in count():
            is_stuck = turn > _REPEATS + len(self._costs)
            asked = next(self._drawn, None) if is_stuck else self._strategy.ask()
            if not isinstance(asked, dict):
                return asked
            if {*asked} != {*self._space.names}:
                theirs, ours = ", ".join(asked) or "nothing", ", ".join(self._space.names)
                raise input_error(
                    "EATSS-T005",
                    f"the strategy '{self.name}' proposes a point of {theirs}, not of {ours}",
                    hint="mend the strategy, or choose another one",
                )
            key = variant_key(asked)
            if key in self._costs:
                self._strategy.tell(asked, self._costs[key])
            elif self._space.allows(asked) is not None:
                self._strategy.tell(asked, inf)
            elif key not in self._pending:
                self._pending.add(key)
                return asked
            elif not is_stuck:
                return WAIT
        raise AssertionError

    def expect(self, point: Point) -> None:
        """Learn that a point is measured already and is told later: it is not asked for."""
        self._pending.add(variant_key(point))

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point cost; no number is infinity."""
        cost = inf if isnan(cost) else cost
        self._costs[variant_key(point)] = cost
        if self._space.allows(point) is None:
            self._strategy.tell(point, cost)


def make(name: str, job: StrategyJob, known: Iterable[tuple[Point, float]] = ()) -> Guarded:
    """Return a strategy.

    Args:
        name: one of :data:`STRATEGIES`, or module and function of one: ``own:my_strategy``.
        job: what it is made for.
        known: points with their costs that were measured before; none is asked for again.

    Raises:
        InputError: ``EATSS-X005`` there is no such strategy, ``EATSS-T001`` the model's order is
            missing.
    """
    strategy = Guarded(name, STRATEGIES.get(name)(job), job)
    for point, cost in known:
        strategy.tell(point, cost)
    return strategy


STRATEGIES: Registry[MakeStrategy] = Registry(
    "eatss.strategies",
    "strategy",
    {"exhaustive": exhaustive, "random": at_random, "model": by_model, "local": local},
)
"""What ``--strategy`` can name."""

_VARIANTS = re.compile(r"(\d+)\s*(?:variants?)?")
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
        for limit in (self.variants, self.seconds):
            if limit is not None and not (limit > 0 and isfinite(limit)):
                raise input_error("EATSS-T004", f"a budget of {limit} is none", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``"300"``, ``"300 variants"``, ``"30m"``, or both with a comma.

        Raises:
            InputError: ``EATSS-T004``, it is no budget, or limits one thing twice.
        """
        variants: list[int] = []
        seconds: list[float] = []
        for part in map(str.strip, text.split(",")):
            if found := _VARIANTS.fullmatch(part):
                variants.append(int(found[1]))
            elif (time_s := duration_s(part)) is not None:
                seconds.append(time_s)
            else:
                raise input_error("EATSS-T004", f"{part!r} is no budget", hint=_HINT)
        if len(variants) > 1 or len(seconds) > 1:
            raise input_error("EATSS-T004", f"{text!r} limits one thing twice", hint=_HINT)
        return cls(variants=next(iter(variants), None), seconds=next(iter(seconds), None))

    def share(self, variants: int = 0, seconds: float = 0.0) -> float:
        """Return how much of it is spent: of what is used up first; over 1 where that was more."""
        spent = ((self.variants, variants), (self.seconds, seconds))
        return max((used / limit for limit, used in spent if limit is not None), default=0.0)

    def __str__(self) -> str:
        variants = [] if self.variants is None else [f"{self.variants} variants"]
        seconds = [] if self.seconds is None else [f"{self.seconds:g} s"]
        return ", ".join(variants + seconds) or "no limit"
