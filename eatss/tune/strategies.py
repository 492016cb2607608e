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

from eatss.base.diagnostics import InputError, input_error
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


class Unseen:
    """Draws points of a space at random, none that was drawn or named as seen before.

    All points that are left are equally likely. A space is not listed as a whole before a quarter
    of it was drawn.
    """

    def __init__(self, job: StrategyJob) -> None:
        self._space = job.space
        self._random = Random(job.seed)  # noqa: S311 - no secret
        self._seen: set[str] = set()

    def take(self, point: Point) -> bool:
        """Never draw a point from now on; return whether it was not seen before."""
        before = len(self._seen)
        self._seen.add(variant_key(point))
        return len(self._seen) > before

    def draws(self) -> Iterator[Configuration]:
        """Yield points that were not seen, until all were."""
        while len(self._seen) < len(self._space):
            wanted = min(len(self._space), max(_LEAST_BATCH, 4 * len(self._seen)))
            batch = self._space.sample(wanted, self._random.getrandbits(32))
            self._random.shuffle(batch)
            yield from filter(self.take, batch)


Proposes: TypeAlias = Callable[["Proposing"], Iterator[Configuration | Wait]]
"""Yields points in the order in which they are to be measured, as far as that is known."""


class Proposing:
    """A strategy whose points come one after the other; those that it was told of are left out.

    Attributes:
        costs: What each point costs that was told, by its key.
        best: The point that costs least.
        unseen: Draws what was neither proposed nor told.
    """

    def __init__(self, job: StrategyJob, proposes: Proposes) -> None:
        self.costs: dict[str, float] = {}
        self.best: tuple[float, Configuration | None] = (inf, None)
        self.unseen = Unseen(job)
        self._steps = proposes(self)

    def ask(self) -> Asked:
        """Return the next point, :data:`WAIT`, or ``None`` after the last."""
        return next(self._steps, None)

    def tell(self, point: Point, cost: float) -> None:
        """Learn a cost."""
        self.unseen.take(point)
        self.costs[variant_key(point)] = cost
        if cost < self.best[0]:
            self.best = (cost, dict(point))

    def new(self, points: Iterable[Configuration]) -> Iterator[Configuration]:
        """Yield those of some points that are neither proposed nor told."""
        return filter(self.unseen.take, points)


def exhaustive(job: StrategyJob) -> Strategy:
    """Return the strategy that measures the space in its order."""
    return Proposing(job, lambda own: own.new(job.space.points()))


def at_random(job: StrategyJob) -> Strategy:
    """Return the strategy that draws points, all that are left with the same chance."""
    return Proposing(job, lambda own: own.unseen.draws())


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
    return Proposing(job, lambda own: chain(own.new(job.best_first), own.unseen.draws()))


def local(job: StrategyJob) -> Strategy:
    """Return the strategy that measures all neighbours of a point and goes on from the best.

    It begins at the best point that it was told of, else at the model's first, else at random.
    Where no neighbour is better, or the point where it begins fails, it begins again at random.
    All neighbours of a point may be asked for at once.
    """

    def steps(own: Proposing) -> Iterator[Configuration | Wait]:
        begins = chain([own.best[1]], [next(job.best_first, None)], own.unseen.draws())
        for here in filter(None, begins):
            if variant_key(here) not in own.costs:
                own.unseen.take(here)
                yield here
            yield from _until_told(own, [here])
            while own.costs[variant_key(here)] < inf:
                neighbours = job.space.neighbours(here)
                yield from own.new(neighbours)
                yield from _until_told(own, neighbours)
                best = min((here, *neighbours), key=lambda one: own.costs[variant_key(one)])
                if best is here:
                    break
                here = best  # noqa: PLW2901

    return Proposing(job, steps)


def _until_told(own: Proposing, points: Iterable[Point]) -> Iterator[Wait]:
    for point in points:
        while variant_key(point) not in own.costs:
            yield WAIT


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
    with infinity. After a hundred such proposals in a row a point that is new is drawn at random.

    Args:
        name: what it is called.
        strategy: the strategy.
        job: what it was made for.
    """

    def __init__(self, name: str, strategy: Strategy, job: StrategyJob) -> None:
        self.name = name
        self._strategy = strategy
        self._space = job.space
        self._unseen = Unseen(job)
        self._costs: dict[str, float] = {}

    def ask(self) -> Asked:
        """Return the next point to measure, ``WAIT``, or ``None`` where nothing is left.

        Raises:
            InputError: ``EATSS-T005``, the strategy proposes what is no point of the space's names.
        """
        for turn in count():
            is_drawn = turn >= _REPEATS
            asked = next(self._unseen.draws(), None) if is_drawn else self._strategy.ask()
            if not isinstance(asked, dict):
                return asked
            if {*asked} != {*self._space.names}:
                raise self._unlike(asked)
            if self._space.allows(asked) is not None:
                self._strategy.tell(asked, inf)
            elif self._unseen.take(asked) or is_drawn:
                return asked
            elif variant_key(asked) not in self._costs:
                return WAIT  # it is being measured
            else:
                self._strategy.tell(asked, self._costs[variant_key(asked)])
        raise AssertionError

    def expect(self, point: Point) -> None:
        """Learn that a point is measured already and is told later: it is not asked for."""
        if self._space.allows(point) is None:
            self._unseen.take(point)

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point cost; no number is infinity."""
        if self._space.allows(point) is None:
            self._unseen.take(point)
            self._costs[variant_key(point)] = inf if isnan(cost) else cost
            self._strategy.tell(point, self._costs[variant_key(point)])

    def _unlike(self, asked: Point) -> InputError:
        return input_error(
            "EATSS-T005",
            f"the strategy '{self.name}' proposes a point of {', '.join(asked) or 'nothing'}, "
            f"the space has {', '.join(self._space.names)}",
            hint="mend the strategy, or choose another one",
        )


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
