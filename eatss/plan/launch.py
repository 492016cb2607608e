"""``LaunchPlan``: what a launch of generated code does, in closed form.

A thread computes its points of a tile unrolled. What a point adds to over serial loops stays in
registers. What threads of a block share may be staged in shared memory, tile by tile of the serial
loops. The variant (:mod:`eatss.analysis.variant`) is the generator's own description.

Entries are a :class:`~eatss.plan.stage.Stage` for each group of reads that may be staged, and a
:class:`Compute` for each statement, with a :class:`~eatss.plan.contract.Contract` where an
instruction of warps computes it. Sums that lanes and blocks share, and stores, are those of
``cut.held``. Numbers have an entry a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import Any, Protocol

import numpy as np

from eatss.analysis import variant as banks
from eatss.analysis.facts import AccessFacts, KernelFacts, StatementFacts
from eatss.analysis.layout import Candidates, mapped_loops
from eatss.analysis.variant import (
    KernelVariant,
    LaunchFacts,
    PrivateTileFacts,
    ProductFacts,
    RegisterTileFacts,
)
from eatss.base.frozen import Names, Numbers
from eatss.base.memo import once_by
from eatss.base.tape import Column, whole
from eatss.base.targets import CUDA
from eatss.plan.contract import (
    MOST_POINTS,
    STEPS_LOADED,
    Contract,
    RegisterFile,
    are_held,
    fragment_padding,
    held_words,
    interleaved_fragments,
    prefetch_words,
    prefetches,
    registers_of_a_thread,
    reuses,
    runs_along,
    unrolled,
    words_of_two,
)
from eatss.plan.intervals import Interval, named, within
from eatss.plan.numbers import Flag, Number, all_of, any_of, chosen, largest, no, nowhere
from eatss.plan.shares import (
    Stream,
    UniformSet,
    block_along,
    blocks_of_sum,
    chunks_of,
    free_axes,
    lanes_of_warp,
    outer_tile,
    rounds_across,
    stream_of,
    threads_beside_lanes,
    uniform_sets,
    widening,
)
from eatss.plan.stage import (
    LoopTile,
    Stage,
    StagedReads,
    Tiling,
    are_many_transposed,
    buffers,
    copied_together,
    element_words,
    first_with_room,
    in_rows,
    in_shared,
    interleaved,
    is_ahead,
    padded_rows,
    record_of,
    row_dimensions,
    step_vector,
    vector,
    window_steps,
    with_neighbours,
)

_MOST_TILE = 2.0**20
_ROUNDED = 1e-9
_MOST_WITH_WINDOWS = 256
"""Threads of a block that may have all registers that one may have."""


class Limits(RegisterFile, Protocol):
    """What of a card decides how a launch is laid out."""

    @property
    def threads_per_block(self) -> int:
        """The most that a block may have."""

    @property
    def shared_optin_bytes(self) -> int:
        """Shared memory that a block may ask for."""


def plan(facts: KernelFacts, layout: Candidates, card: Limits) -> tuple[LaunchPlan, ...]:
    """Return what each launch of a kernel does under layouts of one variant."""
    cuts = layout.variant.launches
    return tuple(launch_plan(facts, cut, layout, card) for cut in cuts if cut.statements)


def trips_of(facts: KernelFacts) -> dict[str, float]:
    """Return the trips of all loops of a kernel."""
    return {name: float(trips) for name, trips in facts.work.trips}


def launch_plan(
    facts: KernelFacts, cut: LaunchFacts, layout: Candidates, card: Limits
) -> LaunchPlan:
    """Return what one launch does, as the generator lays it out.

    Launches beside one whose sums are spread have as many times the threads along ``x`` as there
    are lanes.
    """
    trips, launches = trips_of(facts), float(facts.work.launches or 1)
    tile = {name: np.minimum(size, _MOST_TILE) for name, size in layout.tile_sizes if name in trips}
    threads = {name: within(layout.threads[name], tile[name]) for name in cut.mapped}
    lanes = chunks = outer = copiers = 1.0
    if len(cut.mapped) == 1 and not isinstance(tile[cut.mapped[0]], Interval):
        (name,), loops, spread = cut.mapped, len(mapped_loops(facts)), layout.variant.spreads
        copiers = block_along(layout.threads[name], tile[name], loops, spread=spread)
        copiers = copiers / threads[name]
    if cut.sum_loop is not None:
        lanes, inwards = layout.lanes, cut.mapped[::-1]
        if cut.scans:  # a warp has a row
            lanes = lanes * 0 + CUDA.lanes
        wanted = [threads[name] for name in inwards]
        most_along_z = CUDA.most_threads["z"]
        kept = threads_beside_lanes(wanted, lanes, card.threads_per_block, most_along_z)
        threads |= zip(inwards, kept, strict=True)
        own, at_a_time, tiles = trips[cut.sum_loop], layout.sum_tile, 1.0
        if cut.outer_loop is not None:
            length = trips[cut.outer_loop]
            tile.setdefault(cut.outer_loop, outer_tile(length, layout.outer_chunks))
            tiles = np.ceil(length / tile[cut.outer_loop])
        tile[cut.sum_loop] = at_a_time
        chunks, outer = blocks_of_sum(
            0 if cut.scans and not cut.looks_back else free_axes(len(cut.mapped)),
            np.ceil(own / at_a_time),
            layout.chunks,
            tiles,
            layout.outer_chunks,
        )
        if cut.looks_back:
            rows = prod((tile[name] for name in cut.mapped), start=1.0)
            chunks = chosen(chunks > 1, chosen(rows > 1, 1.0, np.ceil(own / at_a_time)), 1.0)
        chunks = named(f"chunks of {cut.statements[0]}", chunks)
        outer = named(f"outer chunks of {cut.statements[0]}", outer)
    elif layout.variant.spreads and cut.mapped:
        along, own = cut.mapped[-1], prod(threads.values(), start=1.0)
        times = widening(own, layout.lanes, card.threads_per_block)
        threads[along], tile[along] = threads[along] * times, tile[along] * times
    steps = {name: np.ceil(trips[name] / tile[name]) for name in tile}
    if cut.shared_loop is not None:
        whole = steps[cut.shared_loop]
        outer = named(f"chunks of {cut.statements[0]}", chunks_of(layout.chunks, whole, 1))
    if cut.turns_loop is not None:
        steps[cut.turns_loop] = np.ceil(steps[cut.turns_loop] / outer)
    return LaunchPlan(
        facts=facts,
        cut=cut,
        layout=layout,
        card=card,
        trips=trips,
        launches=launches,
        tile=tile,
        threads=threads,
        steps=steps,
        sum_lanes=lanes,
        chunks=chunks,
        turns_of=outer,
        copiers=copiers,
    )


def lanes_of(threads: Iterable[Number]) -> list[Number]:
    """Return how many lanes of a warp differ along each axis of the block, ``x`` first.

    CUDA numbers the threads of a block along ``x`` first, and 32 in a row are a warp. Of 20 along
    ``x`` a warp has one row and 0.6 of another: so many on average.

    Args:
        threads: threads along each axis, ``x`` first.
    """
    lanes = []
    left = float(CUDA.lanes)
    for count in threads:
        lanes.append(np.maximum(1.0, np.minimum(count, left)))
        left = np.maximum(1.0, left / lanes[-1])
    return lanes


@dataclass(frozen=True, kw_only=True, eq=False)
class Tiled:
    """A launch in tiles.

    By loop: ``tile`` are iterations of a tile, ``threads`` those of a block along a mapped loop,
    the one along ``x`` last, ``steps`` tiles along a loop.
    """

    tile: dict[str, Number]
    threads: dict[str, Number]
    steps: dict[str, Number]

    @cached_property
    def points(self) -> dict[str, Number]:
        """Points of a thread by mapped loop; a monomial is not exact enough for them."""
        return {
            name: np.ceil(self.tile[name] / count - _ROUNDED)
            for name, count in self.threads.items()
        }

    @property
    def all_points(self) -> Number:
        """Points of a thread, those of a sum left out."""
        return prod(self.points.values(), start=1.0)

    def points_beside(self, loops: Collection[str]) -> Number:
        """Return the points of a thread along all loops but some."""
        return self.points_along({*self.points} - {*loops})

    @once_by(lambda self, loops: (*map(loops.__contains__, self.points),))
    def points_along(self, loops: Collection[str]) -> Number:
        """Return the points of a thread along some loops."""
        return prod((count for name, count in self.points.items() if name in loops), start=1.0)

    @property
    def axes(self) -> list[tuple[str, Number]]:
        """Threads along ``x``, ``y`` and so on, with the loop each belongs to."""
        return [*reversed(self.threads.items())]

    @cached_property
    def lanes(self) -> list[Number]:
        """Lanes of a warp along each axis."""
        return lanes_of(count for _, count in self.axes)

    @cached_property
    def block_threads(self) -> Number:
        """Threads of a block."""
        return prod((count for _, count in self.axes), start=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchPlan(Tiled):
    """A launch of layouts of one variant.

    ``facts`` are of the kernel, ``cut`` of the launch in it. ``trips`` are those of the loops that
    run on the card, ``launches`` how often the host launches it. ``steps`` along a loop at whose
    tiles blocks take turns are those of one block. ``sum_lanes`` threads and ``chunks`` blocks
    share a sum, 1 where none is spread here; ``turns_of`` blocks take turns at another loop of it.
    With ``columns`` axes are the other way round: the lanes of a sum are not along ``x``. What a
    thread reads of references that are ``filled``, by number, it has loaded before, all at once.
    Of so many threads, ``copiers``, one computes; the others copy.
    """

    facts: KernelFacts
    cut: LaunchFacts
    layout: Candidates
    card: Limits
    trips: dict[str, float]
    launches: float
    sum_lanes: Number
    chunks: Number
    turns_of: Number
    columns: bool = False
    filled: Numbers = ()
    copiers: Number = 1.0
    row_vectors: tuple[str | None, Number] = (None, 1.0)

    def together(self, access: AccessFacts, *, stored: bool = False) -> Number:
        """Return how many elements a thread loads, or stores, at a time through an access."""
        arrays, width = self.rows_loaded
        loop, of_row = self.row_vectors
        if loop is not None and loop in access.moving:
            return of_row
        return width if access.array in arrays and not stored else 1.0

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape that columns of layouts have together: of a product that of all of it."""
        return np.broadcast_shapes(
            *(
                (len(one),) if isinstance(one, Interval | Column) else np.shape(one)
                for one in self.layout.columns
            )
        )

    @property
    def variant(self) -> KernelVariant:
        """How the kernel is cut."""
        return self.layout.variant

    # -- blocks and threads -----------------------------------------------------------------------

    @cached_property
    def block_threads(self) -> Number:
        """Threads of a block."""
        return self.computing * self.copiers

    @cached_property
    def computing(self) -> Number:
        """Those that compute."""
        return prod((count for _, count in self.axes), start=1.0)

    @property
    def axes(self) -> list[tuple[str, Number]]:
        """Threads along ``x``, ``y`` and so on, with the loop each belongs to."""
        axes, loop = super().axes, self.cut.sum_loop
        axes = axes if loop is None else [(loop, self.sum_lanes), *axes]
        return axes[::-1] if self.columns else axes

    @property
    def lanes_of_sum(self) -> Number:
        """Lanes of a warp that share a sum."""
        return lanes_of_warp(self.sum_lanes, self.beside)

    @property
    def beside(self) -> Number:
        """Sums that lie side by side in a warp."""
        return prod(self.threads.values(), start=1.0) if self.columns else 1.0

    @cached_property
    def blocks(self) -> Number:
        """Blocks of the grid."""
        tiles = prod((self.steps[name] for name in self.cut.mapped), start=1.0)
        return tiles * self.blocks_of_sum

    @property
    def blocks_of_sum(self) -> Number:
        """Blocks that have parts of one sum."""
        return self.chunks * self.turns_of

    @property
    def nests(self) -> float:
        """Nests that are side by side: so many blocks for each of those that would have all."""
        fill = {one.facts.name: one.fill for one in self.computes}
        own = [max(fill[o] for o in part.statements) for part in self.cut.parts if part.serial]
        return sum(own) / (max(own) or 1.0) if self.cut.apart else 1.0

    @cached_property
    def active(self) -> Number:
        """Blocks that have work: of a triangle those on its diagonal, too."""
        found: Number = 1.0
        for one in self.computes:
            along = [name for name in self.cut.mapped if name in one.facts.coupled]
            own = self.blocks * one.fill
            if len(along) > 1:
                shortest = reduce(np.minimum, (self.steps[name] for name in along))
                own = np.minimum(self.blocks, np.rint(own * (1.0 + 1.0 / shortest)))
            found = np.maximum(found, own)
        return named(f"blocks of {self.cut.statements[0]}", found)

    @cached_property
    def lanes(self) -> list[Number]:
        """Lanes of a warp along each axis, those that are interleaved as they are."""
        found = lanes_of(count for _, count in self.axes)
        for pair, on in self.interleaved.items():
            counts = dict(zip(pair, (banks.ALONG_X, banks.ALONG_Y), strict=True))
            for at, (name, _) in enumerate(self.axes):
                found[at] = np.where(on, counts.get(name, 1), found[at])
        return found

    @cached_property
    def stream(self) -> Stream:
        """What blocks have that take equal shares of all steps."""
        blocks = 0 if self.cut.stream_loop is None else self.layout.streams
        return stream_of(blocks, self.active, self.steps.get(self.cut.stream_loop or "", 1.0))

    # -- loops ------------------------------------------------------------------------------------

    def tiles_of_block(self, name: str) -> Number:
        """Return the tiles along a serial loop that one block runs."""
        if name != self.cut.sum_loop:
            return self.steps[name]
        return np.maximum(1.0, self.trips[name] / (self.tile[name] * self.chunks))

    @property
    def serial_band(self) -> Names:
        """The loops of the band that each thread runs itself."""
        return tuple(loop.name for loop in self.facts.loops if loop.name not in self.cut.mapped)

    def block_trips(self, name: str) -> Number:
        """Return the trips of a serial loop, or those of a block where blocks take turns at it."""
        if name != self.cut.turns_loop:
            return self.trips[name]
        return np.minimum(self.trips[name], self.steps[name] * self.tile[name])

    def extent(self, name: str, *, whole: bool = False, declared: bool = False) -> Number:
        """Return the iterations of a loop that a tile holds, or ``whole``: all that a block runs.

        What is ``declared`` is for whole tiles, however short the loop.
        """
        if declared and name in self.tile:
            return self.tile[name]
        if name in self.cut.mapped or (not whole and name in self.tile):
            return np.minimum(self.tile[name], self.trips[name])
        return self.block_trips(name)

    @once_by(
        lambda self, uniform, whole=False, declared=False: (
            (uniform.access.terms, uniform.spans, whole, declared)
        )
    )
    def box(
        self, uniform: UniformSet, whole: bool = False, declared: bool = False
    ) -> Sequence[Number]:
        """Return the extents, a dimension each, of what a tile touches through a uniform set."""
        sizes: list[Number] = []
        for (terms, _), span in zip(uniform.access.subscripts, uniform.spans, strict=True):
            size: Number = 1.0 + span
            for name, factor in terms:
                extent = self.extent(name, whole=whole, declared=declared)
                size = size + abs(factor) * (extent - 1)
            sizes.append(size)
        return sizes

    # -- statements -------------------------------------------------------------------------------

    @cached_property
    def computes(self) -> tuple[Compute, ...]:
        """The statements of the launch."""
        return tuple(
            Compute(plan=self, facts=one, uses=uniform_sets(one, self.cut))
            for one in self.facts.work.statements
            if one.name in self.cut.statements
        )

    @property
    def uses(self) -> list[UniformSet]:
        """The uniform sets of all statements."""
        return [use for one in self.computes for use in one.uses]

    def is_read(self, array: str) -> bool:
        """Tell whether a statement of the launch reads an array."""
        return any(use.reads and use.access.array == array for use in self.uses)

    def is_written(self, array: str) -> bool:
        """Tell whether a statement of the launch writes an array."""
        return any(use.writes and use.access.array == array for use in self.uses)

    @cached_property
    def contracts(self) -> dict[str, Contract]:
        """What the variant's instruction computes, by statement."""
        found = {}
        instruction, products = self.variant.instruction, self.cut.products
        for one in self.computes:
            own = [product for product in products if product.statement == one.facts.name]
            if own and instruction is not None:
                found[one.facts.name] = Contract(
                    instruction=instruction,
                    product=own[0],
                    terms=len(own),
                    rows=self.points[own[0].rows],
                    columns=self.points[own[0].columns],
                    whole=instruction.factor_words < 1 and all(map(self._in_rows, own)),
                )
        return found

    def _in_rows(self, product: ProductFacts) -> bool:
        """Tell whether neighbours in rows of factors are neighbours in matrices, no others."""
        loops = {*product.loops, product.sum_loop}
        return all(
            [own for name, own in use.access.terms[-1] if name in loops] in ([], [1])
            for use in self.uses
            if use.access.reference in product.references
        )

    @cached_property
    def register_prefetch_on(self) -> Flag:
        """Where factors of a step are loaded while those of the one before are multiplied.

        Buffers are filled ahead, a tile has an even number of steps, and registers have room for
        two beside the sums and halves that are on their way.
        """
        products = [*self.contracts.values()]
        if not products:
            return False
        first = products[0]
        steps = self.tile[first.product.sum_loop] / first.instruction.steps
        several = sum(one.terms for one in products) > 1
        room = self.prefetch_words <= self.registers_at_once
        return (self.pipeline_stages > 1) & ((np.mod(steps, STEPS_LOADED) == 0) | several) & room

    @property
    def prefetch_words(self) -> Number:
        """Registers without which they are not."""
        first = next(iter(self.contracts.values()))
        sums = self.all_points * first.instruction.words + first.part_words
        return prefetch_words(sums, STEPS_LOADED * self.step_words + self.register_staged_words)

    @property
    def step_words(self) -> Number:
        """Registers for all factors that a thread loads for the steps of an instruction."""
        return largest(one.step_words for one in self.contracts.values())

    @property
    def scan_steps(self) -> Number:
        """Steps of a running sum that a lane has."""
        return np.ceil(self.trips[self.cut.sum_loop or ""] / (self.sum_lanes * self.chunks))

    @cached_property
    def rows_loaded(self) -> tuple[Names, Number]:
        """Arrays of which lanes of a sum load rows, and how many elements they do at a time.

        Those of a running sum store rows, too, of what is computed of each step.
        They do where each element is loaded once, if nothing else along the loop is loaded for each
        point of a thread: what a loop of a thread does not move stays in registers. No test may ask
        which points a thread has, as in a triangle, and all rows have to begin at multiples of one
        vector.
        """
        loop, found = self.cut.sum_loop, dict[str, int]()
        if any(loop in one.facts.coupled for one in self.computes):
            return (), 1.0
        extents = {one.name: one.extents for one in self.facts.work.arrays}
        for one in self.computes:
            for use in one.uses:
                access, last = use.access, use.access.subscripts[-1:]
                if use.held or loop not in access.moving or not {*one.serial} <= {*access.moving}:
                    continue
                across = {name for terms in access.terms[:-1] for name, _ in terms}
                alone = last == ((((loop, 1),), 0),) and loop not in across and not any(use.spans)
                stored = self.cut.scans and not self.is_read(access.array)
                loaded = access.loaded_ahead and not self.is_written(access.array)
                if not alone or not (stored or loaded):
                    return (), 1.0
                if not {*self.cut.mapped} <= {*access.moving}:
                    return (), 1.0
                found[access.array] = copied_together(extents[access.array], access.element_bytes)
        if len({*found.values()}) != 1 or loop is None:
            return (), 1.0
        width, (*arrays,) = next(iter(found.values())), found
        whole = np.mod(self.tile[loop] / self.sum_lanes, width) == 0
        return tuple(arrays), chosen(whole & (self.sum_lanes > 1), width, 1.0)

    @once_by(
        lambda self, uniform: (
            uniform.access.terms,
            frozenset(uniform.access.moving),
            uniform.spans,
            uniform.count,
        )
    )
    def distinct(self, uniform: UniformSet) -> Number:
        """Return the elements that the points of a thread touch through a set, at one step."""
        access = uniform.access
        named = [name for name in self.cut.mapped if name in access.moving]
        together: Number = 1.0
        for terms, span in zip(access.terms, uniform.spans, strict=True):
            along = [name for name, factor in terms if name in named and abs(factor) == 1]
            several: Number = min(span + 1, uniform.count)
            if len(along) == 1:
                points, alone = self.points[along[0]], self.threads[along[0]] == 1
                several = np.where(alone, points + span, points * several)
            together = together * several
        return np.minimum(self.points_along(named) * uniform.count, together)

    # -- registers --------------------------------------------------------------------------------

    @property
    def registers(self) -> Number:
        """Registers that a thread may have."""
        return registers_of_a_thread(self.card, self.block_threads)

    @property
    def registers_at_once(self) -> Number:
        """Registers that a thread may have while as many blocks run at a time as are wanted."""
        threads = self.block_threads * self.layout.blocks_at_once
        return registers_of_a_thread(self.card, threads)

    @cached_property
    def held_words(self) -> Number:
        """Registers of what a thread adds up."""
        return sum((self.words_of(own) for own in self.cut.held), start=0.0)

    def words_of(self, own: RegisterTileFacts) -> Number:
        """Return the registers of one array that a thread adds up."""
        points = self.points_beside(own.across) * (not own.continued)
        if self.cut.scans:
            points = points * np.ceil(self.tile[self.cut.sum_loop or ""] / self.sum_lanes)
        return points * element_words(own.element_bytes)

    def rounds_across(self, loops: Names) -> Number:
        """Return the rounds of shuffles that make parts of points along some loops one."""
        found: Number = 0.0
        before: Number = 1.0
        for name, threads in self.axes:
            rounds = rounds_across(before, threads) * (np.mod(self.block_threads, CUDA.lanes) == 0)
            for pair, on in self.interleaved.items():
                lanes = dict(zip(pair, (banks.ALONG_X, banks.ALONG_Y), strict=True)).get(name, 1)
                rounds = np.where(on, float(lanes.bit_length() - 1), rounds)
            found = found + rounds * (name in loops)
            before = before * threads
        return found

    @property
    def fits(self) -> Flag:
        """Where what points add up stays in registers."""
        words = self.held_words
        return are_held(self.all_points, words, held_words(self.registers)) | (words == 0)

    @property
    def misfit(self) -> str:
        """Why they do not, of the only layout: what is needed, and what there is."""
        sums, words, left = (
            int(np.max(one))
            for one in (self.all_points, self.held_words, held_words(self.registers))
        )
        if sums > MOST_POINTS:
            return f"a thread of it has {sums} points, and registers keep sums of {MOST_POINTS}"
        return f"the sums of a thread need {words} registers, and it has {left} for them"

    # -- shared memory ----------------------------------------------------------------------------

    @cached_property
    def staging(self) -> tuple[StagedReads, ...]:
        """What is known of each group of reads that may be staged."""
        return tuple(map(self._staged_reads, range(len(self.cut.stageable))))

    def _staged_reads(self, group: int) -> StagedReads:
        staged = self.layout.staged.get(self.cut.stageable[group], 0.0)
        on = staged > 0
        members = self.readers(group)
        if not members:
            return StagedReads(
                along=(None,), moving=(), across=(), element_bytes=4, copied=1, on=on
            )
        written = self._private(group) is not None
        access = self.widest(group)
        single = len({one.access.subscripts for one in members}) == 1 and not any(
            any(one.spans) for one in members
        )
        extents = next(one.extents for one in self.facts.work.arrays if one.name == access.array)
        record = record_of(extents, access.element_bytes)
        if written or self.variant.instruction or not self._reads_records(group, record):
            record = 1
        return StagedReads(
            along=tuple(
                terms[0][0] if single and not written and [c for _, c in terms] == [1] else None
                for terms in access.terms
            ),
            moving={*access.moving},
            across={
                name for terms in access.terms[: -1 if record == 1 else -2] for name, _ in terms
            },
            element_bytes=access.element_bytes,
            copied=copied_together(extents, access.element_bytes, record),
            on=on,
            record=record,
        )

    def _reads_records(self, group: int, record: int) -> bool:
        """Tell whether all parts that read a group read each element of a record."""
        references = self.cut.stageable[group]
        wanted = {((), at) for at in range(record)}
        for part in self.cut.parts:
            own = (one.facts for one in self.computes if one.facts.name in part.statements)
            accesses = [use for one in own for use in one.accesses if use.reference in references]
            if accesses and {use.subscripts[-1] for use in accesses} != wanted:
                return False
        return True

    def _private(self, group: int) -> PrivateTileFacts | None:
        """Return what is known of a group that threads write."""
        references = self.cut.stageable[group]
        return next((one for one in self.cut.private if one.references == references), None)

    def readers(self, group: int, part: int | None = None) -> list[UniformSet]:
        """Return the uniform sets of a stageable group, those of one part or all."""
        own = self.cut.statements if part is None else self.cut.parts[part].statements
        users = (one for one in self.computes if one.facts.name in own)
        return [use for one in users for use in one.uses if use.group == group]

    def widest(self, group: int) -> AccessFacts:
        """The access of a stageable group that most loops move: of rows beside elements a row."""
        return max((one.access for one in self.readers(group)), key=lambda one: len(one.moving))

    @once_by(lambda self, group: group)
    def staged(self, group: int | None) -> Number:
        """Return 1 where a stageable group is staged in shared memory, else 0."""
        return 0.0 if group is None else 1.0 * self.staging[group].on

    @cached_property
    def any_staged(self) -> Number:
        """1 where something is staged in shared memory, else 0."""
        return largest(1.0 * one.on for one in self.staging)

    @cached_property
    def tiling(self) -> Tiling:
        """The loops in tiles, and along which of them a thread has neighbouring points."""
        of_block = np.floor(self.card.registers_per_block / self.block_threads)
        tiling = Tiling(
            mapped=tuple(
                LoopTile(
                    name=name,
                    tile=self.tile[name],
                    threads=self.threads[name],
                    points=self.points[name],
                )
                for name in self.cut.mapped
            ),
            serial={name: self.tile[name] for name in self.serial_band if name in self.tile},
            threads=self.block_threads,
            sum_words=sum(
                element_words(own.element_bytes) for own in self.cut.held if not own.across
            ),
            registers=np.minimum(self.card.registers_per_thread, of_block),
            load_vectors=self.variant.instruction is None and self.cut.sum_loop is None,
        )
        serial = {name for part in self.cut.parts if part.serial for name in part.statements}
        accesses = [
            (use.group, use.access.moving.keys())
            for one in self.computes
            if not serial or one.facts.name in serial
            for use in one.uses
            if not use.held
        ]
        return with_neighbours(tiling, self.staging, accesses)

    def neighbours(self, name: str) -> Flag:
        """Return where threads have neighbouring points along a loop."""
        return self.tiling.neighbours.get(name, False)

    @cached_property
    def interleaved(self) -> dict[tuple[str, str], Flag]:
        """For two loops where lanes are interleaved along them."""
        pairs = interleaved(self.tiling, self.axes, self.staging)
        return {pair: on for pair, on in pairs.items() if not nowhere(on)}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The copy of each group that may be staged.

        One buffer is enough for what no innermost loop fills anew. What is copied right in front of
        a loop that copies ahead is there when the first of that loop's copies are.
        """
        found, innermost = self._copies, self._innermost
        asynchronous = any(one.asynchronous for one in self.staging)
        wanted = buffers(self.pipeline_stages, asynchronous=asynchronous)
        several = self.pipeline_stages > 1
        return tuple(
            replace(
                one,
                buffers=np.where(is_ahead(one.depth, innermost) & one.runs_ahead, wanted, 1.0),
                in_front=bool(one.depth) & (one.depth == innermost - 1) & several,
            )
            for one in found
        )

    @cached_property
    def _copies(self) -> tuple[Stage, ...]:
        return tuple(map(self._stage, range(len(self.staging))))

    @cached_property
    def _innermost(self) -> Number:
        return largest(one.on * one.depth for one in self._copies)

    @cached_property
    def pipeline_stages(self) -> Number:
        """Buffers in turn of tiles that are filled ahead, one where none can be.

        Elements too narrow for ``cp.async`` pass through registers, and so they run ahead only
        while warps multiply.
        """
        if self.variant.instruction is not None:
            return self.layout.pipeline_stages
        ahead = any_of(
            one.on & is_ahead(one.depth, self._innermost) & one.asynchronous
            for one in self._copies
            if one.runs_ahead
        )
        return chosen(ahead & no(self.copies_together), self.layout.pipeline_stages, 1.0)

    @cached_property
    def copies_together(self) -> Flag:
        """Where the tiles of a turn are sent at once, without registers, and then waited for.

        Private ones cannot be filled ahead where what the turn before stores may be in them.
        """
        filled = any_of(one.on & one.filled for one in self._copies if not one.runs_ahead)
        return (self.layout.pipeline_stages > 1) & filled

    @cached_property
    def row_windows(self) -> Flag:
        """Where threads have steps along rows that they write in registers, and write no other."""
        copies, some = [*zip(self._copies, self.staging, strict=True)], False
        for at, part in enumerate(self.cut.parts):
            own = [(one, of.moving) for one, of in copies if one.private and at in one.parts]
            stays = any_of(one.on for one, moving in own if not {*part.serial[-1:]} <= {*moving})
            stored = any_of(one.on for one, _ in own if at in one.stored_in)
            some |= stored & (self.window(part.serial) > 1) & no(stays)
        return some & (self.all_points == 1) & (self.block_threads <= _MOST_WITH_WINDOWS)

    def window(self, serial: Sequence[str]) -> Number:
        """Return the steps of the innermost of some loops that a window has."""
        return window_steps(self.tile.get(serial[-1], 1.0)) if serial else 1.0

    def _stage(self, group: int, part: int | None = None) -> Stage:
        """Return the copy of a group, or what one part of the launch needs of it."""
        reads, members = self.staging[group], self.readers(group, part)
        whole = slice(None) if reads.record == 1 else slice(-1)
        uneven = any(any(one.spans[whole]) or _is_diagonal(one) for one in members)
        own = self._private(group)
        extents = self._tile_box(members, declared=True)
        serial = enumerate(self.serial_band, start=1)
        return Stage(
            extents=extents,
            touched=self._tile_box(members),
            declared=self._padded(group, extents),
            rows=row_dimensions(self.tiling, reads),
            element_bytes=reads.element_bytes,
            threads=self.block_threads,
            copied=1 if uneven or own is not None else reads.copied,
            on=reads.on,
            depth=max((at for at, name in serial if name in reads.moving), default=0),
            parts=self.cut.copied_in[group],
            narrow=self.variant.instruction is not None and not reads.asynchronous,
            private=own is not None,
            filled=own is None or own.filled,
            stored_in=() if own is None else own.stored_in,
            stored=() if own is None else self._tile_box([one for one in members if one.writes]),
            apart=own is not None and own.apart,
            record=reads.record,
        )

    def _tile_box(self, members: Sequence[UniformSet], *, declared: bool = False) -> list[Number]:
        """Return the extents of a tile that holds what uniform sets touch.

        Those that differ by constants alone lie beside each other.
        """
        alike: dict[object, list[UniformSet]] = {}
        for one in members:
            alike.setdefault(one.access.terms, []).append(one)
        boxes = []
        for own in alike.values():
            sizes = [*self.box(own[0], declared=declared)]
            ends = [zip(one.first, one.spans, strict=True) for one in own]
            for at, along in enumerate(zip(*ends, strict=True)):
                least, most = min(low for low, _ in along), max(low + span for low, span in along)
                sizes[at] = sizes[at] + (most - least - own[0].spans[at])
            boxes.append(sizes)
        return _union(boxes)

    def _padded(self, group: int, sizes: list[Number]) -> list[Number]:
        """Return the extents of a buffer as declared."""
        members = [one.access for one in self.readers(group)]
        own, instruction = {one.reference for one in members}, self.variant.instruction
        if instruction is None or not any(own & {*one.references} for one in self.cut.products):
            return padded_rows(self.tiling, self.staging[group], sizes)
        loops, reads = self.cut.products[0].loops, [one.terms for one in members]
        if isinstance(sizes[-1], Interval):
            return [*sizes[:-1], sizes[-1] + Interval(0.0, banks.MOST_PADDING_BYTES)]
        columns = (*sizes, self.turns, self.threads[loops[1]])
        width = self.staging[group].element_bytes

        def padding(*found: int) -> int:
            *extents, turns, threads = found
            return fragment_padding(instruction, loops, turns, reads, extents, width, threads)

        return [*sizes[:-1], sizes[-1] + self._each(padding, columns)]

    @cached_property
    def turns(self) -> Number:
        """How many matrices' columns take turns in the points of a thread.

        It is 0 where they are as far apart as there are threads: where nothing is multiplied as
        matrices, or tests of statements ask which columns a thread has.
        """
        instruction, products = self.variant.instruction, self.cut.products
        if instruction is None or not products:
            return 0
        columns, own = products[0].columns, {one for each in products for one in each.references}
        if not self.in_groups(columns):
            return 0
        reads = [
            use.access for use in self.uses if use.group is not None and use.access.reference in own
        ]
        moved = [one for one in reads if columns in one.moving]
        if not moved or not all(runs_along(one.terms, columns) for one in moved):
            return 1
        width, of_a_matrix = max(one.element_bytes for one in moved), instruction.points[1]
        points = self.points[columns]
        if isinstance(points, Interval):
            return Interval(1.0, banks.VECTOR_BYTES // width)
        return self._each(lambda one: interleaved_fragments(one, of_a_matrix, width), (points,))

    def _each(self, of: Callable[..., int], columns: Sequence[Number]) -> Number:
        """Return what a function of whole numbers gives for each layout, once for equal ones."""

        def each(*numbers: Any) -> Any:
            first, *others = np.broadcast_arrays(np.zeros(1), *numbers)[1:]
            table = np.stack([one.reshape(-1) for one in (first, *others)], axis=1)
            unique, back = np.unique(table.astype(np.int64), axis=0, return_inverse=True)
            found = [of(*row) for row in unique.tolist()]
            return np.array(found, dtype=np.float64)[back.reshape(first.shape)]

        return whole(each, *columns)

    @cached_property
    def shared_bytes(self) -> Number:
        """Shared memory of a block, in bytes: what the part needs that needs most."""
        parts = range(len(self.cut.parts))
        return largest(sum(self._boxes_bytes(part)) for part in parts) + self.handed_bytes

    def _boxes_bytes(self, part: int) -> Iterator[Number]:
        """Yield the bytes of the tiles of a part, as large as it needs."""
        for at, one in enumerate(self.stages):
            apart = self.readers(at, part) not in ([], self.readers(at))
            own = self._stage(at, part) if apart else one
            size = in_shared(own.shared_bytes * one.buffers)
            yield one.on * size * one.parts.count(part)

    def without_room(self, limit_bytes: float) -> frozenset[int]:
        """Return the references whose tiles have no room, of the only layout: code leaves these."""
        found = set[int]()
        for part in range(len(self.cut.parts)):
            left = limit_bytes
            for at, one in enumerate(self._copies):
                if nowhere(one.on) or part not in one.parts:
                    continue
                own = self._stage(at, part)
                placed = first_with_room((own, replace(own, declared=own.extents)), left)
                if placed is None:
                    found |= {*self.cut.stageable[at]}
                else:
                    left -= float(np.max(placed.shared_bytes))
        return frozenset(found)

    @property
    def handed_bytes(self) -> Number:
        """Shared memory in which warps leave their parts of sums, where they share some."""
        warps = self.block_threads / CUDA.lanes
        each = sum(own.element_bytes for own in self.cut.held)
        return (self.sum_lanes > CUDA.lanes) * (warps * self.all_points * each)

    @cached_property
    def register_staged_words(self) -> Number:
        """Registers of a thread for elements that are copied one by one, on their way."""
        words = (
            one.on * np.ceil(prod(one.extents) / self.block_threads)
            for one in self.stages
            if one.narrow
        )
        return sum(words, start=0.0) * (self.pipeline_stages > 1)

    @cached_property
    def transposed_in_registers(self) -> Flag:
        """Where tiles that are transposed are on their way through registers, a vector at a time.

        Others are copied in vectors, if there are any; operands are loaded ahead, and registers
        have room for the vectors, too.
        """
        stages = [one for one in self.stages if not nowhere(one.on)]
        serial = [one for one in self.computes if one.serial]
        passing = [1.0 * (one.on & one.through_registers) for one in stages]
        shares = [prod(one.extents) / self.block_threads for one in stages]
        elements = sum(on * share for on, share in zip(passing, shares, strict=True))
        beside = are_many_transposed(elements)
        found = all_of(
            [
                (self.pipeline_stages > 1) & (elements > 0),
                *(no(s.on) | s.through_registers | (beside & (s.width > 1)) for s in stages),
            ]
        )
        if nowhere(found) or not serial:
            return False
        words = sum(
            on * share * element_words(one.element_bytes)
            for one, on, share in zip(stages, passing, shares, strict=True)
        )
        firsts = dict.fromkeys(one.first_of_turn for one in serial)
        return found & all_of(one.register_prefetch_on(words) for one in firsts)

    @once_by(lambda self, access: frozenset(access.moving))
    def vector_wavefronts(self, access: AccessFacts) -> Number:
        """Return the wavefronts of one load of vectors [:mod:`eatss.analysis.variant`].

        Vectors of lanes lie beside each other, or in rows that differ in their banks.
        """
        if not self.tiling.load_vectors:
            return 1.0
        moving, axes = access.moving, self.axes
        moves = [name in moving for name, _ in axes]
        found = 1.0 * banks.vector_wavefronts([count for _, count in axes], moves)
        for (x, y), on in self.interleaved.items():
            together = banks.interleaved_wavefronts(along_x=x in moving, along_y=y in moving)
            found = np.where(on, together, found)
        return found

    def in_groups(self, name: str) -> bool:
        """Tell whether points of a thread lie in vectors that are as far apart as all threads'.

        They follow each other where tests around loops over points ask which of them a thread has:
        of a loop whose values depend on those of one outside of it, as columns of a triangle do.
        Both are priced alike.
        """
        mapped = self.cut.mapped
        outside = {*mapped[: mapped.index(name)], *self.serial_band}
        return not any(
            name in one.facts.coupled and outside & {*one.facts.coupled} for one in self.computes
        )


def _is_diagonal(one: UniformSet) -> bool:
    """Tell whether a loop moves two dimensions, so that no box of them is read as a whole."""
    names = [name for terms in one.access.terms for name, _ in terms]
    return len(names) > len({*names})


def _union(boxes: Sequence[list[Number]]) -> list[Number]:
    """Return the extents of a box that holds boxes of the same references."""
    if not boxes:
        return [1.0]
    return [reduce(np.maximum, extents) for extents in zip(*boxes, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Compute:
    """A statement on the points of threads; ``uses`` are its uniform sets."""

    plan: LaunchPlan
    facts: StatementFacts
    uses: tuple[UniformSet, ...]

    @cached_property
    def fill(self) -> float:
        """The share of the box of its loops that it runs at."""
        return self.facts.fill(self.plan.trips, self.plan.launches)

    @property
    def contract(self) -> Contract | None:
        """What computes it, where that is an instruction of warps."""
        return self.plan.contracts.get(self.facts.name)

    @cached_property
    def serial(self) -> list[str]:
        """The loops that a thread runs itself around it, outermost first."""
        plan = self.plan
        order = [*plan.serial_band, *(loop.name for loop in plan.facts.inner_loops)]
        return [name for name in order if name in self.facts.loops and name in plan.trips]

    @property
    def points(self) -> Number:
        """The points of a thread that it runs at, those of the sum left out."""
        return self.plan.points_along(self.facts.loops)

    @cached_property
    def share(self) -> Number:
        """The share of blocks that it runs in, and of its steps it runs there."""
        most = max(one.fill for one in self.plan.computes) or 1.0  # nothing at assumed sizes
        share = self.fill / most
        for name in self.plan.cut.mapped:
            if name not in self.facts.loops:
                share = share / self.plan.steps[name]
        return share

    def steps(self, names: Sequence[str]) -> Number:
        """Return how often a thread runs some serial loops."""
        plan = self.plan
        steps = prod(map(plan.block_trips, names), start=1.0)
        if (loop := plan.cut.sum_loop) is not None and loop in names:
            busy = np.minimum(plan.sum_lanes, plan.tile[loop])  # some have none of a short tile
            steps = steps / (busy * plan.chunks)
        return np.maximum(steps, 1.0)

    @property
    def part(self) -> int:
        """The part that runs it, by number."""
        parts = enumerate(self.plan.cut.parts)
        return next(at for at, part in parts if self.facts.name in part.statements)

    @cached_property
    def tile_steps(self) -> Number:
        """How many tiles of serial loops a block runs for it."""
        plan, loop = self.plan, self.plan.cut.sum_loop
        part = plan.cut.parts[self.part]
        steps = prod((plan.steps.get(name, 1.0) for name in part.serial), start=1.0)
        if loop is not None:
            steps = steps * plan.tiles_of_block(loop)
        return steps

    @cached_property
    def cut_share(self) -> Number:
        """The share of its steps in tiles that a bound cuts, as in a triangle.

        A tile of rows has steps up to its diagonal: the last of them, for so many steps as the tile
        has rows, are for some of its rows only.
        """
        plan, coupled = self.plan, self.facts.coupled
        along = [name for name in plan.cut.mapped if name in coupled]
        serial = [name for name in plan.serial_band if name in coupled]
        if not along or not serial:
            return 0.0
        sizes = sum(plan.tile[name] for name in (*along, serial[-1]))
        return np.minimum(1.0, sizes / max(1.0, plan.trips[serial[-1]] * self.fill))

    @cached_property
    def runs_whole(self) -> Number:
        """1 where its tiles that a bound cuts run as full ones do, else 0.

        All arrays that it reads are staged there.
        """
        if self.facts.name not in self.plan.cut.whole_if_finite:
            return 0.0
        read = (use for use in self.uses if not use.held and use.access.subscripts)
        return prod((self.plan.staged(use.group) for use in read), start=1.0)

    @property
    def steps_beside(self) -> Number:
        """How much longer it runs since tiles that a bound cuts run whole.

        Half of the points of such tiles are in the program.
        """
        return 1.0 + self.cut_share * self.runs_whole / 2

    # -- loads ------------------------------------------------------------------------------------

    def vector_width(self, uniform: UniformSet) -> Number:
        """Return how many elements of a staged reference a thread loads at a time.

        Neighbours lie along a loop of its points or, unrolled, along the innermost serial one.
        """
        if uniform.group is None:
            return 1.0
        rows = in_rows(self.plan.tiling, self.plan.staging[uniform.group])
        width = vector(uniform.access.element_bytes)
        return np.where(rows, width, self.steps_together(uniform))

    @once_by(lambda self, uniform: uniform.group)
    def steps_together(self, uniform: UniformSet) -> Number:
        """Return the steps of the innermost serial loop for which a thread loads a set at once.

        It is staged then, and its rows lie along the loop.
        """
        if uniform.group is None or not self.serial:
            return 1.0
        last, tiling = self.serial[-1], self.plan.tiling
        own = self.plan.staging[uniform.group]
        if own.along[-1] != last:
            return 1.0
        width = step_vector(tiling, own)
        whole = self.plan.tile.get(last, 1.0) % width == 0
        return np.where(whole & own.on & row_dimensions(tiling, own)[-1], width, 1.0)

    @cached_property
    def ahead(self) -> Flag:
        """Where a thread loads what a step reads while it computes the one before."""
        first = self.first_of_turn
        return self.register_prefetch_on() if first is self else first.ahead

    def register_prefetch_on(self, more_words: Number = 0.0) -> Flag:
        """Return where that is so, and registers have room for ``more_words``.

        Buffers are filled ahead, and their rows run along the points. A turn has one loop over an
        even number of steps, few enough to be unrolled. Each product computes enough with what it
        loads, and registers have room for the operands of two that follow each other beside the
        sums.
        """
        plan, turn = self.plan, self._turn
        if not turn or any(one.contract for one in turn):
            return False
        tiles = [plan.tile.get(name, 1.0) for name in self.serial]
        steps = prod(tiles, start=1.0)
        loads = [one._loaded() for one in turn]
        words = words_of_two([own for _, own in loads]) + more_words
        written = {own.reference for one in turn for own in one.facts.accesses if own.writes}
        sums = sum(
            element_words(own.element_bytes) for own in plan.cut.held if written & {*own.references}
        )
        return all_of(
            [
                plan.pipeline_stages > 1,
                (steps == largest(tiles)) & (np.mod(steps, STEPS_LOADED) == 0),
                unrolled(steps, sum(one.points for one in turn), plan.block_threads),
                prefetches(sums * plan.all_points, words, plan.registers_at_once),
                *(reuses(one.points, own) for one, (own, _) in zip(turn, loads, strict=True)),
                *(one._in_vectors for one in turn),
            ]
        )

    @property
    def first_of_turn(self) -> Compute:
        """The first statement of its turn: all of them are loaded ahead, or none is."""
        return next(iter(self._turn), self)

    @cached_property
    def waits_for_nothing(self) -> Flag:
        """Where all that a step reads is loaded a step ahead, and nothing beside buffers."""
        last = (self.serial or [""])[-1]
        moved = [use for use in self._read if last in use.access.moving]
        return self.ahead & no(any_of(self.plan.staged(use.group) == 0 for use in moved))

    @cached_property
    def loads_late(self) -> Flag:
        """Where buffers are filled ahead, but what a step reads of them is not loaded so.

        Steps that store elements along their loop, as those of a recurrence, wait for other things
        where warps beside them copy.
        """
        waits = any(
            use.writes and one.serial[-1] in use.access.moving
            for one in self._turn
            for use in one.uses
        )
        alone = (self.plan.copiers == 1) | (not waits)
        staged = any_of(self.plan.staged(use.group) > 0 for use in self._read)
        return alone & staged & (self.plan.pipeline_stages > 1) & no(self.waits_for_nothing)

    @property
    def _read(self) -> list[UniformSet]:
        """What it reads elsewhere than in registers."""
        return [use for use in self.uses if use.reads and not use.held]

    @cached_property
    def _turn(self) -> list[Compute]:
        """The statements of a turn of its loop, none where a turn has other loops."""
        serial = self.serial
        if not serial or serial[-1] not in self.plan.tile:
            return []
        parts = self.plan.cut.parts
        own = next(part.statements for part in parts if self.facts.name in part.statements)
        turn = [
            one
            for one in self.plan.computes
            if one.facts.name in own and serial[-1] in one.facts.loops
        ]
        return turn if all(one.serial == serial for one in turn) else []

    def _loaded(self) -> tuple[Number, Number]:
        """Return the elements of tiles of the turn that a step loads, and their words.

        Tiles that do not move along the innermost loop are copied in front of it, and not ahead.
        """
        last = self.serial[-1]
        moving = {use.group for use in self.plan.uses if last in use.access.moving}
        loaded: Number = 0.0
        words: Number = 0.0
        for use in self._read:
            if use.group is not None and use.group in moving:
                points = self.plan.points_along(use.access.moving)
                each = self.plan.staged(use.group) * use.count * points
                loaded = loaded + each
                words = words + each * element_words(use.access.element_bytes)
        return loaded, words

    @property
    def _in_vectors(self) -> Flag:
        """Where what it reads of tiles for several points lies in rows along them."""
        return all_of(
            (self.vector_width(use) > self.steps_together(use))
            | (self.plan.points_along(use.access.moving) <= 1)
            | (self.plan.staged(use.group) == 0)
            for use in self._read
        )
