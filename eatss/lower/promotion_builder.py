"""Cooperative copies into shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import islpy as isl

from eatss.base.targets import AXES, CUDA
from eatss.lower.arrays import FALSE, TRUE, condition_of, union_of, value_of
from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Copy,
    Declare,
    Element,
    Extents,
    For,
    Let,
    Node,
    Nodes,
    Staging,
    Way,
    counted,
)
from eatss.lower.kernel_context import KernelInput
from eatss.lower.mapping import SerialTile
from eatss.lower.pieces import NameTable
from eatss.lower.placement import staged_reads, tiling_of
from eatss.lower.promotion import (
    CopyLoop,
    SharedTile,
    WholeSteps,
    copy_loop,
    in_vectors,
    shared_tile,
    transposed_copy_loop,
    whole_steps,
)
from eatss.lower.references import References
from eatss.lower.storage import Candidate
from eatss.lower.thread_ast import tile_set
from eatss.plan.stage import PIECE_BYTES, vector
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    coalesced,
    dims_as_parameters,
    parameter_at_least,
    parameter_at_most,
    points_at_a_sample,
    without_parameters,
)
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    names_in,
)
from eatss.program.linear import start_plus, strict

_MOSTLY_READ = 0.5
"""Share of a box above which loading all of it takes less than a test of each element."""


class PromotionBuilder:
    """Places reads in shared memory and builds the copies.

    ``tiles`` are what the kernel has in shared memory so far, ``notes`` why something is not;
    ``groups`` are the names of those that some statements use while no other boxes are in use.
    ``thread`` is the number of a thread in its block. What of a box is not read is zero if it
    ``clears`` them. Threads copy several floating-point elements at a time where rows allow it and
    it is so planned. Where loops may copy ``ahead``, whole steps of them need no more than a
    test of the edges of a block's own tile. Boxes that no tile reads as a whole, as that of a star,
    are loaded as a whole where most of them is read, the array has all of it, and nothing in the
    kernel writes it.
    """

    def __init__(
        self,
        own: KernelInput,
        references: References,
        candidates: Sequence[Candidate],
        *,
        clears: bool,
    ) -> None:
        self._own, self._references, self._candidates = own, references, candidates
        self._piece, self._mapping, self._names = own.piece, own.mapping, own.names
        self._index, self._arrays = own.index, own.context.arrays
        self.clears = clears
        self._ahead = own.context.copies_ahead
        self._aligned: dict[str, Aligned] = {}
        self._members = NameTable()
        self._mostly_read: set[str] = set()
        self.thread = own.names.fresh("thread")
        self._bound = own.bound
        self._isl = own.context.scop.isl_context
        self.tiles: list[SharedTile] = []
        self.groups: list[tuple[str, ...]] = []
        self.notes: list[str] = []

    def stage(
        self, statements: Sequence[str], serial: tuple[SerialTile, ...]
    ) -> tuple[SharedTile, ...]:
        """Return the shared tiles of what some statements read inside ``serial`` loops.

        Others that are staged before or after them may lie in the same memory.
        """
        tiles: list[SharedTile] = []
        for candidate in self._candidates:
            places = sorted(place for place in candidate.places if place[0] in statements)
            if not places:
                continue
            array = self._arrays[candidate.array]
            inside = [at for at, loop in enumerate(serial) if loop.source_name in candidate.moving]
            outermost = inside[-1] + 1 if inside else 0
            footprints = {
                depth: self._footprint(places, serial[:depth])
                for depth in range(outermost, len(serial) + 1)
            }
            used = sum(tile.stage.shared_bytes for tile in tiles)
            width = vector(array.array.element_type.size_bytes)
            tile = shared_tile(
                self._members.fresh(array.name),
                candidate,
                array.array.element_type,
                footprints,
                self._own.context.shared_limit_bytes - used,
                tiling_of(self._mapping),
                staged_reads(candidate, self._arrays),
                places[0],
                serial[-1].source_name if serial else "",
                width if self._mapping.warps else 1,
            )
            if isinstance(tile, str):
                self.notes.append(f"{candidate.text} stays in L1: {tile}")
                continue
            tiles.append(tile)
            self.tiles.append(tile)
            if self._is_mostly_read(tile, places, serial[: tile.depth]):
                self._mostly_read.add(tile.name)
            self._references.share(tile, places)
        if tiles:
            self.groups.append(tuple(tile.name for tile in tiles))
        return tuple(tiles)

    def _footprint(
        self, places: Sequence[tuple[str, int]], serial: tuple[SerialTile, ...]
    ) -> isl.Set:
        """Return the elements the accesses touch in a tile of the loops given."""
        tile = tile_set(self._isl, (*self._mapping.spread, *serial))
        images = []
        for name, number in places:
            domain = self._piece.domain_of(name).intersect_params(tile)
            free = without_parameters(domain, self._bound)
            relation = self._piece.statement(name).accesses[number].relation
            images.append(free.apply(relation))
        return union_of(images)

    def _is_mostly_read(
        self, tile: SharedTile, places: Sequence[tuple[str, int]], serial: tuple[SerialTile, ...]
    ) -> bool:
        """Tell whether a box may be loaded as a whole, and a tile away from edges reads most of it.

        Sizes bound no loop there, so any tile will do.
        """
        array = self._arrays[tile.candidate.array].array
        written = any(one.write.array == array.name for one in self._piece.statements)
        if self.clears or written or not _is_bounded(array):
            return False
        spread = tile_set(self._isl, (*self._mapping.spread, *serial))
        images = []
        for name, number in places:
            statement = self._piece.statement(name)
            ties = self._piece.domain_of(name).gist(statement.domain).intersect_params(spread)
            function = isl.PwMultiAff.from_map(statement.accesses[number].relation)
            everywhere = isl.Map.from_pw_multi_aff(function.gist(statement.domain))
            images.append(without_parameters(ties, self._bound).apply(everywhere))
        read = points_at_a_sample(union_of(images))
        return read is not None and read > _MOSTLY_READ * prod(tile.sizes)

    def copy(self, tile: SharedTile, known: isl.Set) -> Staging:
        """Return the cooperative copy of a tile, in several ways where part of it is not read."""
        at = tuple(self._names.fresh(f"x{k}") for k in range(len(tile.sizes)))
        footprint = dims_as_parameters(tile.footprint, at)
        box = known
        for name, offset, size in zip(at, tile.offsets, tile.sizes, strict=True):
            box = box.intersect(parameter_at_least(name, offset))
            last = offset.add_constant_val(isl.Val.int_from_si(self._isl, size - 1))
            box = box.intersect(parameter_at_most(name, last))
        full = coalesced(known.subtract(without_parameters(box.subtract(footprint), at)))
        if full.is_empty() and tile.name in self._mostly_read:
            extent = self._arrays[tile.candidate.array].array.extent
            footprint = box.intersect(dims_as_parameters(extent, at))
            full = coalesced(known.subtract(without_parameters(box.subtract(footprint), at)))
        condition = condition_of(full, known)
        if condition == TRUE:
            return Staging(ways=(self._way(tile, at, known, wide=True),))
        edge = self._way(tile, at, known, condition_of(footprint, box))
        if condition == FALSE:
            return Staging(ways=(edge,))
        ways = [self._way(tile, at, known, where=condition, wide=True)]
        steps = None
        if self._ahead:
            steps = whole_steps(tile, at, footprint, box, known, self._mapping)
        if steps is not None and self._in_vectors(tile, at[-1], steps):
            way = self._way(tile, at, known, steps.condition, where=steps.where, wide=True)
            ways.append(replace(way, steps=True))
        return Staging(ways=(*ways, edge))

    def _in_vectors(self, tile: SharedTile, row: str, steps: WholeSteps) -> bool:
        """Tell whether no edge cuts a vector of a box in whole steps."""
        if row not in names_in(steps.condition) or not self._wide_walk(tile):
            return True
        shape, width = self._arrays[tile.candidate.array].shape, vector(tile.stage.element_bytes)
        return in_vectors(steps, row, tile.offsets[-1], shape, width, self._names)

    def _way(
        self,
        tile: SharedTile,
        at: tuple[str, ...],
        known: isl.Set,
        condition: IntExpr = TRUE,
        *,
        where: IntExpr = TRUE,
        wide: bool = False,
    ) -> Way:
        """Return the copy of the elements of a tile for which a condition holds.

        It is taken ``where`` something holds. If it may be ``wide``, several elements are copied at
        a time where rows allow it, of transposed tiles through registers: vectors of rows of the
        array, then their elements [:mod:`eatss.lower.transform.copy_ways`].
        """
        array, width = self._arrays[tile.candidate.array], vector(tile.stage.element_bytes)
        source = array.element([Name(name) for name in at])

        def around(walk: CopyLoop, copy: Copy) -> For:
            """Return the loop over a copy of what is read, with where in its array that is."""
            places: list[Node] = []
            for name, offset, place in zip(at, tile.offsets, walk.places, strict=True):
                first = value_of(offset, known)
                self._index.define(name, first)
                places.append(Let(name=name, value=start_plus(first, place)))
            if condition != TRUE:
                # registers would be as they were
                clears = self.clears or copy.target.buffer.space == "register"
                test = self._index(strict(condition))
                copy = replace(copy, condition=test, clears=clears)
            return walk.around((*places, copy))

        def into_box(walk: CopyLoop, width: int = 1) -> For:
            target = Element(buffer=tile.buffer, subscripts=tile.in_tile(walk.places))
            return around(walk, Copy(target=target, source=source, width=width))

        tests = () if where == TRUE else (self._index(strict(where)),)
        elements = (into_box(self._walk(tile)),)
        walk = self._wide_walk(tile) if wide else None
        if walk is None:
            return Way(elements=elements, conditions=tests)
        aligned = self._aligned.get(array.name)
        if aligned is None:
            name = self._names.fresh(f"wide_{array.name}")
            aligned = Aligned(name=name, buffer=array.buffer, width=width)
            self._aligned[array.name] = aligned
        begins = self._index(equals(value_of(tile.offsets[-1], known) % width, 0))
        vectors: Nodes
        if tile.transposed:
            line = Buffer(
                name=self._names.fresh(f"{tile.name}_line"),
                space="register",
                element_type=tile.element_type,
                layout=Extents((Constant(walk.count), Constant(width))),
            )
            turn, each = Name(walk.counter), Name(self._names.inner().fresh("q"))
            first, own = (
                Element(buffer=line, subscripts=(turn, one)) for one in (Constant(0), each)
            )
            *others, last = walk.places
            box = Element(buffer=tile.buffer, subscripts=tile.in_tile((*others, last + each)))
            store = counted(each.name, width, (Copy(target=box, source=own),))
            load = around(walk, Copy(target=first, source=source, width=width))
            vectors = (Declare(buffer=line), load, walk.around((store,)))
        else:
            vectors = (into_box(walk, width),)
        return Way(
            elements=elements,
            conditions=tests,
            wide=(Name(aligned.name), begins),
            vectors=vectors,
        )

    def _wide_walk(self, tile: SharedTile) -> CopyLoop | None:
        """Return how threads copy a whole box, several elements at a time; ``None`` if not."""
        width, threads, names = (
            vector(tile.stage.element_bytes),
            self._mapping.threads,
            self._names.inner(),
        )
        if tile.stage.width == width > 1:
            return copy_loop(tile.sizes, threads, self.thread, names, width)
        ahead = self._ahead and tile.element_type.is_floating
        if not (ahead and tile.stage.through_registers):
            return None
        sizes = (*tile.sizes[:-1], tile.sizes[-1] // width)
        piece = PIECE_BYTES // tile.stage.element_bytes // width
        found = transposed_copy_loop(sizes, tile.row_at, threads, self.thread, names, piece)
        *places, last = found.places
        return replace(found, places=(*places, width * last))

    @property
    def aligned(self) -> tuple[Aligned, ...]:
        """What wide copies have to know of arrays."""
        return tuple(self._aligned.values())

    def _walk(self, tile: SharedTile) -> CopyLoop:
        """Return how threads copy a box by elements."""
        names, threads = self._names.inner(), self._mapping.threads
        if tile.stage.in_pieces:
            piece = PIECE_BYTES // tile.stage.element_bytes
            return transposed_copy_loop(tile.sizes, tile.row_at, threads, self.thread, names, piece)
        return copy_loop(tile.sizes, threads, self.thread, names)

    def declaration(self) -> Let:
        """Return the number of a thread in its block, which copies use."""
        terms: list[IntExpr] = []
        stride = 1
        for axis, size in zip(AXES, self._mapping.block, strict=True):
            if size > 1:
                terms.append(stride * Name(CUDA.thread + axis))
                stride *= size
        value = Apply(Operator.ADD, tuple(terms)) if len(terms) > 1 else [*terms, Constant(0)][0]
        return Let(name=self.thread, value=value, narrow=True)


def _is_bounded(array: Array) -> bool:
    """Tell whether all extents of an array are known."""
    dims = range(array.n_dims)
    return all(array.extent.dim_has_upper_bound(isl.dim_type.set, at) for at in dims)
