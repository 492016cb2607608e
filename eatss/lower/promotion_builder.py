"""Cooperative copies into shared memory.

Where k-tiles are whole, the edges of an array leave the same of a tile in all of them: the tile of
``C[i][j] += A[i][k] * B[k][j]`` at the last rows of ``A`` reads fewer rows than it has, in all
iterations alike. So where an iteration has all its ``k``, an element is read where ``i < N``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import islpy as isl
import numpy as np

from eatss.base.frozen import Names, their_names
from eatss.lower.arrays import FALSE, TRUE, condition_of, union_of, value_of
from eatss.lower.kernel.copies import planned_kind
from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Commit,
    Copy,
    Declare,
    For,
    Let,
    Node,
    Nodes,
    Scope,
    Staging,
    Wait,
    Way,
    counted,
)
from eatss.lower.kernel.uses import sent
from eatss.lower.mapping import SerialTile
from eatss.lower.pieces import NameTable
from eatss.lower.promotion import (
    CopyLoop,
    SharedTile,
    by_rows,
    copy_loop,
)
from eatss.lower.references import KernelInput, References
from eatss.lower.storage import Candidate
from eatss.lower.thread_ast import tile_set
from eatss.plan.numbers import nowhere
from eatss.plan.stage import (
    PIECE_BYTES,
    Stage,
    StagedReads,
    Tiling,
    first_with_room,
    padded_rows,
    row_dimensions,
    vector,
)
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    PARAM,
    SET,
    big_value,
    coalesced,
    dims_as_parameters,
    fixed_box,
    involved_parameters,
    parameters_set,
    points_at_a_sample,
    without_parameters,
)
from eatss.polyhedral.scop import Place
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    equals,
    names_in,
)
from eatss.program.linear import start_plus, strict

_MOSTLY_READ = 0.5
"""Share of a tile above which loading all of it takes less than a test of each element."""


class PromotionBuilder:
    """Places reads in shared memory and builds the copies.

    ``tiles`` are what the kernel has in shared memory so far, ``notes`` why something is not;
    ``groups`` are the names of those that some statements use while no others are in use.
    ``thread`` is the number of a thread in its block. What of a tile is not read is zero if it
    ``clears`` them. Threads copy several floating-point elements at a time where rows allow it and
    it is so planned. Where loops may copy ``ahead``, whole k-tiles need no more than a test of the
    edges of a block's tile. Tiles that are not read as a whole, as that of a star, are loaded as a
    whole where most of them is read, the array has all of it, and nothing in the kernel writes it.
    """

    def __init__(
        self,
        own: KernelInput,
        references: References,
        staged: Mapping[Candidate, StagedReads],
        tiling: Tiling | None,
        *,
        kernel: str,
        clears: bool,
    ) -> None:
        self._own, self._references, self._staged, self._tiling = own, references, staged, tiling
        self._piece, self._mapping, self._names = own.piece, own.mapping, own.names
        self._index, self._arrays = own.index, own.context.arrays
        self.clears = clears
        self._kernel = kernel
        self._ahead = own.context.copies_ahead
        self._aligned: dict[tuple[str, int], Aligned] = {}
        self._members = NameTable()
        self._mostly_read: set[str] = set()
        self.thread = own.names.fresh("thread")
        self._isl = own.context.scop.isl_context
        self.tiles: list[SharedTile] = []
        self.groups: list[Names] = []
        self.notes: list[str] = []

    def stage(
        self, statements: Sequence[str], serial: tuple[SerialTile, ...]
    ) -> tuple[SharedTile, ...]:
        """Return the shared tiles of what some statements read inside ``serial`` loops.

        Others that are staged before or after them may lie in the same memory.
        """
        tiles: list[SharedTile] = []
        for candidate in self._own.unit.storage.candidates:
            if candidate not in self._staged:
                continue
            places = sorted(place for place in candidate.places if place[0] in statements)
            if not places:
                continue
            used = sum(tile.stage.shared_bytes for tile in tiles)
            left = self._own.context.shared_limit_bytes - used
            tile = self._placed(candidate, places, serial, left)
            if isinstance(tile, str):
                self.notes.append(f"{candidate.text} stays in L1: {tile}")
                continue
            tiles.append(tile)
            self.tiles.append(tile)
            if self._is_mostly_read(tile, places, serial[: tile.depth]):
                self._mostly_read.add(tile.name)
            self._references.share(tile, places)
        if tiles:
            self.groups.append(their_names(tiles))
        return tuple(tiles)

    def _placed(
        self,
        candidate: Candidate,
        places: Sequence[Place],
        serial: tuple[SerialTile, ...],
        most_bytes: int,
    ) -> SharedTile | str:
        """Place a candidate outside the loops that do not change it, or further in to make it fit.

        Returns:
            The tile, or why there is none.
        """
        array = self._arrays[candidate.array]
        name, width = self._members.fresh(array.name), vector(array.array.element_type.size_bytes)
        tiling, reads = self._tiling, self._staged[candidate]
        assert tiling is not None, "what is staged is planned"
        rows = tuple(not nowhere(one) for one in row_dimensions(tiling, reads))
        row_at = rows.index(True)
        inside = [at for at, loop in enumerate(serial) if loop.source_name in reads.moving]
        reason = "no shared-memory tile of constant size holds what is read"
        for depth in range(inside[-1] + 1 if inside else 0, len(serial) + 1):
            around, private = serial[:depth], candidate.private
            footprint = coalesced(self._footprint(places, around))
            box = fixed_box(footprint)
            if box is None:
                continue
            sizes = tuple(size for _, size in box)
            padded_at = row_at if reads.record == 1 else row_at - 1
            wanted = np.ravel(padded_rows(tiling, reads, sizes)[padded_at])
            paddings = [int(wanted[0]) - sizes[padded_at], 0]
            if self._mapping.warps:  # rows are whole vectors
                rest = -sizes[row_at] % width
                paddings = [rest + width, rest]
            plain = Stage(
                extents=sizes,
                declared=[*sizes],
                rows=rows,
                element_bytes=array.array.element_type.size_bytes,
                threads=self._mapping.threads,
                copied=1 if private else array.copied_together(reads.record),
                private=private,
                filled=candidate.filled,
                record=reads.record,
                apart=candidate.apart,
            )
            ways = []
            for padding in paddings:
                declared = [size + padding * (at == padded_at) for at, size in enumerate(sizes)]
                ways.append(replace(plain, declared=declared))
            if (stage := first_with_room(ways, most_bytes)) is not None:
                return SharedTile(
                    name=name,
                    candidate=candidate,
                    element_type=array.array.element_type,
                    offsets=tuple(offset for offset, _ in box),
                    stage=stage,
                    depth=depth,
                    footprint=footprint,
                    loaded=self._touched(places, around, on=private and candidate.filled),
                    stored=self._touched(places, around, on=private, writes=True),
                )
            reason = (
                f"its tile of {' x '.join(map(str, sizes))} needs {ways[-1].shared_bytes} bytes, "
                f"{most_bytes} are left"
            )
        return reason

    def _touched(
        self,
        places: Sequence[Place],
        serial: tuple[SerialTile, ...],
        *,
        on: bool,
        writes: bool = False,
    ) -> isl.Set | None:
        """Return the elements that reads touch in a tile, or writes; ``None`` unless ``on``."""
        own = [place for place in places if self._piece.access(place).is_write == writes]
        return coalesced(self._footprint(own, serial)) if own and on else None

    def _footprint(self, places: Sequence[Place], serial: tuple[SerialTile, ...]) -> isl.Set:
        """Return the elements the accesses touch in a tile of the loops given."""
        tile = tile_set(self._isl, (*self._mapping.spread, *serial))
        images = []
        for place in places:
            domain = self._piece.domain_of(place[0]).intersect_params(tile)
            images.append(self._piece.unbound(domain).apply(self._piece.access(place).relation))
        return union_of(images)

    def _is_mostly_read(
        self, tile: SharedTile, places: Sequence[Place], serial: tuple[SerialTile, ...]
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
            images.append(self._piece.unbound(ties).apply(everywhere))
        read = points_at_a_sample(union_of(images))
        return read is not None and read > _MOSTLY_READ * prod(tile.sizes)

    @property
    def has_private(self) -> bool:
        """Whether threads store something of the tiles for each other."""
        return any(candidate.private for candidate in self._staged)

    def computed(self, nodes: Nodes, part: int) -> Nodes:
        """Return what threads compute in a part, by its number: a phase where others copy it."""
        return (self._phase(nodes, f"compute {part}"),) if nodes and self.has_private else nodes

    def _phase(self, nodes: Nodes, what: str) -> Scope:
        return Scope(body=nodes, phase=f"{self._kernel}: {what}")

    def copies(
        self, tiles: Sequence[SharedTile], known: isl.Set, *, ahead: bool
    ) -> tuple[Nodes, Nodes]:
        """Return what fills tiles, and what stores private ones behind what computes them.

        In phases of their own: threads copy what others compute.
        """
        plain = [tile for tile in tiles if not tile.stage.private]
        fills: list[Node] = [replace(self.copy(tile, known), ahead=ahead) for tile in plain]
        stores: list[Node] = []
        for tile in tiles:
            if tile.stage.private:
                at = tuple(self._names.inner().fresh(f"x{k}") for k in range(len(tile.sizes)))
                runs_ahead = ahead and tile.stage.runs_ahead
                copies = (self.copy(one, known) for one in tile.loads(at))
                loads = tuple(replace(one, ahead=runs_ahead) for one in copies)
                fills += [self._phase(loads, f"load {tile.name}")] if loads else []
                own = tile.piece(tile.stored)
                stored = () if own is None else (self.copy(replace(own, back=True), known),)
                stores += [self._phase(stored, f"store {tile.name}")] if stored else []
        if self._own.context.copies_together and any(isinstance(one, Scope) for one in fills):
            return (*sent(fills), Commit(), Wait(pending=0)), tuple(stores)
        return tuple(fills), tuple(stores)

    def copy(self, tile: SharedTile, known: isl.Set) -> Staging:
        """Return the cooperative copy of a tile, in several ways where part of it is not read."""
        at = tuple(self._names.fresh(f"x{k}") for k in range(len(tile.sizes)))
        footprint = dims_as_parameters(tile.footprint, at)
        box = known.intersect(tile.within(at))

        def full_of(there: isl.Set) -> isl.Set:
            return coalesced(known.subtract(without_parameters(box.subtract(there), at)))

        full = full_of(footprint)
        if full.is_empty() and tile.name in self._mostly_read:
            extent = self._arrays[tile.candidate.array].array.extent
            footprint = box.intersect(dims_as_parameters(extent, at))
            full = full_of(footprint)
        condition = condition_of(full, known)
        if condition == TRUE:
            return Staging(ways=(self._way(tile, at, known, wide=True),))
        edge = self._way(tile, at, known, condition_of(footprint, box))
        if condition == FALSE:
            return Staging(ways=(edge,))
        ways = [self._way(tile, at, known, where=condition, wide=True)]
        runs_ahead = self._ahead and not tile.stage.private
        steps = self._whole_steps(tile, at, footprint, box, known) if runs_ahead else None
        if steps is not None:
            ways.append(replace(steps, steps=True))
        return Staging(ways=(*ways, edge))

    def _whole_steps(
        self,
        tile: SharedTile,
        at: Names,
        footprint: isl.Set,
        box: isl.Set,
        known: isl.Set,
    ) -> Way | None:
        """Return the copy where k-tiles are whole, of what is read there: the same for all of them.

        Args:
            tile: the tile.
            at: the names of an element's place, a parameter for each dimension.
            footprint: the elements that are read.
            box: those that there are.
            known: what is known of sizes and origins; tiles begin at multiples of their sizes.

        Returns:
            ``None`` where no serial loop moves the tile, where no k-tiles are whole, or where an
            edge cuts vectors.
        """
        outer, serial = known, {one.origin: one.tile for one in self._mapping.serial}
        moving = [
            name
            for name, offset in zip(at, tile.offsets, strict=True)
            if not serial.keys().isdisjoint(involved_parameters(offset))
        ]
        if not moving or self._mapping.split is not None:
            return None
        spread = {one.origin: one.tile for one in self._mapping.spread}
        for origin, size in (spread | serial).items():
            begins = parameters_set(self._isl, (origin,), f"{origin} mod {size} = 0")
            known, box = known.intersect(begins), box.intersect(begins)
        edge = without_parameters(footprint, moving)
        missing = without_parameters(box.intersect(edge).subtract(footprint), at)
        where = coalesced(known.subtract(missing))
        if where.is_empty():
            return None
        condition = condition_of(edge, without_parameters(box, moving).intersect(where))
        walk, record = self._wide_walk(tile), tile.stage.record
        if (
            walk is not None
            and at[-1 if record == 1 else -2] in names_in(condition)
            and (
                record > 1
                or not self._in_vectors(tile, walk.width, at[-1], footprint, box.intersect(where))
            )
        ):
            return None
        return self._way(tile, at, outer, condition, where=condition_of(where, known), wide=True)

    def _in_vectors(
        self, tile: SharedTile, width: int, row: str, footprint: isl.Set, box: isl.Set
    ) -> bool:
        """Tell whether vectors that begin where one may are read as a whole or not at all.

        Args:
            tile: what is copied. That its rows begin at vectors is tested with its address.
            width: elements of a vector.
            row: the name of the place in a row of the array.
            footprint: the elements that are read.
            box: those that there are.
        """
        end = self._names.inner().fresh("end")
        begins = box.intersect(parameters_set(self._isl, (row,), f"{row} mod {width} = 0"))
        offset = tile.offsets[-1].mod_val(big_value(self._isl, width))
        begins = begins.intersect(offset.zero_set())  # tested in front of the copy
        *outer, extent = self._arrays[tile.candidate.array].shape
        if outer and isinstance(extent, Name):
            whole = f"{extent.name} mod {width} = 0"
            begins = begins.intersect(parameters_set(self._isl, (extent.name,), whole))
        position = footprint.find_dim_by_name(PARAM, row)
        other = footprint.set_dim_name(PARAM, position, end)
        first = begins.intersect(footprint)
        for behind in range(1, width):
            there = parameters_set(self._isl, (row, end), f"{end} = {row} + {behind}")
            later = without_parameters(other.intersect(there), (end,))
            if not begins.intersect(later).is_equal(first):
                return False
        return True

    def _way(
        self,
        tile: SharedTile,
        at: Names,
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
        array = self._arrays[tile.candidate.array]
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
                clears = not tile.back and (self.clears or copy.target.buffer.space == "register")
                test = self._index(strict(condition))
                copy = replace(copy, condition=test, clears=clears)
            return walk.around((*places, copy))

        def into_box(walk: CopyLoop) -> For:
            places = walk.places
            if tile.whole is not None:
                first = zip(tile.offsets, tile.whole.offsets, strict=True)
                begins = (value_of(own.sub(of_all), known) for own, of_all in first)
                places = tuple(start_plus(one, p) for one, p in zip(begins, places, strict=True))
            target = tile.buffer.at(*tile.in_tile(places))
            if tile.back:
                return around(walk, Copy(target=source, source=target))
            kind = planned_kind(tile.stage, walk.width)
            return around(walk, Copy(target=target, source=source, width=walk.width, kind=kind))

        tests = () if where == TRUE else (self._index(strict(where)),)
        elements = (into_box(self._walk(tile)),)
        walk = self._wide_walk(tile) if wide else None
        if walk is None:
            return Way(elements=elements, conditions=tests)
        width = walk.width
        aligned = self._aligned.get((array.name, width))
        if aligned is None:
            name = self._names.fresh(f"wide_{array.name}")
            aligned = Aligned(name=name, buffer=array.buffer, width=width)
            self._aligned[array.name, width] = aligned
        record = tile.stage.record
        begin = value_of(tile.offsets[-1 if record == 1 else -2], known)
        begins = self._index(equals(begin % (width // record), 0))
        vectors: Nodes
        if tile.transposed:
            name = self._names.fresh(f"{tile.name}_line")
            line = Buffer.of("register", name, tile.element_type, walk.count, width)
            turn, each = Name(walk.counter), Name(self._names.inner().fresh("q"))
            first, own = line.at(turn, Constant(0)), line.at(turn, each)
            *others, last = walk.places
            box = tile.buffer.at(*tile.in_tile((*others, last + each)))
            store = counted(each.name, width, (Copy(target=box, source=own),))
            load = around(walk, Copy(target=first, source=source, width=width))
            vectors = (Declare(buffer=line), load, walk.around((store,)))
        else:
            vectors = (into_box(walk),)
        return Way(
            elements=elements,
            conditions=tests,
            wide=(Name(aligned.name), begins),
            vectors=vectors,
        )

    def _wide_walk(self, tile: SharedTile) -> CopyLoop | None:
        """Return how threads copy a whole box, several elements at a time; ``None`` if not."""
        width, threads = int(tile.stage.width), self._mapping.threads
        if width > 1:
            record = tile.stage.record
            return copy_loop(tile.sizes, threads, self.thread, self._names.inner(), width, record)
        lines = self._ahead and tile.element_type.is_floating and tile.stage.through_registers
        return self._transposed_walk(tile, tile.stage.copied) if lines else None

    @property
    def aligned(self) -> tuple[Aligned, ...]:
        """What wide copies have to know of arrays."""
        return tuple(self._aligned.values())

    def _walk(self, tile: SharedTile) -> CopyLoop:
        """Return how threads copy a box by elements."""
        if tile.stage.in_pieces:
            return self._transposed_walk(tile, 1)
        names, record = self._names.inner(), tile.stage.record
        return copy_loop(tile.sizes, self._mapping.threads, self.thread, names, record=record)

    def _transposed_walk(self, tile: SharedTile, width: int) -> CopyLoop:
        threads, names = self._mapping.threads, self._names.inner()
        piece = PIECE_BYTES // tile.stage.element_bytes // width
        along = (tile.row_at, len(tile.sizes) - 1)
        return by_rows(tile.sizes, along, piece, threads, self.thread, names, width)

    def declaration(self) -> Let:
        """Return the number of a thread in its block, which copies use."""
        return Let(name=self.thread, value=self._mapping.thread, narrow=True)


def _is_bounded(array: Array) -> bool:
    """Tell whether all extents of an array are known."""
    return all(array.extent.dim_has_upper_bound(SET, at) for at in range(array.n_dims))
