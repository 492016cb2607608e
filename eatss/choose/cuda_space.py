"""All layouts that generated code may have under one variant: whole sizes within stated limits.

A vector has threads and points along the mapped loops, tiles of the others, which groups are
staged, and how lanes and blocks share sums. Plan and price of a box of vectors are those of a
layout, over intervals (:mod:`eatss.plan.intervals`). What is offered by itself
(:mod:`eatss.choose.cuda_candidates`) is a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product as iterproduct
from math import inf, prod
from typing import Any

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import (
    Candidates,
    GridSplitK,
    SplitK,
    WarpUse,
    mapped_loops,
    reordering_loops,
)
from eatss.analysis.variant import KernelVariant, WarpInstruction
from eatss.base.frozen import frozen
from eatss.base.tape import Taped
from eatss.base.targets import AXES, CUDA
from eatss.cards.profile import GpuProfile
from eatss.choose import cuda_candidates as offers
from eatss.choose.objectives import values
from eatss.choose.options import ModelOptions
from eatss.choose.search import Costs, Sizes
from eatss.cost.cuda_model import CudaModel
from eatss.plan.intervals import Box, Interval, least_of, most_of
from eatss.plan.launch import trips_of
from eatss.plan.numbers import Flag, Number, all_of, any_of, chosen, no
from eatss.plan.shares import outer_tile

STREAM_MARGIN = 1.04
"""So many times what is expected of layouts whose blocks take equal shares of steps is taken to be
their cost. With 1.03 syrk of 2150 × 1950 doubles was one, which took 4 % more energy on an H100
than without (``library-streams``)."""

_AGAIN = 12
"""Times as many boxes after which bounds are recorded anew: which monomials tell most changes."""

_AT_ONCE = 1 << 12
"""Layouts that are priced at a time: what is computed of them stays in a processor's cache."""

_CUT = {"threads": 0.2, "points": 0.5, "tile": 0.1, "steps": 0.1, "chunks": 0.5, "outer": 0.5,
        "blocks": 0.5}  # fmt: skip
"""What a cut along a size is worth until it is known. These are in monomials."""

_KINDS = {"stages": offers.STAGES, "streamed": (1, 2), "lanes": (*offers.LANES,)}
"""Sizes that say what is in the text, and all that they may be. Each kind is bounded apart, and
what may be staged together."""

_MOST_STEPS = 8
"""Steps of a sum that one of several lanes takes at a time, at most."""

Key = tuple[str, Any]
"""What a size is, and the loop or the group that it is of."""

Numbers = Mapping[Key, Number]


@frozen
class _Limit:
    """The product of some sizes is from ``least`` to ``most``."""

    of: tuple[Key, ...]
    least: int
    most: int


class CudaSpace:
    """The layouts of a variant on a card, those whose blocks take equal shares of steps, too.

    ``slowest_s`` is the time that one may take. Tiles of mapped loops are threads times points; of
    products of warps both are multiples of what an instruction has.
    """

    def __init__(
        self,
        facts: KernelFacts,
        variant: KernelVariant,
        profile: GpuProfile,
        options: ModelOptions,
    ) -> None:
        """Take a kernel and how it is cut."""
        self.facts, self.variant, self.profile, self.options = facts, variant, profile, options
        self.model, self.trips, self.slowest_s = CudaModel.of(facts, profile), trips_of(facts), inf
        self.mapped = [loop.name for loop in mapped_loops(facts)]
        self.serial = [loop for loop in facts.loops if loop.name not in self.mapped]
        own = variant.instruction is None and not variant.spreads
        self.groups = offers.groups_of(facts, variant) if own else ()
        self.stagings = [tuple(on + 1 for on in own) for own in offers.stagings(facts, self.groups)]
        self.shares, self.streams = variant.shared_loop, variant.stream_loop
        if variant.spreads or self.shares is not None:
            self.streams = None
        self.units: dict[Key, int] = {}
        self.limits: list[_Limit] = []
        self.fixed: dict[str, int] = {}
        sides = dict(self._sides())
        self.keys = [*sides]
        self.lows, self.highs = np.array([*sides.values()], dtype=np.int64).reshape(-1, 2).T
        self.weights = np.array([_CUT.get(what, 0.0) for what, _ in self.keys])
        self._of_boxes = Taped(self._boxes_priced, _AGAIN)
        self._of_points = Taped(lambda *own: self._priced(dict(zip(self.keys, own, strict=True))))

    # -- sides ------------------------------------------------------------------------------------

    def _sides(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        """Yield sizes with their least and greatest, and keep what their products may be."""
        variant = self.variant
        if variant.instruction is not None:
            yield from self._of_products(variant.instruction)
        elif variant.spreads:
            yield from self._of_spread_sums()
        else:
            yield from self._of_threads()
        if self.shares is not None:
            most = min(self.trips[self.shares], offers.BLOCKS_PER_SM[-1] * self.profile.sm_count)
            yield ("blocks", None), (2, max(2, int(most)))
        if self.streams is not None:
            yield ("streamed", None), (1, 2)

    def _of_threads(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        facts, wide = self.facts, len(self.mapped) > len(AXES)
        reaches = [offers.reach(loop.trip_count) for loop in mapped_loops(facts)]
        held = any(launch.held for launch in self.variant.launches)
        of_wide = offers.MOST_WIDE_POINTS, offers.MOST_WIDE_POINTS_ALONG, offers.WIDE_THREADS
        of_few = offers.MOST_POINTS, offers.POINTS[-1], offers.THREADS
        points, along, threads = of_wide if wide else of_few
        points = points if held else offers.STREAM_POINTS
        fewest = offers.SINGLE_WARP if len(self.mapped) == 1 else threads[0]
        yield from self._of_mapped(reaches, threads[-1], (fewest, threads[-1]), (along, points))
        serial, outer = self.serial, reordering_loops(facts)
        for loop in serial:
            least, most, alone = offers.serial_range(
                loop, serial, outer, in_order=self.variant.in_order
            )
            self.fixed[loop.name] = alone
            yield ("tile", loop.name), (least, most) if self.groups else (alone, alone)
        yield from ((("staged", group), (1, 2)) for group in self.groups)
        ahead = held and serial and self.groups and offers.fills_ahead(facts, self.profile)
        yield ("stages", None), (1, offers.PLAIN_STAGES[-1] if ahead else 1)

    def _of_mapped(
        self,
        reaches: Sequence[int],
        most_threads: int,
        total: tuple[int, int],
        points: tuple[int, int],
        *shared: Key,
    ) -> Iterator[tuple[Key, tuple[int, int]]]:
        """Yield threads and points of mapped loops, no more than loops reach.

        Args:
            reaches: of the loops.
            most_threads: along one of them.
            total: of a block.
            points: along one loop, and in all.
            shared: what threads are multiplied with in all.
        """
        most = [min(own, most_threads) for own in reaches]
        least = [1] * len(most)
        if not shared and 0 < len(most) <= len(AXES):
            least[-1] = min(offers.LEAST_ALONG_X, most[-1])
        if len(most) == len(AXES):
            most[0] = min(most[0], CUDA.most_threads["z"])
        for name, *ends in zip(self.mapped, least, most, strict=True):
            yield ("threads", name), (ends[0], ends[1])
        for name, own in zip(self.mapped, reaches, strict=True):
            yield ("points", name), (1, min(points[0], own))
            self.limits.append(_Limit(of=(("threads", name), ("points", name)), least=1, most=own))
        fewest = total[0] if shared else min(total[0], prod(most))
        threads = *(("threads", name) for name in self.mapped), *shared
        self.limits.append(_Limit(of=threads, least=fewest, most=total[1]))
        of_points = tuple(("points", name) for name in self.mapped)
        self.limits.append(_Limit(of=of_points, least=1, most=points[1]))

    def _of_spread_sums(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        facts, launches = self.facts, self.variant.launches
        reaches = [offers.reach(loop.trip_count) for loop in mapped_loops(facts)]
        total = self.profile.threads_per_warp, offers.THREADS[-1]
        points = offers.SPREAD_POINTS[-1], 2 * offers.SPREAD_POINTS[-1]
        yield from self._of_mapped(
            reaches, offers.MOST_SPREAD_THREADS, total, points, ("lanes", None)
        )
        scans = any(one.scans for one in launches)
        longest, turns = offers.sums_of(facts, self.variant)
        lanes = [n for n in offers.LANES if n <= max(CUDA.lanes, longest)]
        yield ("lanes", None), (CUDA.lanes, CUDA.lanes) if scans else (1, lanes[-1])
        yield ("steps", None), (2, offers.LANES[1][-1])
        most = (offers.CHUNKS if self.mapped else offers.MANY_CHUNKS)[-1]
        yield ("chunks", None), (1, max(1, min(most, int(2 * longest))))
        yield ("outer", None), (1, max(1, min(most, int(2 * turns) - 1)))

    def _of_products(self, own: WarpInstruction) -> Iterator[tuple[Key, tuple[int, int]]]:
        product = self.variant.products[0]
        sizes = zip(
            (product.rows, product.columns), own.lanes, (own.rows, own.columns), strict=True
        )
        for loop, lanes, size in sizes:
            threads, points, least = ("threads", loop), ("points", loop), max(2 * lanes, size)
            most = int(min(self.trips[loop], offers.PRODUCT_TILES[-1])) // least
            self.units |= {threads: lanes, points: least // lanes}
            self.limits.append(_Limit(of=(threads, points), least=1, most=most))
            yield threads, (1, min(offers.WARPS_ALONG[-1], most))
            yield points, (1, most)
        least, most = (count // CUDA.lanes for count in offers.PRODUCT_THREADS[::2])
        warps = ("threads", product.rows), ("threads", product.columns)
        self.limits.append(_Limit(of=warps, least=least, most=most))
        loop, steps = product.sum_loop, offers.product_steps(own)
        self.units["tile", loop] = own.steps
        longest = int(min(steps[-1], self.trips[loop]))
        yield ("tile", loop), (steps[0] // own.steps, longest // own.steps)
        yield ("stages", None), (1, offers.product_stages(self.facts, self.variant)[-1])

    # -- layouts ----------------------------------------------------------------------------------

    def points_of(self, own: Candidates) -> Sizes:
        """Return layouts of the variant as vectors."""
        threads, tiles = own.threads, own.tiles
        zero = np.zeros(len(own), dtype=np.int64)
        numbers: dict[str, Callable[[Any], Number]] = {
            "threads": lambda loop: threads[loop],
            "points": lambda loop: tiles[loop] // threads[loop],
            "tile": lambda loop: tiles[loop],
            "staged": lambda group: own.staged[group] + 1,
            "stages": lambda _: own.pipeline_stages,
            "lanes": lambda _: own.lanes,
            "steps": lambda _: own.sum_tile // own.lanes,
            "chunks": lambda _: own.chunks,
            "outer": lambda _: own.outer_chunks,
            "blocks": lambda _: own.chunks,
            "streamed": lambda _: 1 + (own.streams > 0),
        }
        columns = [
            zero + numbers[what](of) // self.units.get((what, of), 1) for what, of in self.keys
        ]
        return np.stack(columns, axis=1) if columns else zero[:, None][:, :0]

    def layouts(self, points: Sizes) -> Candidates:
        """Return vectors as layouts."""
        numbers = dict(zip(self.keys, 1.0 * points.T, strict=True))
        return self._layouts(numbers).map(lambda own: np.rint(own).astype(np.int64))

    def _layouts(self, numbers: Numbers) -> Candidates:
        """Return the layouts of columns or of intervals."""
        variant, instruction = self.variant, self.variant.instruction
        ones = np.ones(len(next(iter(numbers.values()))) if numbers else 1)

        def number(what: str, of: Any = None) -> Number:
            own = numbers.get((what, of), ones)
            unit = self.units.get((what, of), 1)
            return own if unit == 1 else unit * own

        threads = {name: number("threads", name) for name in self.mapped}
        tiles = {name: own * number("points", name) for name, own in threads.items()}
        tiles |= {loop.name: number("tile", loop.name) for loop in self.serial}
        chosen: dict[str, Any] = {"stages": ones}
        if variant.spreads:
            lanes, outer = number("lanes"), number("outer")
            plain = {loop.name: offers.PLAIN_TILE * ones for loop in self.serial}
            plain.pop(variant.host_loop or "", None)
            loops = {cut.outer_loop for cut in variant.launches} & plain.keys()
            tiles |= plain | {own: outer_tile(self.trips[own], outer) for own in loops if own}
            chosen["spread"] = SplitK(
                lanes=lanes, tile=lanes * number("steps"), chunks=number("chunks"), outer=outer
            )
        elif instruction is not None:
            stages = number("stages")
            chosen["warps"] = WarpUse(instruction=instruction.name, stages=stages, resident=ones)
            chosen["staged"] = dict.fromkeys(offers.product_groups(self.facts, variant), ones)
        else:
            chosen["staged"] = {group: number("staged", group) - 1 for group in self.groups}
            chosen["stages"] = number("stages")
        if self.shares is not None:
            chosen["shared_sum"] = GridSplitK(loop=self.shares, blocks=number("blocks"))
        elif self.streams is not None:
            blocks = (number("streamed") - 1) * self.profile.sm_count
            chosen["shared_sum"] = GridSplitK(loop=self.streams, blocks=blocks, streamed=True)
        return Candidates(
            variant=variant,
            tile_sizes=tuple((loop.name, tiles.get(loop.name, ones)) for loop in self.facts.loops),
            block=tuple(threads.items()),
            host_loop=variant.host_loop,
            **{"resident": ones, **chosen},
        )

    # -- limits -----------------------------------------------------------------------------------

    def _keeps(self, numbers: Numbers, own: Candidates) -> Flag:
        """Tell which layouts are within all limits; of boxes, which may have such."""
        found = [
            flag
            for limit in self.limits
            for total in [prod((numbers[key] for key in limit.of), start=1.0)]
            for flag in (total >= limit.least, total <= limit.most)
        ]
        threads = [*own.threads.values()]
        points = [number for (what, _), number in numbers.items() if what == "points"]
        if self.variant.instruction is not None:
            found += self._keeps_products(self.variant.instruction, own, points)
        else:
            found += [
                _several(points) <= offers.POINT_LOOPS,
                _along_z(threads) <= CUDA.most_threads["z"],
            ]
            if self.variant.spreads:
                found += [_several(threads) <= offers.POINT_LOOPS, *self._keeps_sums(own)]
            else:
                found += [_several(threads[:-1]) < len(AXES), *self._keeps_staging(own)]
        tiles = prod((np.ceil(self.trips[n] / own.tiles[n]) for n in self.mapped), start=1.0)
        if self.shares is not None:
            turns, blocks = np.ceil(self.trips[self.shares] / own.tiles[self.shares]), own.chunks
            most = offers.BLOCKS_PER_SM[-1] * self.profile.sm_count
            found += [tiles < self.profile.sm_count, blocks <= turns, tiles * blocks <= most]
        if self.streams is not None:
            rounds = tiles / self.profile.sm_count
            staged, moving = self._moving(own)
            streams = (staged == moving) & (staged > 0)
            streams = streams & (1.0 - rounds / np.ceil(rounds) > offers.LEAST_IDLE)
            found.append(no(own.streams > 0) | streams)
        return all_of(found)

    def _moving(self, own: Candidates) -> tuple[Number, Number]:
        """Return how many groups are staged, and how many of them steps of blocks move."""
        each = [
            (on, self.streams in offers.loops_moving(self.facts, group))
            for group, on in own.staged.items()
        ]
        return sum((on for on, _ in each), start=0.0), sum(
            (on for on, moves in each if moves), start=0.0
        )

    def _keeps_products(
        self, instruction: WarpInstruction, own: Candidates, points: Sequence[Number]
    ) -> list[Flag]:
        product, stages = self.variant.products[0], own.pipeline_stages
        loops = product.rows, product.columns
        threads = prod(own.threads[loop] for loop in loops)
        each = prod(own.tiles[loop] / own.threads[loop] for loop in loops)
        least, most = (
            offers.MOST_PRODUCT_WORDS[offers.PRODUCT_THREADS[0]],
            offers.MOST_PRODUCT_WORDS[offers.PRODUCT_THREADS[-1]],
        )
        words = np.where(threads >= offers.PRODUCT_THREADS[-1], 1.0 * most, 1.0 * least)
        long = self.trips[product.sum_loop] > (stages - 1) * own.tiles[product.sum_loop]
        return [
            each >= offers.LEAST_PRODUCT_POINTS,
            each * instruction.words <= words,
            long | (stages == 1),
        ]

    def _keeps_staging(self, own: Candidates) -> list[Flag]:
        """Return limits of tiles: those of serial loops differ where something is staged."""
        if not self.groups:
            return []
        alone = all_of(own.tiles[name] == size for name, size in self.fixed.items())
        staged = any_of(on > 0 for on in own.staged.values())
        goes_on = any_of(self.trips[loop.name] > own.tiles[loop.name] for loop in self.serial)
        together = any_of(
            all_of(own.staged[group] + 1 == on for group, on in zip(self.groups, each, strict=True))
            for each in self.stagings
        )
        few = own.stages == 1
        return [together, staged | (alone & few), goes_on | few]

    def _keeps_sums(self, own: Candidates) -> list[Flag]:
        spread, (longest, _) = own.spread, offers.sums_of(self.facts, self.variant)
        assert spread is not None
        lanes, chunks, outer = spread.lanes, spread.chunks, spread.outer
        steps, sharing = spread.tile / lanes, chunks * outer
        tiles = prod((np.ceil(self.trips[n] / own.tiles[n]) for n in self.mapped), start=1.0)
        blocks = sharing * tiles <= offers.MOST_BLOCKS_PER_SM * self.profile.sm_count
        alone = offers.LANES[1][0]
        return [
            np.where(lanes > 1, 1.0 * (steps <= _MOST_STEPS), 1.0 * (steps >= alone)) > 0,
            lanes * sharing > 1,
            (sharing == 1) | blocks,
            (chunks == 1) | (chunks * spread.tile < 2 * longest),
        ]

    # -- what is searched [eatss.choose.search.Space] ---------------------------------------------

    def root(self) -> tuple[Sizes, Sizes]:
        """Return everything, each kind of text apart."""
        kinds = [at for at, (what, _) in enumerate(self.keys) if what in _KINDS]
        ends = [
            [own for own in _KINDS[self.keys[at][0]] if self.lows[at] <= own <= self.highs[at]]
            for at in kinds
        ]
        every = [(*one, *rest) for one in self.stagings for rest in iterproduct(*ends)]
        lows, highs = (np.tile(own, (len(every), 1)) for own in (self.lows, self.highs))
        kinds = [at for at, (what, _) in enumerate(self.keys) if what == "staged"] + kinds
        lows[:, kinds] = highs[:, kinds] = np.array(every).reshape(len(every), -1)
        return lows, highs

    def shrunk(self, lows: Sizes, highs: Sizes) -> tuple[Sizes, Sizes]:
        """Return boxes without sizes that no layout has: products keep their limits."""
        least, most = lows.T.copy(), highs.T.copy()
        places = {key: at for at, key in enumerate(self.keys)}
        for limit in self.limits * 2:
            rows = [places[key] for key in limit.of]
            for at in rows:
                others = [own for own in rows if own != at]
                fewest, every = (np.prod(ends[others], axis=0) for ends in (least, most))
                most[at] = np.minimum(most[at], limit.most // np.maximum(1, fewest))
                least[at] = np.maximum(least[at], -(-limit.least // np.maximum(1, every)))
        if self.groups and self.fixed:
            groups = [places["staged", group] for group in self.groups]
            alone = (most[groups] == 1).all(axis=0)
            for key, size in [(("tile", name), size) for name, size in self.fixed.items()] + [
                (("stages", None), 1)
            ]:
                at = places[key]
                inside = alone & (least[at] <= size) & (size <= most[at])
                least[at] = np.where(inside, size, least[at])
                most[at] = np.where(inside, size, np.where(alone, 0, most[at]))
        return least.T, most.T

    def bounds(self, lows: Sizes, highs: Sizes) -> Costs:
        """Return costs that no layout of a box goes under."""
        return self._taken(*self._of_boxes(*1.0 * lows.T, *1.0 * highs.T))

    def costs(self, points: Sizes) -> Costs:
        """Return the costs of layouts, infinite where one does not fit or takes too long."""
        return self._taken(*self.prices(points))

    def prices(self, points: Sizes) -> tuple[Costs, Costs]:
        """Return costs and times in s of layouts, infinite where one does not fit."""
        parts = [points[at : at + _AT_ONCE] for at in range(0, len(points), _AT_ONCE)]
        found = [self._of_points(*1.0 * part.T) for part in parts] or [np.empty((2, 0))]
        cost, time_s = (np.concatenate(own) for own in zip(*found, strict=True))
        return cost, time_s

    def _taken(self, cost: Costs, time_s: Costs) -> Costs:
        return np.where(time_s <= self.slowest_s, cost, inf)

    def samples(self, lows: Sizes, highs: Sizes) -> Sizes:
        """Return points of boxes: the middle, and the least sizes."""
        middle = np.sqrt(lows * highs).astype(np.int64)
        return np.unique(np.concatenate([middle, lows]), axis=0)

    def children(self, parents: Sizes, count: int, dice: np.random.Generator) -> Sizes:
        """Return no points: those that are offered are good ones already."""
        return parents[:0]

    def _boxes_priced(self, *ends: Number) -> tuple[Number, Number]:
        half = len(ends) // 2
        sides = dict(zip(self.keys, zip(ends[:half], ends[half:], strict=True), strict=True))
        box = Box({f"{what} {of}": own for (what, of), own in sides.items() if what in _CUT})
        return self._priced(
            {
                (what, of): box.intervals[f"{what} {of}"] if what in _CUT else Interval(*own)
                for (what, of), own in sides.items()
            }
        )

    def _priced(self, numbers: Numbers) -> tuple[Number, Number]:
        """Return cost and time of layouts, or what none of a box goes under."""
        own = self._layouts(numbers)
        found = self.model.columns(own)
        fits = found.fits & (found.shared_bytes <= shared_limit(own, self.profile, self.options))
        fits = most_of(fits & self._keeps(numbers, own))
        streamed = least_of(1.0 * (own.streams > 0))
        cost = values(found.total, self.options.objective) * (
            1.0 + (STREAM_MARGIN - 1.0) * streamed
        )
        return np.where(fits, cost, inf), np.where(fits, found.total.time_s, inf)


def _several(sizes: Sequence[Number]) -> Number:
    """Return how many sizes are over 1."""
    return sum((1.0 * (size > 1) for size in sizes), start=0.0)


def _along_z(threads: Sequence[Number]) -> Number:
    """Return the threads of a block along z [:func:`eatss.analysis.layout.thread_axes`]."""
    if len(threads) <= len(AXES):
        return threads[0] if len(threads) == len(AXES) else 1.0
    found: Number = 1.0
    taken: Flag = False
    for count in reversed(threads[:-1]):
        is_y = no(taken) & (count > 1)
        found, taken = found * chosen(is_y, 1.0, count), taken | is_y
    return found


def shared_limit(own: Candidates, profile: GpuProfile, options: ModelOptions) -> Number:
    """Return the shared memory that a block may have, in bytes, an entry a layout.

    Tiles that are filled ahead may have all that the card lets a block ask for.
    """
    asked = options.shared_per_block(profile)
    most = max(asked, profile.shared_per_block_optin_bytes)
    ahead = (own.pipeline_stages > 1) | (own.warps is not None)
    return np.where(ahead & (options.shared_per_block_bytes is None), most, asked)
