"""The least cost over all whole sizes that fit a card, and a bound that none of them goes under.

Branch and bound [Land and Doig, 1960]: a box of sizes has a bound of its cost
(:mod:`eatss.plan.intervals`). The boxes with the least bounds are cut in two until nothing left is
under the best point found, less a gap. The boxes that begin hold every whole number, so what they
leave is proven of all of them. Boxes are cut along the sides where that raises their bounds most:
each is tried [strong branching: Achterberg, Koch and Martin, *Branching rules revisited*]. Good
points come from a genetic algorithm: generations of points that mix the sizes of the best.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from eatss.base.frozen import frozen
from eatss.choose.options import ModelOptions, longest_s

Sizes = npt.NDArray[np.int64]
"""A row a point, a column a size."""

Costs = npt.NDArray[np.float64]

_PARENTS = 128
"""Points that the next are made of: the best of all."""

_PATIENCE = 6
"""Generations without a better point after which there is no other."""

_BETTER = 0.999
"""Share of the least cost under which a point is better."""

_MOST_GENERATIONS = 24

_FEWEST_CHILDREN = 512

_CUTS = 3
"""Times that a box is cut by what was tried of it; this and the next two were set by hand, by the
gaps of seven kernels."""

_UNKNOWN = 0.05
"""What a cut that raises no bound is worth yet, as a share of one that raises it most."""

_OF_OTHERS = 0.2
"""The same of one that raises those of other boxes most."""

_LEAST_RAISED = 1e-3
"""Share of what a bound lacks that the bound of a half is taken to be above it, at least."""

BATCH = 4096
"""Boxes that are bounded at a time, about: it takes as long for one as for hundreds."""


IRREGULAR_MARGIN = 1.1
"""So many times better than regular sizes others have to be besides. What is predicted best of all
that was measured is predicted too well, by 14 % of its energy and 15 % of its time in the median of
111 programs on an H200."""


class Space(Protocol):
    """What is searched: vectors of whole sizes."""

    weights: Costs
    """What a cut in two along each side is worth."""

    def root(self) -> tuple[Sizes, Sizes]:
        """Return the least and greatest sizes of boxes that hold everything."""

    def shrunk(self, lows: Sizes, highs: Sizes) -> tuple[Sizes, Sizes]:
        """Return boxes without sizes that surely do not fit, a low above its high if none does."""

    def bounds(self, lows: Sizes, highs: Sizes) -> Costs:
        """Return costs that no point of a box goes under, infinite where none fits."""

    def costs(self, points: Sizes) -> Costs:
        """Return the costs of points, infinite where one does not fit, or of boxes of one point."""

    def samples(self, lows: Sizes, highs: Sizes) -> Sizes:
        """Return points of boxes that may be good."""

    def children(self, parents: Sizes, count: int, dice: np.random.Generator) -> Sizes:
        """Return so many points that are mixed of good ones, with other sizes here and there."""


MOST_CHILDREN = 2048
"""Points of a generation, the more the larger a kernel's share of the program."""


@frozen
class Effort:
    """How long to search: until nothing is a ``gap`` under the best, and no longer than this.

    Nor is anything looked for that costs ``enough``. ``most_boxes``, about, are counted, so that
    every machine takes the same steps; the time ``until`` which it goes on, by
    ``time.perf_counter``, is not. A generation has ``children`` points. So many ``times`` kernels
    like this one are launched.
    """

    gap: float
    most_boxes: int
    until: float = inf
    children: int = MOST_CHILDREN
    enough: float = inf
    times: int = 1


GAP = 0.02
"""Gap at which a search ends unless told otherwise."""

MOST_BOXES = 5_000
"""Boxes of a program unless told otherwise: half a second of one processor, about. With three times
as many gemm is proven to 2 % in place of 16."""


LEAST_EFFORT = 0.05
"""Share of a program's effort that goes to a kernel, at least, about."""


def efforts_of(options: ModelOptions, costs: Sequence[float], began: float) -> list[Effort]:
    """Return the efforts for kernels of a program, shared by their costs, that ``began`` then."""
    total, even = sum(costs), 1.0 / max(1, len(costs))
    shares = [own / total if 0 < total < inf else even for own in costs]
    shares = [max(LEAST_EFFORT, share) for share in shares]
    return [_effort_of(options, share / sum(shares), began) for share in shares]


def _effort_of(options: ModelOptions, share: float, began: float) -> Effort:
    asked = options.gap is not None or options.timeout_s is not None
    return Effort(
        gap=GAP if options.gap is None else options.gap,
        most_boxes=1 << 62 if asked else int(share * MOST_BOXES),
        until=began + longest_s(options) if asked else inf,
        children=max(_FEWEST_CHILDREN, int(share * MOST_CHILDREN)),
    )


@dataclass
class Found:
    """The best point; nothing in the space costs less than ``bound``.

    ``good`` are the best of all points that were priced, the best one first.
    """

    bound: float = inf
    boxes: int = 0
    points: int = 0
    seconds: float = 0.0
    good: Sizes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    costs: Costs = field(default_factory=lambda: np.empty(0))

    @property
    def cost(self) -> float:
        """The least cost, infinite where no point is there."""
        return float(self.costs.min(initial=inf))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The best sizes, none where no point is there."""
        return tuple(int(size) for size in self.good[0]) if len(self.good) else ()


def search(
    space: Space,
    seeds: Sizes,
    effort: Effort,
    told: Callable[[Sizes, Sizes, Costs], None] | None = None,
) -> Found:
    """Return the best point of a space, with a bound.

    Args:
        space: what is searched.
        seeds: points to begin with.
        effort: when to end.
        told: hears boxes that are not cut, with bounds; together they are the root.
    """
    one = Search(space, seeds, effort, told)
    prove([one])
    return one.found


_FIRST_S = 0.03
"""Seconds that it takes to bound the first few boxes of a search, about."""


def prove(searches: Sequence[Search]) -> None:
    """Bound boxes of searches, whose efforts they share, always of the one that may gain most.

    Where time is limited, those of kernels that cost little may bound few boxes, at last.
    """
    most = sum(one.effort.most_boxes for one in searches)
    while searches and (one := max(searches, key=lambda own: own.unproven)).unproven:
        fresh = [own for own in searches if own.unproven and not own.found.boxes]
        if most <= 0 or time.perf_counter() + _FIRST_S * len(fresh) >= one.effort.until:
            for own in fresh:
                own.step(1)
            break
        most -= one.step(most)
    for one in searches:
        one.end()


def _sides(lows: Sizes, highs: Sizes) -> Costs:
    """Return the logarithms of the sides of boxes, of those that hold nothing 0."""
    found: Costs = np.maximum(0.0, np.log(np.maximum(1, highs)) - np.log(np.maximum(1, lows)))
    return found


def _places(points: Sizes) -> dict[bytes, int]:
    """Return a place of each point, in the order in which points come first."""
    numbers, each = np.ascontiguousarray(points).tobytes(), points.itemsize * points.shape[1]
    begins = range(0, len(numbers), each)
    return {numbers[at : at + each]: place for place, at in enumerate(begins)}


class _Boxes(NamedTuple):
    """Boxes with their bounds, an entry each, and a number of what was ``tried`` for each."""

    lows: Sizes
    highs: Sizes
    bounds: Costs
    tried: Sizes
    least: Sizes
    most: Sizes
    """They themselves without what surely does not fit."""

    @property
    def several(self) -> Any:
        """Which sides of each hold more than one size, by side; they have halves."""
        return self.least < self.most

    @property
    def middles(self) -> Sizes:
        """The greatest sizes of first halves, by side."""
        found: Any = np.sqrt(self.least * self.most).astype(np.int64)
        middles: Sizes = np.clip(found, self.least, self.most - 1)
        return middles

    def some(self, which: Any) -> _Boxes:
        """Return some of them, by a mask or by numbers."""
        return _Boxes(*(own[which] for own in self))

    def and_others(self, *others: _Boxes) -> _Boxes:
        """Return them with others."""
        return _Boxes(*map(np.concatenate, zip(self, *others, strict=True)))


class Search:
    """``open`` are boxes to cut; no point that was left out is under ``left``."""

    def __init__(
        self,
        space: Space,
        seeds: Sizes,
        effort: Effort,
        told: Callable[[Sizes, Sizes, Costs], None] | None = None,
    ) -> None:
        """Find good points, and bound nothing yet."""
        self.space, self.effort, self.told, self.found = space, effort, told, Found()
        self.dice, self.worth = np.random.default_rng(0), space.weights[None]
        low, high = space.root()
        self.open = self._new(low, high, np.zeros(len(low)), np.zeros(len(low), dtype=np.int64))
        self.left = inf
        self.priced: set[bytes] = set()
        self.found.good, began = seeds[:0], time.perf_counter()
        self._price(seeds)
        self._evolve_apart()
        self.found.seconds = time.perf_counter() - began

    @property
    def limit(self) -> float:
        """The cost from which on nothing is looked for."""
        return (1.0 - self.effort.gap) * min(self.found.cost, self.effort.enough)

    @property
    def unproven(self) -> float:
        """How much better something may be, 0 where it is not worth looking for."""
        least, limit = self._least(), self.limit
        first = not self.found.boxes and self.effort.until == inf
        return (inf if first else self.effort.times * (limit - least)) if least < limit else 0.0

    def step(self, most: int) -> int:
        """Bound boxes, at most so many about, and return how many."""
        before, boxes, began = self.found.cost, self.found.boxes, time.perf_counter()
        # wide boxes are not worth a bound; at first, and of few in all, much is learnt of few
        all_boxes = self.effort.most_boxes
        if boxes and self.limit < inf:
            wanted = max(BATCH // 4, min(BATCH // 2, all_boxes // 4))
            cut = self._cut_as_tried(self._taken(min(wanted, most)))
        else:
            cut, self.open, count = self.open, self.open.some(slice(0)), 0
            while count < len(cut.bounds) < min(BATCH // 8, all_boxes, most) or not count:
                count, cut = len(cut.bounds), self._halves(cut)
        self._bound(cut)
        if self.found.cost < before:
            self._evolve()
        self.found.seconds += time.perf_counter() - began
        return self.found.boxes - boxes

    def end(self) -> None:
        """Say what is proven."""
        self.found.bound = min(self.found.cost, self.left, self._least())
        self._leave(self.open)

    def _least(self) -> float:
        """Return the least bound of what is open."""
        return float(self.open.bounds.min(initial=inf))

    def _taken(self, halves: int) -> _Boxes:
        """Take the boxes with the least bounds, which have so many halves, about."""
        bounds = self.open.bounds
        order = np.argsort(bounds, kind="stable")
        count = 2 * self.open.several[order].sum(axis=1).cumsum()
        last = min(np.searchsorted(count, halves, side="right"), (bounds < self.limit).sum())
        last = max(1, int(last))
        taken, self.open = self.open.some(order[:last]), self.open.some(order[last:])
        return taken

    def _cut_as_tried(self, boxes: _Boxes) -> _Boxes:
        """Cut boxes several times, by what a cut of each along each side raises its bound.

        Halves that need no look are cut off before.
        """
        limit, middles, known = self.limit, boxes.middles, np.zeros((2, *boxes.least.shape))
        rows, axis = np.nonzero(boxes.several)
        halves = self._along(boxes.some(rows), axis)
        halves = halves._replace(bounds=self._bounds_of(halves))
        known[:, rows, axis] = halves.bounds.reshape(2, -1)
        self._close(halves.some(halves.bounds >= limit))
        before = boxes.bounds[:, None]
        raised = np.clip((known - before) / (limit - before), _LEAST_RAISED, 1.0)
        sides = np.where(boxes.several, _sides(boxes.least, boxes.most), inf)
        gains = raised.prod(axis=0) / np.maximum(sides, 1e-9)
        every, most = gains.mean(axis=0), gains.max(axis=1, keepdims=True)
        share = gains / np.maximum(most, 1e-3 * most.max()) + _OF_OTHERS * every / every.max()
        self.worth = np.sqrt(self.space.weights) * (_UNKNOWN + share)
        first, second = known >= limit
        left = np.flatnonzero(~(first & second).any(axis=1))
        lows, highs = (
            np.where(first, middles + 1, boxes.lows),
            np.where(second, middles, boxes.highs),
        )
        boxes = self._new(lows[left], highs[left], boxes.bounds[left], left)
        for _ in range(_CUTS):
            boxes = self._halves(boxes)
        middle = middles[boxes.tried]
        inside = np.array([boxes.most <= middle, boxes.least > middle])
        bounds = np.where(inside, known[:, boxes.tried], 0.0).max(axis=(0, 2))
        return boxes._replace(bounds=np.maximum(boxes.bounds, bounds))

    def _halves(self, boxes: _Boxes) -> _Boxes:
        """Cut each box of several points in two, where that is expected to raise its bound most."""
        fits: Any = (boxes.least <= boxes.most).all(axis=1)
        single = ~boxes.several.any(axis=1)
        nothing = boxes.some(~fits)
        self._leave(nothing._replace(bounds=np.full(len(nothing.bounds), inf)))
        cut = boxes.some(fits & ~single)
        gains = self.worth[cut.tried] * _sides(cut.least, cut.most) + 1e-9 * cut.several
        halves = self._along(cut, np.argmax(gains, axis=1))
        return boxes.some(fits & single).and_others(halves)

    def _along(self, boxes: _Boxes, axis: Sizes) -> _Boxes:
        """Cut boxes in two, each along an axis: all first halves, then the others."""
        lows, highs, bounds, tried, *_ = boxes
        rows = np.arange(len(lows))
        middle = boxes.middles[rows, axis]
        ends, begins = highs.copy(), lows.copy()
        ends[rows, axis], begins[rows, axis] = middle, middle + 1
        lows, highs = (np.concatenate(own) for own in ((lows, begins), (ends, highs)))
        return self._new(lows, highs, np.tile(bounds, 2), np.tile(tried, 2))

    def _new(self, lows: Sizes, highs: Sizes, bounds: Costs, tried: Sizes) -> _Boxes:
        return _Boxes(lows, highs, bounds, tried, *self.space.shrunk(lows, highs))

    def _leave(self, boxes: _Boxes) -> None:
        """Tell of boxes that are not cut."""
        if self.told is not None:
            self.told(*boxes[:3])

    def _close(self, boxes: _Boxes) -> None:
        """Leave boxes of which nothing is looked for."""
        self.left = min(self.left, float(boxes.bounds.min(initial=inf)))
        self._leave(boxes)

    def _bound(self, boxes: _Boxes) -> None:
        """Bound boxes, price points of them, and keep those that may hold better."""
        least, most, bounds = boxes.least, boxes.most, self._bounds_of(boxes)
        good = bounds < min(self.found.cost, self.effort.enough)
        if good.any():
            self._price(self.space.samples(least[good], most[good]))
        single: Any = (least == most).all(axis=1)
        if single.any():  # what one point costs is known
            bounds[single] = self.space.costs(least[single])
        kept: Any = (bounds < self.limit) & ~single
        boxes = boxes._replace(bounds=bounds)
        self._close(boxes.some(~kept))
        self.open = self.open.and_others(boxes.some(kept))

    def _bounds_of(self, boxes: _Boxes) -> Costs:
        """Return bounds of boxes: what holds for a box holds for its parts."""
        least, most = boxes.least, boxes.most
        fits: Any = (least <= most).all(axis=1)
        bounds = np.where(fits, boxes.bounds, inf)
        open_: Any = bounds < self.limit
        if open_.any():
            own = self.space.bounds(least[open_], most[open_])
            bounds[open_] = np.fmax(bounds[open_], own)
        self.found.boxes += int(open_.sum())
        return bounds

    def _price(self, points: Sizes) -> None:
        """Price points, each once, and keep the best of all."""
        places = _places(points)
        points = points[[at for point, at in places.items() if point not in self.priced]]
        self.priced.update(places)
        found, costs = self.found, self.space.costs(points)
        found.points += len(points)
        some: Any = costs < inf
        self._keep(np.concatenate([found.good, points[some]]), np.append(found.costs, costs[some]))

    def _keep(self, points: Sizes, costs: Costs) -> None:
        """Keep the best of points, each once."""
        best = np.argsort(costs, kind="stable")[: 4 * _PARENTS]
        kept = best[[*_places(points[best]).values()][:_PARENTS]]
        self.found.good, self.found.costs = points[kept], costs[kept]

    def _evolve_apart(self) -> None:
        """Evolve each half of what is known by itself, then all: neither leads the other astray."""
        found, evolved = self.found, []
        for half in [(found.good[at::2], found.costs[at::2]) for at in range(2)]:
            found.good, found.costs = half
            self._evolve()
            evolved.append((found.good, found.costs))
        self._keep(*map(np.concatenate, zip(*evolved, strict=True)))
        self._evolve()

    def _evolve(self) -> None:
        """Price generations of points until they are no better."""
        found, patience = self.found, _PATIENCE
        for _ in range(_MOST_GENERATIONS):
            if not patience or found.cost == inf or time.perf_counter() >= self.effort.until:
                break
            before = found.cost
            self._price(self.space.children(found.good, self.effort.children, self.dice))
            patience = _PATIENCE if found.cost < _BETTER * before else patience - 1
