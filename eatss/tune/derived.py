"""The search space of an affine program, and the points of selections in it.

The layouts of a kernel in generated code are iterators and filters. Threads are powers of two,
points along a loop may be twelve, too; the layouts that the model compares
(:mod:`eatss.choose.cuda_candidates`) are all among the points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, Group, Layout, SplitK, mapped_loops
from eatss.analysis.variant import WORD_BYTES, KernelVariant
from eatss.base.diagnostics import Diagnostic, NoSolutionError, input_error
from eatss.base.targets import AXES, CUDA, TARGETS, TargetName
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda_candidates import (
    BLOCKS_PER_SM,
    LANES,
    LEAST_ALONG_X,
    LEAST_IDLE,
    MOST_BLOCKS_PER_SM,
    MOST_POINTS,
    PLAIN_TILE,
    POINT_LOOPS,
    POINTS,
    STREAM_POINTS,
    every_candidate,
    reach,
)
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.plan.launch import trips_of
from eatss.tune.points import CUTS, Configuration, Filter, Generated, Iterator, Listed, Space

if TYPE_CHECKING:
    from eatss.session.session import Session

NONE = "none"

PPCG_TILES = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
"""Tile sizes for PPCG: 15, so that three loops have the 3375 variants of EATSS, Sec. II."""

_SPREAD, _KEPT = "lanes * chunks > 1", "lanes * chunks == 1"
"""When sums are spread, as a condition, and when not."""

_Filters: TypeAlias = Iterable[tuple[str, str]]
"""What conditions remove, in words, and the conditions."""

KernelVariants: TypeAlias = Mapping[str, tuple[KernelVariant, ...]]


def space_of(session: Session, profile: GpuProfile | None) -> Space:
    """Return the search space that is derived from the kernels of a source.

    Args:
        session: the source; how its kernels are cut says whose code the space is of.
        profile: the card, which decides how kernels of eatss can be cut; PPCG needs none.

    Raises:
        InputError: ``EATSS-S018``, no card is named; what reading the source raises.
        NoSolutionError: ``EATSS-S021``, no kernel has sizes to choose.
    """
    variants: KernelVariants = {}
    target: TargetName = "ppcg" if session.cut == "ppcg" else "cuda"
    if target == "cuda":
        if profile is None:
            raise input_error(
                "EATSS-S018",
                "the space of generated code depends on the card",
                hint="name one: --gpu h200",
            )
        from eatss.lower.variants import kernel_variants_for  # noqa: PLC0415 - PPCG needs none

        if session.recomputable:
            session = session.of(session.select(profile, SelectOptions(target="cuda")))
        variants = kernel_variants_for(session.analysed, profile)
    return derived_space(session.analysed.facts, variants, profile, target, name=session.name)


def derived_space(
    facts: Sequence[KernelFacts],
    variants: KernelVariants,
    profile: GpuProfile | None,
    target: TargetName,
    *,
    name: str = "derived",
) -> Space:
    """Return the space of a program.

    For ``cuda`` each kernel has threads and points of a thread along its parallel loops, tiles of
    its serial loops, what is staged in shared memory, what warps compute products by, and how sums
    are spread; with several kernels names begin with ``k0.``. For ``ppcg`` there is a tile size for
    each position, the same for all kernels.

    Args:
        facts: the kernels.
        variants: for ``cuda`` how each kernel can be cut, by its name.
        profile: the card; for ``ppcg`` none is needed.
        target: who generates the code.
        name: what the space is called.

    Raises:
        NoSolutionError: ``EATSS-S021``, no kernel has sizes to choose.
    """
    if not TARGETS[target].own:
        iterators, filters = _ppcg(facts)
    else:
        assert profile is not None, "generated code is for a card"
        own = kernel_spaces(facts, variants, profile).values()
        iterators = [one for space in own for one in space.iterators()]
        filters = [one for space in own for one in space.filters()]
    if not iterators:
        raise NoSolutionError(
            Diagnostic(
                code="EATSS-S021",
                message=f"{name} has no kernel with sizes to choose: all run in one thread",
            )
        )
    return Space(name=name, iterators=tuple(iterators), filters=tuple(filters))


def kernel_spaces(
    facts: Sequence[KernelFacts], variants: KernelVariants, profile: GpuProfile
) -> dict[str, KernelSpace]:
    """Return what can be decided about each kernel, by its name, in generated code."""
    return {
        one.name: KernelSpace(
            facts=one,
            every=tuple(every_candidate(one, variants.get(one.name, ()), profile)),
            profile=profile,
            prefix=f"k{one.index}." if len(facts) > 1 else "",
        )
        for one in facts
    }


def point_of(
    selection: Selection,
    facts: Sequence[KernelFacts],
    variants: KernelVariants,
    profile: GpuProfile,
) -> Configuration:
    """Return the point of a selection for generated code in the space of :func:`derived_space`.

    Args:
        selection: selected for ``cuda``, or with kernels whose sizes are replaced.
        facts: the kernels.
        variants: how each can be cut.
        profile: the card.
    """
    spaces = kernel_spaces(facts, variants, profile)
    point: Configuration = {}
    for kernel in selection.kernels:
        point |= spaces[kernel.name].point(kernel)
    return point


def _ppcg(facts: Sequence[KernelFacts]) -> tuple[list[Iterator], list[Filter]]:
    """Return the tile sizes by position, for the kernel with the most loops."""
    depth = max((len(one.loops) for one in facts), default=0)
    iterators, filters = [], []
    for at in range(depth):
        name = f"tile_{at}"
        most = max(reach(one.loops[at].trip_count) for one in facts if at < len(one.loops))
        iterators.append(Iterator(name=name, over=Listed(values=PPCG_TILES)))
        condition = f"{name} <= {max(most, PPCG_TILES[0])}"
        filters.append(Filter(name=f"tiles of loop {at} no longer than it", condition=condition))
    return iterators, filters


def cut_values(own: Layout) -> dict[str, Any]:
    """Return what a layout decides beside sizes and places, by the names of a search space."""
    share = 1 if own.cut[1] is None else own.chunks
    spread = own.spread or SplitK(lanes=1, tile=1, chunks=1)
    ways = own.instruction or NONE, own.pipeline_stages, own.host_loop or NONE, share, own.streams
    return dict(zip(CUTS, (*ways, spread.lanes, spread.tile, spread.chunks), strict=True))


@dataclass(frozen=True, kw_only=True)
class KernelSpace:
    """What can be decided about one kernel, and what it is called.

    Attributes:
        facts: The kernel.
        every: The layouts that the model compares.
        profile: The card.
        prefix: What stands before all names: ``k0.`` where there are several kernels.
    """

    facts: KernelFacts
    every: tuple[Candidates, ...]
    profile: GpuProfile
    prefix: str

    @cached_property
    def apart(self) -> tuple[Candidates, ...]:
        """The layouts whose blocks share no sum."""
        return tuple(one for one in self.every if one.shared_sum is None)

    @cached_property
    def sharing(self) -> tuple[Candidates, ...]:
        """Those whose blocks share one."""
        return tuple(one for one in self.every if one.cut[1] is not None)

    @cached_property
    def products(self) -> tuple[Candidates, ...]:
        """Those of ``apart`` whose warps compute products by an instruction."""
        return tuple(one for one in self.apart if one.warps is not None)

    @cached_property
    def _plain(self) -> tuple[Candidates, ...]:
        return tuple(one for one in self.apart if one.warps is None and one.spread is None)

    @cached_property
    def mapped(self) -> tuple[str, ...]:
        """The loops that have threads and points."""
        return tuple(loop.name for loop in mapped_loops(self.facts))

    @cached_property
    def serial(self) -> tuple[str, ...]:
        """The other loops of the band, which have tiles."""
        return tuple(loop.name for loop in self.facts.loops if loop.name not in self.mapped)

    @cached_property
    def staged(self) -> dict[Group, str]:
        """What may be staged, and its variables: ``staged_A``, of further groups ``staged_A_2``."""
        found: dict[Group, str] = {}
        offered = [group for one in self.every for group, on in one.staged.items() if on.any()]
        for group in dict.fromkeys(offered):
            array = re.sub("[^0-9A-Za-z_]", "_", self.facts.references[group[0]].array)
            several = (f"staged_{array}_{number}" for number in count(2))
            names = chain([f"staged_{array}"], several)
            found[group] = next(name for name in names if name not in found.values())
        return found

    @cached_property
    def hosts(self) -> tuple[str | None, ...]:
        """The loops that may run on the host; ``None`` for no loop."""
        return tuple(dict.fromkeys(one.host_loop for one in self.apart))

    @cached_property
    def cuts(self) -> dict[str, Listed | Generated]:
        """What is decided beside sizes and places: those of :func:`cut_values` that differ."""
        found: dict[str, Listed | Generated] = {}
        every = [cut_values(one) for one in self.every]
        for kind, neutral in cut_values(Layout(tile_sizes=(), block=())).items():
            own = [neutral, *(values[kind] for values in every)]
            listed = tuple(dict.fromkeys(own)) if isinstance(neutral, str) else _values(*own)
            if len(listed) > 1:
                found[kind] = Listed(values=listed)
        if any(one.spread is not None for one in self.apart):
            found["lanes"] = Listed(values=tuple(sorted(LANES)))
            found["steps"] = Listed(values=_values(1, *LANES.values()))
            found["chunks"] = _powers(max(int(np.max(one.chunks)) for one in self.apart))
        return found

    def iterators(self) -> list[Iterator]:
        """Return the iterators, those that most filters name first."""
        if not self.apart:
            return []
        over = dict(self.cuts)
        warps = {"warps": over.pop("warps")} if self.products else {}
        every = {
            **warps,
            **{f"threads_{n}": _powers(self._most_threads(n)) for n in self.mapped},
            **{f"points_{n}": Listed(values=self._points_along(n)) for n in self.mapped},
            **{f"tile_{n}": Listed(values=self._tiles(n)) for n in self.serial},
            **dict.fromkeys(self.staged.values(), Listed(values=(0, 1))),
            **over,
        }
        return [Iterator(name=self.prefix + name, over=values) for name, values in every.items()]

    def point(self, kernel: KernelSelection) -> Configuration:
        """Return the values of the variables in a selection."""
        if not self.apart:
            return {}
        return self.values(kernel, {one: kernel.shared.issuperset(one) for one in self.staged})

    def values(self, own: Layout, staged: Mapping[Group, bool]) -> Configuration:
        """Return the values of the variables in a layout."""
        tiles, threads, cuts = own.tiles, own.threads, cut_values(own)
        found = {
            **{f"threads_{n}": threads.get(n, 1) for n in self.mapped},
            **{f"points_{n}": tiles[n] // threads.get(n, 1) for n in self.mapped},
            **{f"tile_{n}": tiles[n] for n in self.serial},
            **{name: int(staged.get(group, 0)) for group, name in self.staged.items()},
            **{kind: cuts[kind] for kind in self.cuts},
        }
        return {self.prefix + name: value for name, value in found.items()}

    def filters(self) -> list[Filter]:
        """Return the filters; a condition holds for all layouts that the model compares."""
        if not self.apart:
            return []
        pairs = [
            *self._thread_filters(),
            *self._point_filters(),
            *self._tile_filters(),
            *self._cut_filters(),
            *self._stage_filters(),
            *(pair for one in self.products for pair in self._product_filters(one)),
            *self._sharing_filters(),
            *self._streaming_filters(),
            *self._shared_filters(),
        ]
        if not self.prefix:
            return [Filter(name=name, condition=text) for name, text in pairs]
        names = [one.name.removeprefix(self.prefix) for one in self.iterators()]
        own = "|".join(names) or "(?!)"  # nothing, where a kernel has no variables
        variable = re.compile(rf"(?<![\w.'])({own})(?!\w)")
        label = self.prefix.rstrip(".")
        return [
            Filter(name=f"{label}: {name}", condition=variable.sub(rf"{self.prefix}\1", text))
            for name, text in pairs
        ]

    def _alone(self, condition: str) -> str:
        """Return a condition that holds only where each thread computes by itself."""
        return f"warps != '{NONE}' or {condition}" if self.products else condition

    def _tile(self, loop: str) -> str:
        """Return the tile of a loop as an expression."""
        return f"threads_{loop} * points_{loop}" if loop in self.mapped else f"tile_{loop}"

    @cached_property
    def _spreads(self) -> bool:
        return "lanes" in self.cuts

    @cached_property
    def _threads(self) -> str:
        lanes = ["lanes"] * self._spreads
        return " * ".join([*(f"threads_{loop}" for loop in self.mapped), *lanes]) or "1"

    @cached_property
    def _points(self) -> str:
        return " * ".join(f"points_{loop}" for loop in self.mapped) or "1"

    @cached_property
    def _boxes(self) -> str:
        """How many groups are staged, as an expression."""
        return " + ".join(self.staged.values())

    @cached_property
    def _all_tiles(self) -> str:
        """The number of tiles, as an expression."""
        trips = trips_of(self.facts)
        every = (f"ceildiv({int(trips[n])}, {self._tile(n)})" for n in self.mapped)
        return " * ".join(every)

    def _thread_filters(self) -> _Filters:
        yield "no more threads than a block may have", f"{self._threads} <= card.threads_per_block"
        warp = self.profile.threads_per_warp
        totals = {total for one in self.apart for total in _totals(one) if total % warp}
        short = f" or {self._threads} in {sorted(totals)}" if totals else ""
        yield "whole warps", f"{self._threads} % card.threads_per_warp == 0{short}"
        if self.mapped and not self._spreads:
            least = min(LEAST_ALONG_X, self._most_threads(self.mapped[-1]))
            near = f"threads_{self.mapped[-1]} >= {least}"
            yield "neighbouring threads", self._alone(near)
        if len(self.mapped) > len(AXES):
            several = " + ".join(f"(threads_{n} > 1)" for n in self.mapped[:-1])
            yield "threads along three loops", f"{several} <= {len(AXES) - 1}"

    def _point_filters(self) -> _Filters:
        held = any(launch.held for one in self.apart for launch in one.variant.launches)
        most = MOST_POINTS if held or not self._plain else STREAM_POINTS
        yield "no more points than a thread is given", self._alone(f"{self._points} <= {most}")
        for loop in self.mapped if self.products else ():
            own = [n for n in POINTS if n <= self._reach(loop)]
            yield f"points along {loop}", self._alone(f"points_{loop} in {own}")
        if len(self.mapped) > POINT_LOOPS:
            several = " + ".join(f"(points_{loop} > 1)" for loop in self.mapped)
            yield f"points along {POINT_LOOPS} loops", f"{several} <= {POINT_LOOPS}"
        words = min((_held_words(one.variant) for one in self._plain), default=0)
        if words:
            room = (
                "min(card.registers_per_thread, card.registers_per_block // "
                f"({self._threads})) * 3 // 4"
            )
            fits = f"{words} * {self._points} <= {room}"
            yield "sums in registers", f"{_SPREAD} or {fits}" if self._spreads else fits

    def _tile_filters(self) -> _Filters:
        for loop in self.mapped:
            fits = self._alone(f"{self._tile(loop)} <= {self._reach(loop)}")
            yield f"tiles of {loop} no longer than the loop", fits
        for loop in self.serial:
            tile, every = f"tile_{loop}", self._tiles(loop)
            own = self._tiles(loop, [one for one in self.apart if one.warps is None])
            if own != every:
                yield f"tiles of {loop}", self._alone(f"{tile} in {list(own)}")
            host = [_on_host(loop)] if loop in self.hosts and "host" in self.cuts else []
            for on_host in host:
                here = [one for one in self.apart if one.host_loop != loop]
                alike = any((one.tiles[loop] == 1).any() for one in here)
                yield (
                    f"{loop} on the host has no tile",
                    f"not ({on_host}) or {tile} == 1" if alike else f"({on_host}) == ({tile} == 1)",
                )
            plain = self._plain_tile(loop)
            if self.staged and plain is not None and len(every) > 1:
                cases = [f"{self._boxes} > 0", *host, *([_SPREAD] if self._spreads else [])]
                either = " or ".join([*cases, f"{tile} == {plain}"])
                yield f"one tile of {loop} where nothing is staged", either
            if self._spreads and len(every) > 1:
                either = " or ".join([f"not ({_SPREAD})", *host, f"{tile} == {PLAIN_TILE}"])
                yield f"one tile of {loop} where sums are spread", either

    def _cut_filters(self) -> _Filters:
        if not self._spreads:
            return
        ways = [f"lanes == {own} and steps in {list(several)}" for own, several in LANES.items()]
        spread = f"({_SPREAD} and ({' or '.join(ways)}))"
        yield "lanes and steps that go together", f"({_KEPT} and steps == 1) or {spread}"
        cuts = []
        for one in self.apart:
            parts = [_KEPT if one.spread is None else _SPREAD]
            parts += [_on_host(one.host_loop)] if "host" in self.cuts else []
            parts += [f"warps == '{one.instruction or NONE}'"] if self.products else []
            cuts.append(f"({' and '.join(parts)})")
        yield "cuts that the generator can make", " or ".join(dict.fromkeys(cuts))
        trips = trips_of(self.facts)
        launches = (own for one in self.apart if one.spread for own in one.variant.launches)
        longest = int(max(trips[own.sum_loop] for own in launches if own.sum_loop is not None))
        yield "chunks as long as the sum", f"chunks * steps < {2 * longest} or chunks == 1"
        blocks = f"chunks * {self._all_tiles or 1} <= {MOST_BLOCKS_PER_SM} * card.sm_count"
        yield "no more blocks than a card needs", f"chunks == 1 or {blocks}"
        if self.staged:
            yield "spread sums stage nothing", f"{self._boxes} == 0 or {_KEPT}"

    def _stage_filters(self) -> _Filters:
        """Yield what holds where boxes are filled ahead."""
        if "stages" not in self.cuts:
            return
        ahead = list(_values(*(one.stages for one in self._plain)))
        own = f"stages == 1 or (stages in {ahead} and {self._boxes or 0} > 0)"
        yield "several pipeline stages where something is staged", self._alone(own)
        if self._spreads:
            yield "one pipeline stage of spread sums", f"stages == 1 or not ({_SPREAD})"

    def _product_filters(self, one: Candidates) -> _Filters:
        """Yield what holds where warps compute products: what their layouts have."""
        own, tiles, threads = one.variant.instruction, one.tiles, one.threads
        assert own is not None
        product = one.variant.products[0]
        elsewhere = f"warps != '{own.name}' or "
        sides = zip((product.rows, product.columns), own.lanes, own.points, strict=True)
        for loop, lanes, points in sides:
            boxes = f"threads_{loop} % {lanes} == 0"
            whole = f"points_{loop} % {max(2, points)} == 0"
            sizes = f"{self._tile(loop)} in {list(_values(tiles[loop]))}"
            yield f"warp tiles along {loop}", f"{elsewhere}{boxes} and {whole} and {sizes}"
        for loop in self.mapped:
            if loop not in (product.rows, product.columns):
                yield f"tiles of {loop} for products", f"{elsewhere}{self._tile(loop)} == 1"
        each = prod(tiles[loop] // threads[loop] for loop in self.mapped)
        yield (
            "threads and points for products",
            f"{elsewhere}{self._threads} in {_totals(one)} and "
            f"{int(each.min())} <= {self._points} <= {int(each.max())}",
        )
        for loop in self.serial:
            some = _values(tiles[loop])
            if some != self._tiles(loop):
                yield (
                    f"tiles of {loop} for products",
                    f"{elsewhere}tile_{loop} in {list(some)}",
                )
        staged = [
            f"{name} == {int(np.any(one.staged.get(group, 0)))}"
            for group, name in self.staged.items()
        ]
        yield "factors of products are staged", elsewhere + " and ".join(staged)

    def _sharing_filters(self) -> _Filters:
        """Yield what holds where blocks share a sum: there are few tiles, and no block is idle."""
        if not self.sharing:
            return
        none = "share == 1 or "
        loop = self.sharing[0].variant.shared_loop
        assert loop is not None
        if self._spreads:
            yield "sums that are shared or spread", f"{none}not ({_SPREAD})"
        if "host" in self.cuts:
            yield "sums that are shared by one launch", none + _on_host(None)
        tiles = self._all_tiles
        most = f"share * {tiles} <= {BLOCKS_PER_SM[-1]} * card.sm_count"
        yield (
            "few tiles where blocks share a sum",
            f"{none}({tiles} < card.sm_count and {most})",
        )
        turns = f"ceildiv({int(trips_of(self.facts)[loop])}, {self._tile(loop)})"
        yield "split-K: a k-tile for each block", f"{none}share <= {turns}"
        for group, name in self.staged.items():
            if not any(np.any(one.staged.get(group, 0)) for one in self.apart):
                yield f"{name} where blocks share a sum", f"share > 1 or {name} == 0"

    def _streaming_filters(self) -> _Filters:
        """Yield what holds where blocks take equal shares of all steps."""
        if "stream" not in self.cuts:
            return
        tiles, none = self._all_tiles, "stream == 0 or "
        yield "stream-K: pipeline stages", f"{none}{self._boxes} > 0"
        if self._spreads:
            yield "stream-K: no spread sums", f"{none}not ({_SPREAD})"
        if "host" in self.cuts:
            yield "stream-K: one launch", none + _on_host(None)
        if self.sharing:
            yield "stream-K: no split-K", f"{none}share == 1"
        idle = f"{tiles} < {1 - LEAST_IDLE} * stream * ceildiv({tiles}, stream)"
        yield "stream-K: SMs that the last wave leaves idle", f"{none}{idle}"

    def _shared_filters(self) -> _Filters:
        terms = [
            f"{name} * {self.facts.element_bytes} * ({elements})"
            for group, name in self.staged.items()
            if (elements := self._elements(group)) is not None
        ]
        if terms:
            least = " + ".join(terms)
            if "stages" in self.cuts:
                least = f"stages * ({least})"
            yield "shared memory of what is staged", f"{least} <= card.shared_per_block_optin_bytes"

    def _elements(self, group: Group) -> str | None:
        """Return the elements that a tile touches through a group, at least, as an expression."""
        of = [own for own in self.facts.volumes if own.exact and set(own.references) <= set(group)]
        widths = {
            access.element_bytes
            for statement in self.facts.work.statements
            for access in statement.accesses
            if access.reference in group
        }
        if not of or widths != {self.facts.element_bytes}:
            return None
        terms = of[0].elements.terms
        if not {loop for term in terms for loop in term.loops} <= {*self.mapped, *self.serial}:
            return None
        return " + ".join(
            " * ".join([str(term.coefficient), *map(self._tile, term.loops)]) for term in terms
        )

    def _plain_tile(self, loop: str) -> int | None:
        """Return the only tile of a loop where nothing is staged."""
        found = {
            int(tile)
            for one in self._plain
            for tile in one.tiles[loop][sum(one.staged.values(), 0 * one.stages) == 0]
        }
        return found.pop() if len(found) == 1 else None

    def _tiles(self, loop: str, of: Sequence[Candidates] | None = None) -> tuple[int, ...]:
        """Return the tiles of a serial loop that are compared; 1 where it runs on the host."""
        on_host = [1] if loop in self.hosts else []
        own = (one.tiles[loop] for one in (self.apart if of is None else of))
        return _values(*on_host, *own)

    def _reach(self, loop: str) -> int:
        return reach(next(own.trip_count for own in self.facts.loops if own.name == loop))

    def _most_threads(self, loop: str) -> int:
        most = min(self._reach(loop), self.profile.threads_per_block)
        along_z = loop == self.mapped[0] and len(self.mapped) == len(AXES)
        own = [int(one.threads[loop].max()) for one in self.products]
        return max(min(most, CUDA.most_threads["z"]) if along_z else most, *own, 1)

    def _points_along(self, loop: str) -> tuple[int, ...]:
        most = min(POINTS[-1], self._reach(loop))
        own = (one.tiles[loop] // one.threads[loop] for one in self.products)
        return _values(*own, [n for n in POINTS if n <= most])


def _on_host(loop: str | None) -> str:
    return f"host == '{loop or NONE}'"


def _powers(most: int) -> Generated:
    return Generated(generator="powers", arguments=("2", "1", str(most)))


def _values(*columns: Any) -> tuple[int, ...]:
    """Return the values of columns, each once, the least first."""
    return tuple(sorted({int(value) for column in columns for value in np.unique(column)}))


def _totals(one: Candidates) -> list[int]:
    """Return the threads that a block has in layouts."""
    return list(_values(prod((count for _, count in one.block), start=one.lanes)))


def _held_words(variant: KernelVariant) -> int:
    """Return the words that one point keeps in registers, in the launch that keeps most."""
    return max(
        sum(max(1, own.element_bytes // WORD_BYTES) for own in launch.held)
        for launch in variant.launches
    )
