"""One kernel as nodes: tiles to blocks, parts one after another, phases of a thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from functools import partial, reduce
from math import prod
from typing import Literal

import islpy as isl

from eatss.analysis.variant import VECTOR_BYTES, WORD_BYTES
from eatss.base.frozen import Names, their_names
from eatss.base.targets import AXES, CUDA
from eatss.lower.arrays import (
    FALSE,
    TRUE,
    TileRange,
    condition_of,
    full_tiles,
    tile_range,
    union_of,
)
from eatss.lower.assumptions import within
from eatss.lower.checks import check_coverage_of, check_ranges
from eatss.lower.index_range import Indices, factors_of
from eatss.lower.kernel.barriers import arguments_of
from eatss.lower.kernel.nodes import (
    AllFinite,
    Buffer,
    Element,
    For,
    If,
    Init,
    Kernel,
    Let,
    LookBack,
    NextTile,
    Node,
    Nodes,
    Share,
    counted,
)
from eatss.lower.kernel.uses import with_bodies, without_unused
from eatss.lower.lanes import (
    digits,
    groups_across,
    interleaved_places,
    lane_and_warp,
    of_lanes,
    passed_to_all,
    running_sums,
    shuffles,
)
from eatss.lower.mapping import MappedLoop, SerialTile
from eatss.lower.pieces import NameTable, Part
from eatss.lower.planning import Unit
from eatss.lower.promotion import SharedTile, unravelled
from eatss.lower.promotion_builder import PromotionBuilder
from eatss.lower.references import BuiltKernel, KernelContext, KernelInput, References
from eatss.lower.storage import Candidate
from eatss.lower.thread_ast import Phase, subtree_of, thread_code, thread_range, tile_set
from eatss.lower.thread_builder import ThreadBuilder
from eatss.lower.whole_tiles import WholeTiles, is_product
from eatss.plan.shares import lanes_of_warp
from eatss.plan.stage import StagedReads, Tiling, is_ahead
from eatss.polyhedral.dependences import at_most
from eatss.polyhedral.expression import Combiner, ElementType
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_names,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.scop import Place, Scop
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    c_text,
    equals,
    minimum,
    multiplied,
    names_in,
)
from eatss.program.expression import Environment, Grid, OwnSizes, numbers_in
from eatss.program.linear import start_plus, strict

_Ranges = dict[str, TileRange]
"""The tiles of loops, by their names or by those of their origins."""

_PROJECTION = 50_000
"""What isl may do to find exactly the values of one loop."""


def products_of_sizes(scop: Scop, names: NameTable) -> Iterator[Let]:
    """Yield the sizes that callers do not pass."""
    for product in scop.products:
        first, *others = factors_of(product)
        partial = [names.fresh(f"{product.name}_rows") for _ in others]
        yield Let(name=partial[0], value=first)  # each constant is as wide as indices are
        for before, name, factor in zip(partial, (*partial[1:], product.name), others, strict=True):
            yield Let(name=name, value=Name(before) * factor)


class KernelBuilder:
    """Builds one kernel."""

    def __init__(
        self,
        name: str,
        unit: Unit,
        context: KernelContext,
        staged: Dictionary[Candidate, StagedReads] | None = None,
        tiling: Tiling | None = None,
        *,
        sums_for_all: bool = False,
    ) -> None:
        """Note what it is made of.

        Where ``sums_for_all``, it is a phase of a kernel: sums come to all of the threads that
        share them, and what callers do not pass is known.
        """
        self._name, self._unit, self._context = name, unit, context
        self._sums_for_all = sums_for_all
        self._piece, self._mapping, self._parts = unit.piece, unit.mapping, unit.parts
        self._storage, self._names = unit.storage, unit.names
        self._isl = context.scop.isl_context
        self._index = Indices(context.index_bits)
        self._index.note_mapping(unit.mapping)
        own = KernelInput(unit=unit, context=context, index=self._index)
        self._bound = unit.piece.bound
        self._references = References(own)
        self._parameter_tiles: OwnSizes = {}
        self._lengths: dict[str, IntExpr] = {}
        self._chunk = max(one.chunk for one in unit.piece.statements)
        if not unit.mapping.spread and all(
            one.chunk or not one.loops for one in unit.piece.statements
        ):
            self._lengths = {"": Constant(1)}  # a few points
        elif self._chunk:
            run = {name for part in unit.parts for name in part.serial}
            still = (one for one in unit.mapping.serial if one.name not in run)
            self._lengths = {one.source_name: Constant(1) for one in still}
        self._ranges: _Ranges = {}  # by the name of the origin
        self._digits: Environment = {}  # of loops that share the blocks along x
        self._boxes: list[Buffer] = []  # in which warps leave their parts of sums
        self._look_back: LookBack | None = None  # of tiles of a row
        self._span = unit.piece.statements[0].span
        self._staging = PromotionBuilder(
            own,
            self._references,
            staged or {},
            tiling,
            kernel=name,
            clears=bool(unit.mapping.warps) or self._products(staged or {}),
        )
        self._thread = ThreadBuilder(own, self._references)

    def build(self) -> BuiltKernel:
        """Return the kernel, its barriers not put yet.

        Raises:
            InternalError: ``EATSS-K901`` its code does not run every instance once.
        """
        launch = self._launch_params()
        ranges, known = self._block_ranges(launch)
        products = () if self._sums_for_all else products_of_sizes(self._context.scop, self._names)
        body = without_unused((*products, *self._body(ranges, known)))
        integers = (*self._context.parameters, *self._piece.host_names)
        arrays = [one.buffer for one in self._context.arrays.values()]
        if self._look_back is not None:
            arrays.append(self._look_back.found.buffer)
        registers, groups = self._references.registers, self._staging.groups
        return BuiltKernel(
            piece=self._piece,
            kernel=Kernel(
                name=self._name,
                threads=self._mapping.threads,
                arguments=arguments_of(body, integers, arrays),
                # whole vectors before others, so that each begins at a multiple of one
                shared=tuple(
                    sorted(
                        (*(tile.buffer for tile in self._staging.tiles), *self._boxes),
                        key=lambda one: one.size_bytes % VECTOR_BYTES != 0,
                    )
                ),
                static_shared_bytes=self._context.static_shared_bytes,
                index_bits=self._context.index_bits,
                body=body,
                warps=self._mapping.warps,
                continued=tuple(
                    (registers[one], registers[other])
                    for one, other in self._unit.continued.items()
                    if {one, other} <= {*registers}
                ),
                # tiles of parts that run one after another lie where others do
                overlaid=tuple(groups) if len(groups) > 1 else (),
            ),
            grid=self._grid(ranges),
            tiles=self._tile_counts(ranges),
            staged=tuple(self._staging.tiles),
            slowest=self._mapping.slowest,
            launch=launch,
            parameter_tiles=tuple(sorted(self._parameter_tiles.items())),
            lengths=tuple(self._lengths.items()),
            most_blocks=self._most_blocks(launch),
            notes=(
                *self._notes(),
                *self._references.notes,
                *self._staging.notes,
            ),
            index=self._index,
            origins=tuple(ranges[loop.name].first for loop in self._mapping.blocks_along("x")),
        )

    def _products(self, staged: Collection[Candidate]) -> bool:
        """Tell whether some statement may run over whole tiles: it adds staged products."""
        if self._mapping.split is not None:
            return False
        boxes = {place for candidate in staged for place in candidate.places}
        places = replace(self._references.places(boxes), held=self._storage.held)
        return any(is_product(statement, places) for statement in self._piece.statements)

    # What is known at each level ---------------------------------------------------------

    def _launch_params(self) -> isl.Set:
        """Return the sizes and host counters for which there is an instance, or a tile of them."""
        if self._piece.cuts:
            return self._piece.within_tile(self._piece.host_names)
        params = union_of(
            [without_parameters(domain, self._bound).params() for domain in self._piece.placed]
        )
        return coalesced(params)

    def _block_ranges(self, launch: isl.Set) -> tuple[_Ranges, isl.Set]:
        known = launch
        ranges = {}
        for loop in self._mapping.spread:
            values, all_launches = self._values(loop.name), launch
            rows = self._unit.rows
            if rows is not None and loop.name in parameter_names(rows):
                others = [name for name in self._bound if name != loop.name]
                values = coalesced(without_parameters(rows, others))
                all_launches = coalesced(without_parameters(values, [loop.name]))
            ranges[loop.name] = _only_tile(tile_range(values, loop, all_launches), loop)
            self._note_tile(ranges[loop.name], loop)
            self._ranges[loop.origin] = ranges[loop.name]
            if loop is not self._mapping.split:
                known = known.intersect(ranges[loop.name].known)
        return ranges, coalesced(known)

    def _values(self, loop: str, *more: str) -> isl.Set:
        """Return the values of a loop over all blocks, ``more`` loops and the others left out."""
        if any(loop == name for name, *_ in self._piece.cuts):
            return self._piece.within_tile([loop])
        others = [*more, *self._piece.others([loop])]
        placed = [without_parameters(domain, others).params() for domain in self._piece.placed]
        return coalesced(union_of(placed))

    def _note_tile(self, tiles: TileRange, loop: MappedLoop | SerialTile) -> None:
        """Remember which sizes bound a tiled loop, and its length where it is of other ones."""
        parameters = {*self._context.scop.parameters}
        sizes = parameters.intersection(names_in(tiles.last, tiles.first))
        chunk = 0
        for one in numbers_in(tiles.last) if self._chunk else ():
            if one and (one % self._chunk == 0 or 0 < self._chunk - one <= 2):
                chunk = max(chunk, one, self._chunk)
        if not sizes or chunk:
            count = multiplied(tiles.count, Constant(loop.tile))
            if parameters.issuperset(names_in(count)):
                self._lengths.setdefault(loop.source_name, count)
            elif chunk:
                self._lengths.setdefault(loop.source_name, Constant(self._chunk))
        for name in sizes:
            known = self._parameter_tiles.get(name, 0)
            self._parameter_tiles[name] = max(known, chunk or loop.tile)

    def _tile_counts(self, ranges: _Ranges) -> Grid:
        """Return the tiles along each axis of the grid, those of a split sum not counted."""
        one: IntExpr = Constant(1)
        x, y, z = (
            reduce(multiplied, (ranges[loop.name].count for loop in along), one)
            for along in map(self._mapping.blocks_along, AXES)
        )
        return x, y, z

    def _grid(self, ranges: _Ranges) -> Grid:
        grid = dict(zip(AXES, self._tile_counts(ranges), strict=True))
        for axis in AXES:
            for loop in self._mapping.blocks_along(axis):
                self._index.note(ranges[loop.name].count)
            if axis != "x":  # the kernel strides over what exceeds the limit of a grid
                grid[axis] = minimum(grid[axis], CUDA.most_blocks["y"])
        split, shared = self._mapping.split, self._mapping.shared
        if split is not None and split.grid is not None and self._mapping.scan is None:
            grid[split.grid] = minimum(ranges[split.name].count, self._mapping.chunks)
        if shared is not None and shared.shared is not None:
            tiles = tile_range(self._values(shared.name), shared, self._launch_params())
            self._index.note(tiles.count)
            grid[shared.shared] = minimum(tiles.count, shared.blocks)
        return grid["x"], grid["y"], grid["z"]

    def _most_blocks(self, launch: isl.Set) -> IntExpr | None:
        """Return the condition that blocks along x are not too many, where loops share them.

        A bound of one loop keeps the blocks of that loop within the limit; a product may pass it.
        Host loops take all their values at once.
        """
        sharing = self._mapping.blocks_along("x")
        if len(sharing) < 2:
            return None
        host = self._piece.host_names
        known = without_parameters(launch, host)
        counts = [tile_range(self._values(o.name, *host), o, known).count for o in sharing]
        return within(counts, CUDA.most_blocks["x"])

    # The body ----------------------------------------------------------------------------

    def _body(self, ranges: _Ranges, known: isl.Set) -> Nodes:
        lanes, threads = self._interleaved() if self._mapping.interleaved else self._threads()
        found: list[Node] = [
            Let(name=loop.thread, value=threads[loop.name])
            for loop in self._mapping.spread
            if loop.threads > 1
        ]
        number = self._staging.declaration()
        found = [number, *lanes, *found] if lanes else [*found, number]
        found += self._numbered_blocks(ranges)
        tiles = self._tiles(self._mapping.mapped, ranges, known)
        return (*found, *self._staging.aligned, *tiles)

    def _tiles(self, loops: Sequence[MappedLoop], ranges: _Ranges, known: isl.Set) -> Nodes:
        """Return the tiles of a block along ``loops``, and what is inside."""
        if not loops:
            return self._inside_tile(ranges, known)
        loop, *others = loops
        if loop.grid == "x":
            origin = Let(name=loop.origin, value=self._start(loop, ranges))
            return (origin, *self._tiles(others, ranges, known))
        return self._strided(loop, ranges, lambda: self._tiles(others, ranges, known))

    def _inside_tile(self, ranges: _Ranges, known: isl.Set) -> Nodes:
        references = self._references
        found = [
            *self._single_points(self._mapping.mapped),
            *references.declarations(),
        ]
        if self._mapping.split is not None:
            scan, loop = self._mapping.scan, self._mapping.split
            nodes = self._split_sum if scan is None else partial(self._scanned, scan)
            return (*found, *nodes(loop, ranges, known))
        if self._mapping.shared is not None:
            found += self._at_points(references.neutral())
            references.combine_atomically = True
        else:
            found += self._transfers("load", known)
        for across in references.across:
            found += self._at_points(references.neutral(across), self._mapping.loops_of("", across))
        for part in self._parts:
            found += self._part(part, known)
        found += self._transfers("store", known)
        return (*found, *(one for own in references.across for one in self._combined(own, known)))

    def _combined(self, across: Names, known: isl.Set) -> Iterator[Node]:
        """Yield what makes the parts one that points along some loops have."""
        parts = list(self._references.combined(across))
        groups, first = groups_across(self._mapping, across)
        for lanes, apart in groups:
            loops = self._mapping.loops_of("", across)
            yield from self._at_points(shuffles(parts, lanes, apart), loops)
        tiles = [one.origin for one in self._mapping.mapped if one.name in across]
        known = coalesced(without_parameters(known, tiles))
        stores = (
            *self._references.seen(across),
            *self._transfers("peek", known, across),
            *self._transfers("store", known, across),
        )
        yield from (If(conditions=tuple(first), body=stores),) if first else stores

    def _notes(self) -> Iterator[str]:
        """Say which operands are copied, what is computed anew, which loops share an axis."""
        notes: dict[str, None] = {}
        for access in (one for each in self._piece.statements for one in each.accesses):
            array = self._context.arrays[access.array].array
            of, subscripts = array.copy_of, access.text.removeprefix(array.name)
            if of and access.is_write:
                notes[f"{array.name}: a copy of {of}, which is overwritten later"] = None
            elif of:
                notes[f"{of}{subscripts} is read from the copy {array.name}"] = None
        yield from notes
        passes = dict.fromkeys(one.one_pass for one in self._piece.statements if one.one_pass)
        for sums in passes:
            yield f"{' and '.join(sums)}: from one pass over their terms, by parts"
        if self._chunk and not passes:
            yield f"the recurrence runs in chunks of {self._chunk} steps"
        lost = (one.array for each in self._piece.statements for one in each.recomputed)
        for name in dict.fromkeys(lost):
            yield f"{name} is computed anew where it is read"
        for axis in AXES:
            for what in ("blocks", "threads"):
                loops = getattr(self._mapping, f"{what}_along")(axis)
                if len(loops) > 1:
                    *first, last = (loop.source_name for loop in loops)
                    yield f"{', '.join(first)} and {last} share the {what} along {axis}"

    def _interleaved(self) -> tuple[list[Node], Environment]:
        """Return what :meth:`_threads` does where lanes are interleaved."""
        loops = self._mapping.with_threads
        lane, warp = self._names.fresh("lane"), self._names.fresh("warp")
        values = lane_and_warp(Name(self._staging.thread))
        places = interleaved_places(lane, warp, [loop.threads for loop in loops])
        declared: list[Node] = [
            Let(name=name, value=value, narrow=True)
            for name, value in zip((lane, warp), values, strict=True)
        ]
        return declared, dict(zip(their_names(loops), places, strict=True))

    def _threads(self) -> tuple[list[Node], Environment]:
        """Return each loop's coordinate of a thread, and what of lanes is declared for them.

        Loops that share an axis take it apart.
        """
        found: Environment = {}
        warps, lets = self._mapping.warps, list[Node]()
        lane, warp = lane_and_warp(Name(self._staging.thread))
        lanes = digits(lane, [Constant(one.lanes) for one in warps])
        places = digits(warp, [Constant(one.warps) for one in warps])
        for one, *values in zip(warps, lanes, places, strict=True):
            named = zip((one.lane, one.warp), values, strict=True)
            lets += (Let(name=name, value=value, narrow=True) for name, value in named)
            found[one.loop] = Name(one.lane) + one.lanes * Name(one.warp)
        if warps:
            return lets, found
        for axis in AXES:
            loops = self._mapping.threads_along(axis)
            extents = [Constant(loop.threads) for loop in loops]
            places = digits(Name(CUDA.thread + axis), extents)
            found.update(zip(their_names(loops), places, strict=True))
        return [], found

    def _numbered_blocks(self, ranges: _Ranges) -> list[Node]:
        """Declare the block's number along x where loops share it, and note each loop's digit.

        That of a tile of a row is what is taken of them.
        """
        loops, split = self._mapping.blocks_along("x"), self._mapping.split
        if len(loops) < 2 and split not in loops:
            return []
        number = self._names.fresh("block")
        counts = [ranges[loop.name].count for loop in loops]
        self._index.note(*counts)
        places = digits(Name(number), counts)
        self._digits.update(zip(their_names(loops), places, strict=True))
        if split is None or split not in loops:
            return [Let(name=number, value=Name(f"{CUDA.block}x"))]
        (values, combiner), (carried, _), *_ = self._references.combined()
        tiles, run = reduce(multiplied, counts), self._names.fresh("run")
        words = tiles * (values.buffer.element_type.size_bytes // WORD_BYTES) + 1
        self._index.note(words)
        name = self._names.fresh(f"{self._name}_tiles")
        found = Buffer.of("global", name, ElementType.UINT64, words)
        self._look_back = LookBack(
            value=carried,
            found=found.at(Constant(1)),
            run=run,
            tile=Name(number),
            first=Name(number) - places[-1],
            combiner=combiner,
        )
        taken = found.at(Constant(0))
        return [NextTile(name=number, run=run, taken=taken, tiles=self._index(tiles))]

    def _start(self, loop: MappedLoop, ranges: _Ranges) -> IntExpr:
        digit = self._digits.get(loop.name, Name(f"{CUDA.block}{loop.grid}"))
        first = ranges[loop.name].first
        self._index.note(first)
        # the block's own share is within the values of the loop
        return start_plus(first, loop.tile * digit)

    def _strided(
        self,
        loop: MappedLoop,
        ranges: _Ranges,
        body: Callable[[], Nodes],
    ) -> Nodes:
        """Return a loop over the tiles of a block, or the only one that there is."""
        if loop.grid is None and _is_one_tile(ranges[loop.name]):
            return (Let(name=loop.origin, value=self._index(ranges[loop.name].first)), *body())
        condition = self._until(loop.origin, ranges[loop.name].last)
        lower = self._index(ranges[loop.name].first)
        step: IntExpr = Constant(loop.tile)
        if loop.grid is not None:
            lower = self._start(loop, ranges)
            step = Apply(Operator.MUL, (step, Name(f"{CUDA.blocks}{loop.grid}")))
        return (For(counter=loop.origin, lower=lower, condition=condition, step=step, body=body()),)

    def _until(self, counter: str, last: IntExpr) -> IntExpr:
        """Return the condition of a loop that runs to ``last``."""
        return self._index(strict(Name(counter) <= last))

    def _single_points(self, loops: Sequence[MappedLoop]) -> list[Node]:
        """Declare the loops of which a thread has one point."""
        return [
            Let(name=loop.name, value=self._index(loop.first.expression()))
            for loop in loops
            if loop.is_single
        ]

    def _split_sum(self, loop: MappedLoop, ranges: _Ranges, known: isl.Set) -> Nodes:
        """Return sums whose loop is spread over threads and blocks, and their combination."""
        references = self._references
        neutral = self._at_points(references.neutral())

        def sums() -> Nodes:
            found = self._single_points([loop])
            inside = known.intersect(ranges[loop.name].known)
            for part in self._parts:
                found += self._part(part, coalesced(inside))
            return tuple(found)

        summed = self._strided(loop, ranges, sums)
        parts, beside = list(references.combined()), self._mapping.beside
        lanes = int(lanes_of_warp(loop.threads, beside))
        found = [
            *neutral,
            *summed,
            *self._at_points(shuffles(parts, lanes, beside)),
        ]
        taken: Nodes = ()
        if loop.threads > (1 if self._sums_for_all else lanes):
            tiles, put, all_parts = passed_to_all(parts, loop, self._mapping, self._names)
            self._boxes += tiles
            found.append(with_bodies(put, self._at_points))
            taken = self._at_points(all_parts)
        references.combine_atomically = self._mapping.blocks_of_sum > 1
        stores = self._transfers("store", known)
        if self._sums_for_all:
            found += taken
        else:
            stores = (*taken, *stores)
        if loop.threads > 1:
            first = of_lanes(Name(loop.thread), loop.threads, beside)[0]
            stores = (If(conditions=(first,), body=stores),)
        return (*found, *stores)

    def _scanned(
        self, combiner: Combiner, loop: MappedLoop, ranges: _Ranges, known: isl.Set
    ) -> Nodes:
        """Return running sums, of which a warp has some steps at a time, or one tile of them."""
        found = list[list[Element]]()
        for own, (element, _) in zip(
            self._unit.storage.registers, self._references.combined(), strict=True
        ):
            if own.are_written:
                found.append([])
            found[-1].append(element)
        look_back = self._look_back

        def neutral(one: Element) -> Init:
            return Init(target=one, value=combiner.neutral(one.buffer.element_type))

        def combined(values: Element, carried: Element, earlier: Element | None = None) -> Nodes:
            width, names = self._mapping.scan_vector, self._names.inner()
            return self._at_points(
                running_sums(values, carried, combiner, loop, width, look_back, names, earlier)
            )

        def tile() -> Nodes:
            inside = coalesced(known.intersect(ranges[loop.name].known))
            nodes: list[Node] = [
                *self._single_points([loop]),
                *self._at_points(tuple(neutral(one) for one, *_ in found), self._mapping.spread),
            ]
            summing, *using = self._parts
            nodes += self._part(summing, inside)
            used = [node for part in using for node in self._part(part, inside)]
            nodes += (node for one in found for node in combined(*one))
            return (*nodes, *used, *self._transfers("store", inside))

        before = self._transfers("load", known)
        if look_back is None:
            return (*before, *self._strided(loop, ranges, tile))
        return (
            neutral(found[0][1]),
            If(conditions=(equals(self._digits[loop.name], 0),), body=before),
            Let(name=loop.origin, value=self._start(loop, ranges)),
            *tile(),
        )

    def _at_points(self, nodes: Nodes, loops: Sequence[MappedLoop] | None = None) -> Nodes:
        """Return nodes for each of the thread's points, inside the domain or not.

        They are those of mapped loops, if none are given.
        """
        if not nodes:
            return ()
        for loop in reversed(self._mapping.mapped if loops is None else loops):
            if loop.points > 1:
                nodes = (counted(loop.point, loop.points, nodes, "whole"),)
        return nodes

    def _transfers(
        self, kind: Literal["load", "store", "peek"], known: isl.Set, across: Names = ()
    ) -> Nodes:
        """Return the loads or stores of registers, each at its points."""
        found: list[Node] = []
        for instance, loops in self._references.transfers(kind, across):
            phase = Phase(
                instances=(instance,),
                bound=self._bound,
                mapped=loops,
                serial=(),
                below=None,
            )
            found += self._phase(phase, known, separate=False)
        return tuple(found)

    def _part(self, part: Part, known: isl.Set) -> Nodes:
        """Return the statements of a part, the serial tiles around them."""
        serial = tuple(tile for tile in self._mapping.serial if tile.name in part.serial)
        instances = self._piece.domains_of(part)
        tile = tile_set(self._isl, self._mapping.spread)
        inside = coalesced(union_of([i.params().intersect(tile) for i in instances]))
        staged = self._staging.stage(part.statements, serial)
        condition: IntExpr = TRUE
        if serial or staged:  # what runs in no loop has its own guards
            here = coalesced(without_parameters(inside, self._bound))
            condition = condition_of(here, known)
            known = known if condition == TRUE else coalesced(known.intersect(here))
        if condition == FALSE:
            return ()
        body = self._level(part, serial, 0, inside, staged, known)
        tests = (self._index(strict(condition)),)
        return body if condition == TRUE else (If(conditions=tests, body=body),)

    def _level(
        self,
        part: Part,
        serial: tuple[SerialTile, ...],
        depth: int,
        inside: isl.Set,
        staged: Sequence[SharedTile],
        known: isl.Set,
    ) -> Nodes:
        """Return what stands inside ``depth`` serial loops of a part."""
        ahead = bool(is_ahead(depth, max((tile.depth for tile in staged), default=0)))
        here = [tile for tile in staged if tile.depth == depth]
        fills, stores = self._staging.copies(here, known, ahead=ahead)
        found: list[Node] = [*fills]
        if depth == len(serial):
            found += self._compute(part, serial, known)
        else:
            loop = serial[depth]
            values = inside.intersect(tile_set(self._isl, serial[:depth]))
            tiles = tile_range(_projected(values, self._piece.others([loop.name])), loop, known)
            self._note_tile(tiles, loop)
            self._ranges[loop.origin] = tiles
            lower, condition = self._index(tiles.first), self._until(loop.origin, tiles.last)
            step: IntExpr = Constant(loop.tile)
            if loop.shared is not None:
                lower = start_plus(tiles.first, step * Name(f"{CUDA.block}{loop.shared}"))
                step = step * Name(f"{CUDA.blocks}{loop.shared}")
            found.append(
                For(
                    counter=loop.origin,
                    lower=lower,
                    condition=condition,
                    step=step,
                    body=self._level(part, serial, depth + 1, inside, staged, tiles.known),
                )
            )
        return (*found, *stores)

    def _compute(self, part: Part, serial: tuple[SerialTile, ...], known: isl.Set) -> Nodes:
        phase = Phase(
            instances=self._piece.domains_of(part),
            bound=self._bound,
            mapped=self._mapping.spread,
            serial=serial,
            below=subtree_of(self._piece, self._mapping),
        )
        looped = any(other.serial for other in self._parts) and self._mapping.split is None
        nodes = self._phase(phase, known, separate=bool(serial) or not looped)
        return self._staging.computed(nodes, self._parts.index(part))

    def _phase(self, phase: Phase, known: isl.Set, *, separate: bool) -> Nodes:
        """Return the code of a thread; where ``separate``, whole tiles apart from partial ones."""
        threads = thread_range(self._isl, self._mapping.spread)
        loops: list[MappedLoop | SerialTile] = [*phase.mapped, *phase.serial]
        names = {loop.name for loop in loops}
        others = [name for name in phase.bound if name not in names]
        instances = [without_parameters(instance, others) for instance in phase.instances]
        printed = [self._ranges[loop.origin] for loop in loops]
        check_ranges(instances, phase.bound, loops, printed, known, self._span)
        whole = self._whole(phase, known) if separate else None
        phase = whole or phase
        general = self._checked_code(phase, known.intersect(threads))
        if not general:
            return ()
        if whole is not None:
            instances = [without_parameters(instance, others) for instance in whole.instances]
        full = full_tiles(instances, loops, known) if separate else None
        if full is None or full.is_equal(known):
            return self._thread.nodes(general)
        finite = self._if_finite(phase, full, known)
        if finite:
            vote, all_points = finite
            body, orelse = self._thread.nodes(all_points), self._thread.nodes(general)
            return (vote, If(conditions=(Name(vote.name),), body=body, orelse=orelse))
        fast = self._checked_code(phase, full.intersect(threads))
        condition = condition_of(full, known)
        if not fast or fast == general:
            return self._thread.nodes(general)
        return (
            If(
                conditions=(self._index(strict(condition)),),
                body=self._thread.nodes(fast),
                orelse=self._thread.nodes(general),
            ),
        )

    def _whole(self, phase: Phase, known: isl.Set) -> Phase | None:
        """Return a phase over all points of its tiles, where what is too much does no harm."""
        tiles = self._whole_tiles(phase, known)
        return None if tiles is None else tiles.harmless(zeros=bool(self._mapping.warps))

    def _whole_tiles(self, phase: Phase, known: isl.Set) -> WholeTiles | None:
        """Return what knows whether tiles may run whole, ``None`` where they never do."""
        if not self._staging.clears or self._mapping.split is not None:
            return None
        staged = self._references.staged()
        return WholeTiles(phase, self._piece, staged, self._references.places(staged), known)

    def _if_finite(
        self, phase: Phase, full: isl.Set, known: isl.Set
    ) -> tuple[AllFinite, Nodes] | None:
        """Return a test of factors, and the code of tiles that run as if full where it holds.

        Args:
            phase: what runs.
            full: where tiles are full.
            known: what is known of sizes and origins.
        """
        context = self._context
        tiles = self._whole_tiles(phase, known)
        if context.strict_fp or tiles is None:
            return None
        written = {
            self._piece.statement(one.get_tuple_name()).write.array for one in phase.instances
        }
        if not all(context.scop.array(one).element_type.is_floating for one in written):
            return None
        found = tiles.if_finite()
        if found is None or not found[1]:
            return None
        threads = thread_range(self._isl, self._mapping.spread)
        fast = self._checked_code(found[0], known.intersect(threads))
        name, counter = self._names.fresh("finite"), self._names.inner().fresh("e")
        staged = self._references.staged()
        shares = dict.fromkeys(self._share(place, staged, Name(counter)) for place in found[1])
        condition = strict(condition_of(full, known))
        vote = AllFinite(
            name=name,
            unless=self._index(condition),
            counter=counter,
            thread=Name(self._staging.thread),
            threads=self._mapping.threads,
            shares=tuple(shares),
        )
        return (vote, fast) if fast else None

    def _share(
        self, place: Place, staged: Dictionary[Place, SharedTile], counter: IntExpr
    ) -> Share:
        """Return the elements through which a place may read: one, or all of a tile."""
        tile = staged.get(place)
        if tile is None:
            return Share(count=1, element=self._references.element(place, {}))
        return Share(
            count=prod(tile.sizes),
            element=tile.buffer.at(*unravelled(counter, tile.extents)),
        )

    def _checked_code(self, phase: Phase, known: isl.Set) -> Nodes:
        """Generate the code of a thread, and check that it runs what it is to run."""
        lowered = self._thread.lowered(thread_code(phase, known))
        check_coverage_of(phase, lowered, self._thread.known(), known, self._span)
        return lowered


def _is_one_tile(tiles: TileRange) -> bool:
    """Tell whether a loop has one tile, at a place that is a number."""
    return tiles.count == Constant(1) and isinstance(tiles.first, Constant)


def _only_tile(tiles: TileRange, loop: MappedLoop) -> TileRange:
    """Return the tiles of a loop with what is known of the only one, if there is one."""
    if not _is_one_tile(tiles):
        return tiles
    text = f"{loop.origin} = {c_text(tiles.first)}"
    there = parameters_set(tiles.known.get_ctx(), [loop.origin], text)
    return replace(tiles, known=coalesced(tiles.known.intersect(there)))


def _projected(values: isl.Set, others: Sequence[str]) -> isl.Set:
    """Return the values of a loop, the other parameters projected out.

    Where that takes isl too long, it is done for a convex set around them without integer
    divisions, which may add tiles in which nothing is to be done.
    """
    try:
        with at_most(values.get_ctx(), _PROJECTION):
            return coalesced(without_parameters(values, others))
    except isl.Error:
        hull = isl.Set.from_basic_set(values.simple_hull().remove_divs())
        return without_parameters(hull, others)
