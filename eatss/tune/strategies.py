"""Strategies: which point of a search space is measured next, given what was found so far.

In: a space, a seed, the order of the model. Out: points, one at a time, none twice and none outside
the space, within a budget of variants, seconds or joules. A strategy of one's own is a function of
a :class:`StrategyJob` in ``STRATEGIES``. Next: ``eatss/tune/replay.py``, which tries strategies on
what was recorded.

A strategy is asked for points, and told what they cost::

    strategy = make("local", StrategyJob(space=space, seed=0))
    while (point := strategy.ask()) is not None:
        strategy.tell(point, measured(point))

Several points may be asked for before the first is told, and they are told in any order. Those
without a model of their own are here: all points in order, at random, by the model's order. Greedy
local search goes to the best neighbour while one is better, then on from another place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from math import inf, isfinite, isnan
from random import Random
from typing import Final, Protocol, TypeAlias, TypeVar

from eatss.base.diagnostics import input_error
from eatss.base.extensions import Registry
from eatss.base.frozen import Names, frozen
from eatss.base.text import duration_s
from eatss.tune.points import Configuration, Decide, Point, Value, variant_key


class SearchSpace(Protocol):
    """What strategies need of a space; :class:`eatss.tune.bound.BoundSpace` is one."""

    @property
    def names(self) -> Names:
        """The names of a point's values, in order."""
        ...

    def __len__(self) -> int:
        """How many points there are."""
        ...

    def points(self) -> Iterator[Configuration]:
        """All points in a fixed order."""
        ...

    def sample(self, count: int, seed: int) -> Sequence[Configuration]:
        """Distinct points, drawn uniformly, the same for the same seed; all where there are fewer.

        Their order may be any.
        """
        ...

    def allows(self, point: Point) -> str | None:
        """``None`` for a point of the space, or why it is none."""
        ...

    def neighbours(self, point: Point) -> Sequence[Configuration]:
        """Points that differ in one value, nearest values first."""
        ...


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
        choice: What stands behind the colon of its name: ``tpe`` of ``optuna:tpe``.
    """

    space: SearchSpace
    seed: int = 0
    ranked: tuple[Configuration, ...] | None = None
    choice: str = ""


MakeStrategy: TypeAlias = Callable[[StrategyJob], Strategy]
"""Returns a strategy for a space; it may read ``job.choice``, what stands behind a colon."""


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

    def seen(self, point: Point) -> bool:
        """Return whether a point was drawn or named."""
        return variant_key(point) in self._seen

    def see(self, point: Point) -> None:
        """Never draw a point from now on."""
        self._seen.add(variant_key(point))

    def take(self, point: Point) -> bool:
        """Never draw a point from now on; return whether it was not seen before."""
        new = not self.seen(point)
        self.see(point)
        return new

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
        if count == everything and all(map(self.seen, self._batch)):
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
        InputError: ``EATSS-T001``, the model has not put the points in an order.
    """
    if job.ranked is None:
        raise input_error(
            "EATSS-T001",
            "the strategy 'model' needs an order of the points by the model, and there is none",
            hint="choose another one: local, random",
        )
    return InOrder(_ranked(job), Unseen(job.space, job.seed), then_random=True)


def _ranked(job: StrategyJob) -> Iterator[Configuration]:
    """Yield the points that the model finds best which the space allows."""
    return (dict(point) for point in job.ranked or () if job.space.allows(point) is None)


class ListedSpace:
    """The points of a list, each once, in its order; all have the same names."""

    def __init__(self, names: Iterable[str], points: Iterable[Point]) -> None:
        self.names = tuple(names)
        self._points = {variant_key(point): {n: point[n] for n in self.names} for point in points}
        self._places = {name: self._place(name) for name in self.names}

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
        found: list[tuple[int, int, int, Configuration]] = []
        for other in self._points.values():
            differing = [n for n in self.names if _typed(other[n]) != _typed(point[n])]
            if len(differing) == 1:
                (name,) = differing
                here, there = (self._places[name][_typed(one[name])] for one in (point, other))
                found.append((abs(there - here), self.names.index(name), there, dict(other)))
        return [point for *_, point in sorted(found, key=lambda one: one[:3])]

    def _place(self, name: str) -> dict[tuple[str, Value], int]:
        """Return the position of each value of a name: numbers by size, texts as they come."""
        values = list(dict.fromkeys(_typed(point[name]) for point in self._points.values()))
        if not any(isinstance(value, str) for _, value in values):
            values.sort(key=lambda one: one[1])
        return {value: place for place, value in enumerate(values)}


def _typed(value: Value) -> tuple[str, Value]:
    return type(value).__name__, value


class LocalSearch:
    """Measures all neighbours of a point and goes on from the best of them, if it is better.

    It begins at the best point that it was told of, else at the model's first, else at random.
    Where no neighbour is better, or the point where it begins fails, it begins again at random.
    All neighbours of a point may be asked for at once.
    """

    def __init__(self, job: StrategyJob) -> None:
        self._space = job.space
        self._ranked = _ranked(job)
        self._unseen = Unseen(job.space, job.seed)
        self._costs: dict[str, float] = {}
        self._best: tuple[float, Configuration | None] = (inf, None)
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

    def _search(self) -> Iterator[Configuration | Wait]:
        here = self._best[1] or next(self._ranked, None) or self._unseen.draw()
        while here is not None:
            if not self._told(here):
                self._unseen.see(here)
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


_VARIANTS = re.compile(r"(\d+)\s*(?:variants?)?")
_ENERGY = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M)?J")
_ENERGY_J = {None: 1.0, "k": 1e3, "M": 1e6}
_AMOUNTS = ("{} variants", "{:g} s", "{:g} J")
T = TypeVar("T")
_HINT = "write a number of variants, a time, an energy, or several: 300, 30m, 20kJ, 300,30m"


@frozen
class Budget:
    """What may be spent; ``None`` is without limit.

    Attributes:
        variants: How many may be measured.
        seconds: How long the sweep may last.
        joules: What the card may draw.
    """

    variants: int | None = None
    seconds: float | None = None
    joules: float | None = None

    def __post_init__(self) -> None:
        for limit, _ in self._limits(0, 0, 0):
            if not (limit > 0 and isfinite(limit)):
                raise input_error("EATSS-T004", f"a budget of {limit} is none", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``"300"``, ``"300 variants"``, ``"30m"``, ``"20kJ"``, or several with commas.

        Raises:
            InputError: ``EATSS-T004``, it is no budget, or limits one thing twice.
        """
        variants: int | None = None
        seconds = joules = None
        for part in text.split(","):
            one = part.strip()
            if found := _VARIANTS.fullmatch(one):
                variants = _once(variants, int(found[1]), text)
            elif found := _ENERGY.fullmatch(one):
                joules = _once(joules, float(found[1]) * _ENERGY_J[found[2]], text)
            elif (time_s := duration_s(one)) is not None:
                seconds = _once(seconds, time_s, text)
            else:
                raise input_error("EATSS-T004", f"{one!r} is no budget", hint=_HINT)
        return cls(variants=variants, seconds=seconds, joules=joules)

    def share(self, variants: int = 0, seconds: float = 0.0, joules: float = 0.0) -> float:
        """Return how much of it is spent: of what is used up first; over 1 where that was more."""
        spent = self._limits(variants, seconds, joules)
        return max((used / limit for limit, used in spent), default=0.0)

    def _limits(self, *spent: float) -> list[tuple[float, float]]:
        """Return each limit that there is, and what was spent of it."""
        limits = (self.variants, self.seconds, self.joules)
        pairs = zip(limits, spent, strict=True)
        return [(limit, used) for limit, used in pairs if limit is not None]

    def __str__(self) -> str:
        amounts = zip((self.variants, self.seconds, self.joules), _AMOUNTS, strict=True)
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
        decide: Decide = lambda point: point,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self._strategy = strategy
        self._space = job.space
        self._decide = decide
        self._is_over = is_over
        self._unseen = Unseen(job.space, job.seed)
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
        self._unseen.see(point)
        self._waiting.setdefault(self._key(point), [])

    def tell(self, point: Point, cost: float) -> None:
        """Learn what a point, and all that decide the same, cost; no number is infinity."""
        key = self._key(point)
        self._costs[key] = cost = inf if isnan(cost) else cost
        for one in (point, *self._waiting.pop(key, ())):
            self._unseen.see(one)
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
    decide: Decide = lambda point: point,
    is_over: Callable[[], bool] = lambda: False,
) -> Guarded:
    """Return a strategy.

    Args:
        name: one of :data:`STRATEGIES`, with a choice behind a colon: ``optuna:tpe``.
        job: what it is made for; its ``choice`` is that of the name.
        known: points with their costs that were measured before; none is asked for again.
        decide: as of :class:`Guarded`.
        is_over: too.

    Raises:
        InputError: ``EATSS-X005`` there is no such strategy, ``EATSS-T001`` nor such a choice,
            ``EATSS-T001`` a package is missing, ``EATSS-T001`` the model's order is.
    """
    family, _, choice = name.partition(":")
    maker = STRATEGIES.get(family)
    strategy = Guarded(name, maker(replace(job, choice=choice)), job, decide, is_over)
    for point, cost in known:
        strategy.tell(point, cost)
    return strategy


def _plain(maker: MakeStrategy) -> MakeStrategy:
    """Return what makes a strategy that has no choices."""

    def made(job: StrategyJob) -> Strategy:
        if job.choice:
            raise input_error(
                "EATSS-T001",
                f"this strategy has no choice '{job.choice}'",
                hint="leave out the colon and what follows",
            )
        return maker(job)

    return made


def _optuna(job: StrategyJob) -> Strategy:
    from eatss.tune.tuners import optuna_strategy  # noqa: PLC0415 - an extra

    return optuna_strategy(job)


STRATEGIES: Registry[MakeStrategy] = Registry(
    "eatss.strategies",
    "strategy",
    {
        "exhaustive": _plain(exhaustive),
        "random": _plain(at_random),
        "model": _plain(by_model),
        "local": _plain(LocalSearch),
        "optuna": _optuna,
    },
)
"""What ``--strategy`` can name."""
