"""All layouts between those that generated code is offered under one variant.

Kinds of text are those that are offered: what is staged, how many boxes are in use at once, how
many lanes share a sum, whether blocks take equal shares. Under each every whole number is looked
through between the least and the greatest of each size, so long as threads and points in all are
between theirs, too. So the limits are those of :mod:`eatss.choose.cuda_candidates`, where the
prediction is known to hold. Plan and price of a box are those of a layout, over intervals
(:mod:`eatss.plan.intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

import numpy as np

from eatss.analysis.layout import Candidates, GridSplitK, mapped
from eatss.base.tape import Taped
from eatss.cards.profile import GpuProfile
from eatss.choose.objectives import values
from eatss.choose.options import ModelOptions
from eatss.choose.search import Costs, Sizes
from eatss.cost.cuda_model import CudaModel
from eatss.cost.loop_blocks import replayed
from eatss.plan.intervals import Box, Interval, least_of, most_of
from eatss.plan.numbers import Flag, Number, all_of

STREAM_MARGIN = 1.04
"""So many times what is expected of layouts whose blocks take equal shares of steps is taken to be
their cost. With 1.03 syrk of 2150 × 1950 doubles was one, which took 4 % more energy on an H100
than without (``library-streams``)."""

_AGAIN = 40
"""Times as many boxes after which bounds are recorded anew: which monomials tell most changes."""


_FEW = 32
"""Boxes whose bounds are not worth finding where sizes cancel, which takes three times as long."""


class CudaSpace:
    """The layouts between some of one variant that take no longer than ``slowest_s``.

    A vector has their numbers in the order of their fields. In the place of the tile of a mapped
    loop it has the points of a thread, in that of the tile of a sum the steps of a lane. Those of
    products of warps are multiples of what all of those offered are multiples of.
    """

    def __init__(
        self,
        model: CudaModel,
        offered: Sequence[Candidates],
        profile: GpuProfile,
        options: ModelOptions,
        slowest_s: float,
        in_graph: bool = False,
    ) -> None:
        """Take layouts of a variant, those whose blocks take equal shares last.

        Their launches may be replayed as a graph.
        """
        self.in_graph = in_graph
        self.model, self.profile, self.options = model, profile, options
        self.slowest_s, self.offered = slowest_s, _joined(offered)
        own = self.offered
        columns = own.columns
        loops = [name for name, _ in own.tile_sizes]
        first = len(loops) + len(own.block)
        self.threads = threads = [*range(len(loops), first)]
        points = [loops.index(name) for name, _ in own.block]
        self.pairs = list(zip(points, threads, strict=True))
        self.sizes, blocks = [*range(first)], list[int]()
        if own.spread is not None:  # lanes, tile, chunks, outer
            self.pairs.append((first + 1, first))
            threads, blocks = [*threads, first], [first + 2, first + 3]
            self.sizes += [first + 1, *blocks]
        elif own.shared_sum is not None and not own.shared_sum.streamed:
            self.sizes.append(first)
        table = np.stack(columns, axis=1)
        for at, by in self.pairs:
            table[:, at] //= table[:, by]
        self.units = np.ones(len(columns), dtype=np.int64)
        if own.warps is not None:
            self.units[self.sizes] = np.gcd.reduce(table[:, self.sizes])
        self.points = table // self.units
        products = [threads, points, blocks, *map(list, self.pairs)]
        self.limits = [(some, self.points[:, some].prod(axis=1)) for some in products]
        self.several = [
            (some, (self.points[:, some] > 1).sum(axis=1).max()) for some in (self.threads, points)
        ]
        self.weights = np.full(len(columns), 0.05)
        self.weights[threads + points + blocks] = 0.5
        self._bounds = Taped(self._of_boxes, _AGAIN, later=True)
        self._costs = Taped(self._of_points, later=True)

    # -- what is searched [eatss.choose.search.Space] ---------------------------------------------

    def root(self) -> tuple[Sizes, Sizes]:
        """Return everything, each kind of text apart."""
        kinds = np.delete(self.points, self.sizes, axis=1)
        _, which = np.unique(kinds, axis=0, return_inverse=True)
        every = [self.points[which.reshape(-1) == own] for own in range(which.max() + 1)]
        ends = [(own.min(axis=0), own.max(axis=0)) for own in every]
        lows, highs = (np.array(own) for own in zip(*ends, strict=True))
        return lows, highs

    def shrunk(self, lows: Sizes, highs: Sizes) -> tuple[Sizes, Sizes]:
        """Return boxes without sizes that no layout has: products keep their limits."""
        least, most = lows.T.copy(), highs.T.copy()
        for some, products in self.limits * 2:
            for at in {*some} & {*self.sizes}:
                others = [own for own in some if own != at]
                low, high = (np.maximum(1, np.prod(ends[others], axis=0)) for ends in (least, most))
                most[at] = np.minimum(most[at], products.max() // low)
                least[at] = np.maximum(least[at], -(-products.min() // high))
        return least.T, most.T

    def bounds(self, lows: Sizes, highs: Sizes) -> Costs:
        """Return costs that no layout of a box goes under, of a few boxes by their ends alone."""
        if len(lows) <= _FEW:
            with np.errstate(all="ignore"):
                own = self._priced([*map(Interval, 1.0 * lows.T, 1.0 * highs.T)])
                return np.broadcast_to(own, len(lows))
        found: Costs = self._bounds(*1.0 * lows.T, *1.0 * highs.T)
        return found

    def costs(self, points: Sizes) -> Costs:
        """Return the costs of layouts, infinite where one does not fit or takes too long."""
        found: Costs = self._costs(*1.0 * points.T)
        return found

    def samples(self, lows: Sizes, highs: Sizes) -> Sizes:
        """Return points of boxes: the middle, and the least sizes."""
        middle = np.sqrt(lows * highs).astype(np.int64)
        return np.unique(np.concatenate([middle, lows]), axis=0)

    def children(self, parents: Sizes, count: int, dice: np.random.Generator) -> Sizes:
        """Return no points: the search begins with the best of many."""
        return parents[:0]

    # -- layouts ----------------------------------------------------------------------------------

    def layouts(self, points: Sizes) -> Candidates:
        """Return vectors as layouts."""
        found = self._layouts([*points.T])
        shared = found.shared_sum
        if shared is not None and shared.streamed and not shared.blocks.any():
            found = replace(found, shared_sum=None)
        return found

    def _layouts(self, numbers: Sequence[Number]) -> Candidates:
        """Return layouts of columns or of intervals."""
        columns = [
            own if unit == 1 else unit * own
            for own, unit in zip(numbers, self.units.tolist(), strict=True)
        ]
        for at, by in self.pairs:
            columns[at] = columns[by] * columns[at]
        left = iter(columns)
        return self.offered.map(lambda _: next(left))

    def _of_points(self, *numbers: Number) -> Number:
        return self._priced(numbers)

    def _of_boxes(self, *ends: Number) -> Number:
        half = len(ends) // 2
        sides = [*zip(ends[:half], ends[half:], strict=True)]
        known = Box({str(at): sides[at] for at in self.sizes}).intervals
        return self._priced(
            [known[str(at)] if str(at) in known else Interval(*own) for at, own in enumerate(sides)]
        )

    def _priced(self, numbers: Sequence[Number]) -> Number:
        """Return costs of layouts, or what none of a box goes under."""
        own = self._layouts(numbers)
        found = self.model.columns(own)
        fits = found.fits & (found.shared_bytes <= shared_limit(own, self.profile, self.options))
        fits = most_of(fits & (found.total.time_s <= self.slowest_s) & self._keeps(numbers))
        streamed = least_of(1.0 * (own.streams > 0))
        total = found.total
        if self.in_graph:
            launches = sum(most_of(demand.launches) for demand, _ in found.launches)
            total = replayed(self.model, total, launches)
        cost = values(total, self.options.objective)
        return np.where(fits, cost * (1.0 + (STREAM_MARGIN - 1.0) * streamed), inf)

    def _keeps(self, numbers: Sequence[Number]) -> Flag:
        """Tell which layouts are between those offered in all that sizes make together."""
        found: list[Flag] = []
        for some, products in self.limits:
            total = prod((numbers[at] for at in some), start=1.0)
            found += [total >= products.min(), total <= products.max()]
        for some, most in self.several:
            found.append(sum((1.0 * (numbers[at] > 1) for at in some), start=0.0) <= most)
        return all_of(found)


def _joined(offered: Sequence[Candidates]) -> Candidates:
    """Return layouts of a variant as one, each number an array of its own."""
    *_, last = offered
    shared = last.shared_sum
    if shared is not None and shared.streamed:
        nothing = [np.zeros(len(own), dtype=np.int64) for own in offered]
        offered = [
            own
            if own.shared_sum is not None
            else replace(own, shared_sum=GridSplitK(loop=shared.loop, blocks=none, streamed=True))
            for own, none in zip(offered, nothing, strict=True)
        ]
    return mapped(lambda *columns: np.concatenate(columns), *offered)


def shared_limit(own: Candidates, profile: GpuProfile, options: ModelOptions) -> Number:
    """Return the shared memory that a block may have, in bytes, an entry a layout.

    Tiles that are filled ahead may have all that the card lets a block ask for.
    """
    asked = options.shared_per_block(profile)
    most = max(asked, profile.shared_per_block_optin_bytes)
    ahead = (own.pipeline_stages > 1) | (own.warps is not None)
    return np.where(ahead & (options.shared_per_block_bytes is None), most, asked)
