"""The layouts of a kernel in generated code, as iterators and filters.

Threads are powers of two, points along a loop may be twelve, too; the layouts that the model
compares (:mod:`eatss.model.cuda_lattice`) are all among the points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import AXES, MAX_THREADS_Z, mapped_loops
from eatss.analysis.structure import Structure
from eatss.gpu.profile import GpuProfile
from eatss.model.cuda_lattice import (
    LANES,
    LEAST_ALONG_X,
    MOST_BLOCKS_PER_SM,
    MOST_POINTS,
    PLAIN_TILE,
    POINT_LOOPS,
    POINTS,
    STREAM_POINTS,
    CudaLattice,
    Group,
    Integers,
    lattices,
    reach,
)
from eatss.model.shared_sum_lattice import (
    BLOCKS_PER_SM,
    LEAST_IDLE,
    sharing_lattices,
    streaming_lattices,
)
from eatss.polynomial import Polynomial
from eatss.prediction.cuda_shape import trips_of
from eatss.space.nouns import Filter, Generated, Iterator, Listed

_WORD_BYTES = 4
NONE = "none"


@dataclass(frozen=True, kw_only=True)
class CudaVariables:
    """The variables of one kernel, and what they are called.

    Attributes:
        facts: The kernel.
        lattices: The layouts that the model compares, one for each structure without sums that
            blocks share.
        sharing: Those of structures whose blocks share sums.
        streaming: Those whose blocks take equal shares of all steps.
        profile: The card.
        prefix: What stands before all names: ``k0.`` where there are several kernels.
    """

    facts: KernelFacts
    lattices: tuple[CudaLattice, ...]
    sharing: tuple[CudaLattice, ...]
    streaming: tuple[CudaLattice, ...]
    profile: GpuProfile
    prefix: str

    @classmethod
    def of(
        cls,
        facts: KernelFacts,
        structures: Sequence[Structure],
        profile: GpuProfile,
        prefix: str = "",
    ) -> CudaVariables:
        """Return the variables of a kernel with its structures."""
        alone = [one for one in structures if one.shared_loop is None]
        together = [one for one in structures if one.shared_loop is not None]
        own = lattices(facts, alone, profile)
        return cls(
            facts=facts,
            lattices=tuple(own),
            streaming=tuple(streaming_lattices(facts, own, profile)),
            sharing=tuple(sharing_lattices(facts, together, profile)),
            profile=profile,
            prefix=prefix,
        )

    def name(self, kind: str, of: str | None = None) -> str:
        """Return what a variable is called: ``tile_i``, ``k0.lanes``."""
        plain = "" if of is None else "_" + re.sub("[^0-9A-Za-z_]", "_", of)
        return f"{self.prefix}{kind}{plain}"

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
        offered = [group for one in self.lattices for group, on in one.staged.items() if on.any()]
        for group in dict.fromkeys(offered):
            array = self.facts.references[group[0]].array
            name, number = self.name("staged", array), 1
            while name in found.values():
                number += 1
                name = self.name("staged", f"{array}_{number}")
            found[group] = name
        return found

    @cached_property
    def hosts(self) -> tuple[str | None, ...]:
        """The loops that may run on the host; ``None`` for no loop."""
        return tuple(dict.fromkeys(one.structure.host_loop for one in self.lattices))

    @cached_property
    def products(self) -> tuple[CudaLattice, ...]:
        """The lattices whose warps compute products by an instruction."""
        return tuple(one for one in self.lattices if one.structure.instruction is not None)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The boxes that may be in use at once."""
        every = (*self.lattices, *self.sharing)
        return tuple(sorted({n for one in every for n in _values(one.stages)} | {1}))

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """The blocks that may take equal shares of all steps, 0 for none."""
        return tuple(sorted({0, *(n for one in self.streaming for n in _values(one.streams))}))

    @property
    def spreads(self) -> bool:
        """Whether sums may be spread."""
        return any(one.structure.spreads for one in self.lattices)

    def iterators(self) -> list[Iterator]:
        """Return the iterators, those that most filters name first."""
        if not self.lattices:
            return []
        found = []
        if self.products:
            ways = (NONE, *(_instruction(one) for one in self.products))
            found.append(Iterator(name=self.name("warps"), over=Listed(values=ways)))
        found += [
            Iterator(name=self.name("threads", loop), over=self._powers(self._most_threads(at)))
            for at, loop in enumerate(self.mapped)
        ]
        found += [
            Iterator(name=self.name("points", loop), over=self._points_along(loop))
            for loop in self.mapped
        ]
        found += [
            Iterator(name=self.name("tile", loop), over=Listed(values=self._tiles(loop)))
            for loop in self.serial
        ]
        found += [Iterator(name=n, over=Listed(values=(0, 1))) for n in self.staged.values()]
        if self.stages != (1,):
            found.append(Iterator(name=self.name("stages"), over=Listed(values=self.stages)))
        if len(self.hosts) > 1:
            hosts = tuple(NONE if host is None else host for host in self.hosts)
            found.append(Iterator(name=self.name("host"), over=Listed(values=hosts)))
        if self.sharing:
            blocks = sorted({1, *(n for one in self.sharing for n in _values(one.chunks))})
            found.append(Iterator(name=self.name("share"), over=Listed(values=tuple(blocks))))
        if self.streaming:
            found.append(Iterator(name=self.name("stream"), over=Listed(values=self.streams)))
        if self.spreads:
            steps = sorted({1, *(step for own in LANES.values() for step in own)})
            chunks = max(int(one.chunks.max()) for one in self.lattices)
            found += [
                Iterator(name=self.name("lanes"), over=Listed(values=tuple(sorted(LANES)))),
                Iterator(name=self.name("steps"), over=Listed(values=tuple(steps))),
                Iterator(name=self.name("chunks"), over=self._powers(chunks)),
            ]
        return found

    def filters(self) -> list[Filter]:
        """Return the filters; a condition holds for all layouts that the model compares."""
        if not self.lattices:
            return []
        pairs = [
            *self._thread_filters(),
            *self._point_filters(),
            *self._tile_filters(),
            *self._cut_filters(),
            *self._stage_filters(),
            *self._product_filters(),
            *self._sharing_filters(),
            *self._streaming_filters(),
            *self._shared_filters(),
        ]
        label = f"{self.prefix.rstrip('.')}: " if self.prefix else ""
        return [Filter(name=f"{label}{name}", condition=text) for name, text in pairs]

    @cached_property
    def _threads(self) -> str:
        lanes = [self.name("lanes")] if self.spreads else []
        return " * ".join([*(self.name("threads", loop) for loop in self.mapped), *lanes]) or "1"

    @cached_property
    def _points(self) -> str:
        return " * ".join(self.name("points", loop) for loop in self.mapped) or "1"

    @cached_property
    def _spread(self) -> str:
        """When sums are spread, as a condition."""
        return f"{self.name('lanes')} * {self.name('chunks')} > 1"

    @cached_property
    def _plain(self) -> tuple[CudaLattice, ...]:
        return tuple(
            one
            for one in self.lattices
            if not one.structure.spreads and one.structure.instruction is None
        )

    def _alone(self, condition: str) -> str:
        """Return a condition that holds only where each thread computes by itself."""
        return f"{self.name('warps')} != '{NONE}' or {condition}" if self.products else condition

    def _thread_filters(self) -> Iterable[tuple[str, str]]:
        yield "no more threads than a block may have", f"{self._threads} <= card.threads_per_block"
        warp = self.profile.threads_per_warp
        totals = {
            total
            for one in self.lattices
            for total in np.unique(prod(one.threads.values(), start=one.lanes)).tolist()
            if total % warp
        }
        short = f" or {self._threads} in {sorted(totals)}" if totals else ""
        yield "whole warps", f"{self._threads} % card.threads_per_warp == 0{short}"
        if self.mapped and not self.spreads:
            least = min(LEAST_ALONG_X, self._most_threads(len(self.mapped) - 1))
            near = f"{self.name('threads', self.mapped[-1])} >= {least}"
            yield "neighbouring threads", self._alone(near)
        if len(self.mapped) > len(AXES):
            several = " + ".join(f"({self.name('threads', n)} > 1)" for n in self.mapped[:-1])
            yield "threads along three loops", f"{several} <= {len(AXES) - 1}"

    def _point_filters(self) -> Iterable[tuple[str, str]]:
        held = [any(launch.held for launch in one.structure.launches) for one in self.lattices]
        most = MOST_POINTS if any(held) or not self._plain else STREAM_POINTS
        yield "no more points than a thread is given", self._alone(f"{self._points} <= {most}")
        for loop in self.mapped if self.products else ():
            own = [n for n in POINTS if n <= self._reach(loop)]
            yield f"points along {loop}", self._alone(f"{self.name('points', loop)} in {own}")
        if len(self.mapped) > POINT_LOOPS:
            several = " + ".join(f"({self.name('points', loop)} > 1)" for loop in self.mapped)
            yield f"points along {POINT_LOOPS} loops", f"{several} <= {POINT_LOOPS}"
        words = min((self._held_words(one.structure) for one in self._plain), default=0)
        if words:
            room = (
                "min(card.registers_per_thread, card.registers_per_block // "
                f"({self._threads})) * 3 // 4"
            )
            fits = f"{words} * {self._points} <= {room}"
            yield "sums in registers", f"{self._spread} or {fits}" if self.spreads else fits

    def _held_words(self, structure: Structure) -> int:
        """Return the words that one point keeps in registers, in the launch that keeps most."""
        return max(
            sum(max(1, own.element_bytes // _WORD_BYTES) for own in launch.held)
            for launch in structure.launches
        )

    def _tile_filters(self) -> Iterable[tuple[str, str]]:
        for loop in self.mapped:
            most = self._reach(loop)
            fits = self._alone(f"{self._tile(loop)} <= {most}")
            yield f"tiles of {loop} no longer than the loop", fits
        staged = " + ".join(self.staged.values())
        for loop in self.serial:
            tile, host = self.name("tile", loop), self._runs_on_host(loop)
            own = self._tiles(loop, [one for one in self.lattices if one not in self.products])
            if own != self._tiles(loop):
                yield f"tiles of {loop}", self._alone(f"{tile} in {list(own)}")
            if host is not None and len(self.hosts) > 1:
                here = [one for one in self.lattices if one.structure.host_loop != loop]
                alike = any((one.tiles[loop] == 1).any() for one in here if loop in one.tiles)
                single = f"not ({host}) or {tile} == 1" if alike else f"({host}) == ({tile} == 1)"
                yield f"{loop} on the host has no tile", single
            plain = self._plain_tile(loop)
            cases = [text for text in (host if len(self.hosts) > 1 else None,) if text is not None]
            if staged and plain is not None and len(self._tiles(loop)) > 1:
                if self.spreads:
                    cases.append(self._spread)
                either = " or ".join([f"{staged} > 0", *cases, f"{tile} == {plain}"])
                yield f"one tile of {loop} where nothing is staged", either
            if self.spreads and len(self._tiles(loop)) > 1:
                either = " or ".join(
                    [f"not ({self._spread})", *cases[:1], f"{tile} == {PLAIN_TILE}"]
                )
                yield f"one tile of {loop} where sums are spread", either

    def _cut_filters(self) -> Iterable[tuple[str, str]]:
        if not self.spreads:
            return
        lanes, steps, chunks = (self.name(kind) for kind in ("lanes", "steps", "chunks"))
        ways = [
            f"{lanes} == {own} and {steps} in {list(several)}" for own, several in LANES.items()
        ]
        spread = f"({self._spread} and ({' or '.join(ways)}))"
        plain = f"({lanes} * {chunks} == 1 and {steps} == 1)"
        yield "lanes and steps that go together", f"{plain} or {spread}"
        cuts = []
        for one in self.lattices:
            text = self._spread if one.structure.spreads else f"{lanes} * {chunks} == 1"
            if len(self.hosts) > 1:
                text += f" and {self.name('host')} == '{one.structure.host_loop or NONE}'"
            if self.products:
                text += f" and {self.name('warps')} == '{_instruction(one)}'"
            cuts.append(f"({text})")
        yield "cuts that the generator can make", " or ".join(dict.fromkeys(cuts))
        trips = trips_of(self.facts)
        sums = [
            launch.sum_loop
            for one in self.lattices
            for launch in one.structure.launches
            if one.structure.spreads and launch.sum_loop is not None
        ]
        longest = int(max(trips[name] for name in sums))
        yield "chunks as long as the sum", f"{chunks} * {steps} < {2 * longest} or {chunks} == 1"
        tiles = " * ".join(
            ["1"] * (not self.mapped)
            + [f"ceildiv({int(trips[loop])}, {self._tile(loop)})" for loop in self.mapped]
        )
        most = f"{MOST_BLOCKS_PER_SM} * card.sm_count"
        yield "no more blocks than a card needs", f"{chunks} == 1 or {chunks} * {tiles} <= {most}"
        if self.staged:
            staged = " + ".join(self.staged.values())
            yield "spread sums stage nothing", f"{staged} == 0 or {lanes} * {chunks} == 1"

    def _stage_filters(self) -> Iterable[tuple[str, str]]:
        """Yield what holds where boxes are filled ahead."""
        if self.stages == (1,):
            return
        stages = self.name("stages")
        ahead = sorted({n for one in self._plain for n in _values(one.stages)})
        staged = " + ".join(self.staged.values()) or "0"
        yield (
            "boxes ahead where something is staged",
            self._alone(f"{stages} == 1 or ({stages} in {ahead} and {staged} > 0)"),
        )
        if self.spreads:
            yield "no boxes ahead of spread sums", f"{stages} == 1 or not ({self._spread})"

    def _product_filters(self) -> Iterable[tuple[str, str]]:
        """Yield what holds where warps compute products: what their layouts have."""
        if not self.products:
            return
        warps = self.name("warps")
        for one in self.products:
            own = one.structure.instruction
            assert own is not None
            product = one.structure.products[0]
            elsewhere = f"{warps} != '{own.name}' or "
            sides = zip((product.rows, product.columns), own.lanes, own.points, strict=True)
            for loop, lanes, points in sides:
                boxes = f"{self.name('threads', loop)} % {lanes} == 0"
                whole = f"{self.name('points', loop)} % {max(2, points)} == 0"
                sizes = f"{self._tile(loop)} in {_values(one.tiles[loop])}"
                yield (
                    f"boxes of lanes along {loop}",
                    f"{elsewhere}{boxes} and {whole} and {sizes}",
                )
            for loop in self.mapped:
                if loop not in (product.rows, product.columns):
                    yield f"tiles of {loop} for products", f"{elsewhere}{self._tile(loop)} == 1"
            totals = _values(prod(one.threads.values(), start=one.lanes))
            points_of = [one.tiles[loop] // one.threads[loop] for loop in self.mapped]
            each = prod(points_of, start=one.lanes)
            sizes = (
                f"{self._threads} in {totals} and "
                f"{int(each.min())} <= {self._points} <= {int(each.max())}"
            )
            yield "threads and points for products", elsewhere + sizes
            for loop in self.serial:
                some = f"{self.name('tile', loop)} in {_values(one.tiles[loop])}"
                if _values(one.tiles[loop]) != list(self._tiles(loop)):
                    yield f"tiles of {loop} for products", elsewhere + some
            staged = [
                f"{name} == {int(group in one.staged and one.staged[group].any())}"
                for group, name in self.staged.items()
            ]
            yield "factors of products are staged", elsewhere + " and ".join(staged)

    def _sharing_filters(self) -> Iterable[tuple[str, str]]:
        """Yield what holds where blocks share a sum: there are few tiles, and no block is idle."""
        if not self.sharing:
            return
        share = self.name("share")
        loop = self.sharing[0].structure.shared_loop
        assert loop is not None
        if self.spreads:
            yield "sums that are shared or spread", f"{share} == 1 or not ({self._spread})"
        if len(self.hosts) > 1:
            host = f"{self.name('host')} == '{NONE}'"
            yield "sums that are shared by one launch", f"{share} == 1 or {host}"
        trips, tiles = trips_of(self.facts), self._tiles_of_all
        few = (
            f"{tiles} < card.sm_count and {share} * {tiles} <= {BLOCKS_PER_SM[-1]} * card.sm_count"
        )
        yield "few tiles where blocks share a sum", f"{share} == 1 or ({few})"
        turns = f"{share} <= ceildiv({int(trips[loop])}, {self._tile(loop)})"
        yield "a turn for each block that shares a sum", f"{share} == 1 or {turns}"

    @cached_property
    def _tiles_of_all(self) -> str:
        """The number of tiles, as an expression."""
        trips = trips_of(self.facts)
        return " * ".join(f"ceildiv({int(trips[n])}, {self._tile(n)})" for n in self.mapped)

    def _streaming_filters(self) -> Iterable[tuple[str, str]]:
        """Yield what holds where blocks take equal shares of all steps."""
        if not self.streaming:
            return
        stream, tiles = self.name("stream"), self._tiles_of_all
        none = f"{stream} == 0 or "
        staged = " + ".join(self.staged.values())
        yield "boxes where blocks take equal shares", f"{none}{staged} > 0"
        if self.spreads:
            yield "equal shares of sums that are not spread", f"{none}not ({self._spread})"
        if len(self.hosts) > 1:
            yield "equal shares of one launch", f"{none}{self.name('host')} == '{NONE}'"
        if self.sharing:
            yield "equal shares of sums that are not shared", f"{none}{self.name('share')} == 1"
        idle = f"{tiles} < {1 - LEAST_IDLE} * {stream} * ceildiv({tiles}, {stream})"
        yield "an idle card where blocks take equal shares", f"{none}{idle}"

    def _shared_filters(self) -> Iterable[tuple[str, str]]:
        terms = []
        for group, name in self.staged.items():
            elements = self._elements(group)
            if elements is not None:
                terms.append(f"{name} * {self.facts.element_bytes} * ({elements})")
        if terms:
            least = " + ".join(terms)
            if self.stages != (1,):
                least = f"{self.name('stages')} * ({least})"
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
        known = {*self.mapped, *self.serial}
        own = of[0].elements
        if not {loop for term in own.terms for loop in term.loops} <= known:
            return None
        return self._polynomial(own)

    def _polynomial(self, polynomial: Polynomial) -> str:
        return " + ".join(
            " * ".join([str(term.coefficient), *map(self._tile, term.loops)])
            for term in polynomial.terms
        )

    def _tile(self, loop: str) -> str:
        """Return the tile of a loop as an expression."""
        if loop in self.mapped:
            return f"{self.name('threads', loop)} * {self.name('points', loop)}"
        return self.name("tile", loop)

    def _runs_on_host(self, loop: str) -> str | None:
        return f"{self.name('host')} == '{loop}'" if loop in self.hosts else None

    def _plain_tile(self, loop: str) -> int | None:
        """Return the only tile of a loop where nothing is staged."""
        found = {
            tile
            for one in self._plain
            if loop in one.tiles
            for tile in one.tiles[loop][sum(one.staged.values(), np.zeros(len(one))) == 0].tolist()
        }
        return found.pop() if len(found) == 1 else None

    def _tiles(self, loop: str, of: Sequence[CudaLattice] | None = None) -> tuple[int, ...]:
        """Return the tiles of a serial loop that are compared; 1 where it runs on the host."""
        found: set[int] = {1} if loop in self.hosts else set()
        for one in self.lattices if of is None else of:
            found |= set(np.unique(one.tiles[loop]).tolist()) if loop in one.tiles else set()
        return tuple(sorted(found))

    def _reach(self, loop: str) -> int:
        return reach(next(own.trip_count for own in self.facts.loops if own.name == loop))

    def _most_threads(self, at: int) -> int:
        most = min(self._reach(self.mapped[at]), self.profile.threads_per_block)
        along_z = at == 0 and len(self.mapped) == len(AXES)
        own = [int(one.threads[self.mapped[at]].max()) for one in self.products]
        return max(min(most, MAX_THREADS_Z) if along_z else most, *own, 1)

    def _points_along(self, loop: str) -> Listed:
        most = min(POINTS[-1], self._reach(loop))
        own = {n for one in self.products for n in _values(one.tiles[loop] // one.threads[loop])}
        return Listed(values=tuple(sorted(own | {n for n in POINTS if n <= most})))

    def _powers(self, most: int) -> Generated:
        return Generated(generator="powers", arguments=("2", "1", str(most)))


def _instruction(lattice: CudaLattice) -> str:
    own = lattice.structure.instruction
    return NONE if own is None else own.name


def _values(column: Integers) -> list[int]:
    """Return the values of a column, each once, the least first."""
    return np.unique(column).tolist()  # type: ignore[no-any-return]
