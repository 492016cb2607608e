"""Tiles in shared memory, and how threads walk them to copy them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import TypeVar

import islpy as isl

from eatss.base.frozen import Names, Numbers, frozen
from eatss.lower.kernel.nodes import Buffer, Extents, For, Nodes
from eatss.lower.pieces import NameTable
from eatss.lower.storage import Candidate
from eatss.plan.stage import Stage, copied_in_rows, in_one_row
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import (
    big_value,
    coalesced,
    fixed_box,
    parameter_between,
    parameters_as_dims,
)
from eatss.program import (
    Constant,
    IntExpr,
    Name,
)
from eatss.program.expression import IntExprs


@frozen
class CopyLoop:
    """A loop over what a thread copies of a tile, ``width`` elements at a time.

    ``places`` are the indices of the first of them in the tile.
    """

    counter: str
    count: int
    places: IntExprs
    lower: IntExpr = Constant(0)
    step: int = 1
    unrolled: bool = True
    width: int = 1

    def around(self, body: Nodes) -> For:
        """Return the loop with a body."""
        return For(
            counter=self.counter,
            lower=self.lower,
            condition=Name(self.counter) < self.count,
            step=Constant(self.step),
            body=body,
            unroll="whole" if self.unrolled else None,
            narrow=True,
        )


def copy_loop(
    sizes: Sequence[int],
    threads: int,
    thread: str,
    names: NameTable,
    width: int = 1,
    record: int = 1,
) -> CopyLoop:
    """Return how a block copies a box, neighbouring threads what follows each other in a row.

    Where the threads fill rows or pieces of them, nothing is divided in the loop: a thread stays in
    its column of a piece.

    Args:
        sizes: of the box, in elements.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        width: elements of a row that a thread copies at a time; ``places`` are those of the first.
            Of more than one threads have to fill rows [:func:`eatss.plan.stage.copied_in_rows`].
        record: elements of the last dimension that are one with that before it, or 1.
    """
    if record > 1 and width > 1:
        found = copy_loop(sizes[:-1], threads, thread, names, width // record)
        return replace(found, places=(*found.places, Constant(0)), width=width)
    if record > 1:
        found = copy_loop(in_one_row(sizes, record), threads, thread, names)
        *others, at = found.places
        return replace(found, places=(*others, at // record, at % record))
    if copied_in_rows(sizes, threads, width):
        row_at, column_at = (k for k, size in enumerate(sizes) if size > 1)
        lanes = gcd(sizes[column_at] // width, threads)
        return by_rows(sizes, (row_at, column_at), lanes, threads, thread, names, width)
    assert width == 1, "vectors are planned where threads fill rows"
    element = names.fresh("e")
    return CopyLoop(
        counter=element,
        lower=Name(thread),
        count=prod(sizes),
        step=threads,
        unrolled=False,
        places=unravelled(Name(element), sizes),
    )


def _remainder(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the remainder of a number below ``count``."""
    if of == 1:
        return Constant(0)
    return number if count <= of else number % of


def _quotient(number: IntExpr, of: int, count: int) -> IntExpr:
    """Return the quotient of a number below ``count``."""
    if count <= of:
        return Constant(0)
    return number if of == 1 else number // of


def by_rows(
    sizes: Sequence[int],
    along: tuple[int, int],
    lanes: int,
    threads: int,
    thread: str,
    names: NameTable,
    width: int,
) -> CopyLoop:
    """Return how ``lanes`` neighbours copy a piece of a row, those behind them one of the next.

    Of a tile whose rows lie along another dimension than the array's they have to fill such pieces
    [:func:`eatss.plan.stage.copied_in_pieces`].

    Args:
        sizes: of the tile, in elements, by dimension of the array.
        along: the dimensions of rows of the tile, and of the array.
        lanes: threads that copy a piece, an element or a vector each.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        width: elements of a vector.
    """
    row_at, column_at = along
    rows, vectors = sizes[row_at], sizes[column_at] // width
    lines, pieces = threads // lanes, vectors // lanes
    number, each, count = Name(thread), rows // lines, rows * pieces // lines
    counter = names.fresh("e")
    row: IntExpr = number // lanes
    column: IntExpr = number % lanes
    if rows % lines == 0:
        row = row + lines * _remainder(Name(counter), each, count)
        column = column + lanes * _quotient(Name(counter), each, count)
    else:  # several pieces of all rows at a time
        which = lines // rows * _quotient(Name(counter), 1, count)
        row, column = row % rows, column + lanes * (number // (lanes * rows) + which)
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[row_at], places[column_at] = row, column if width == 1 else width * column
    return CopyLoop(counter=counter, count=count, places=tuple(places), width=width)


def unravelled(element: IntExpr, sizes: Sequence[int]) -> IntExprs:
    """Return the indices of the element with a number, in row-major order."""
    places: list[IntExpr] = []
    for position in range(len(sizes)):
        inner = prod(sizes[position + 1 :])
        if sizes[position] == 1:
            places.append(Constant(0))
            continue
        place = element
        if inner > 1:
            place = element // inner
        if prod(sizes[position:]) != prod(sizes):
            place = place % sizes[position]
        places.append(place)
    return tuple(places)


Part = TypeVar("Part")
"""What belongs to a dimension: its extent, a subscript."""


@frozen
class SharedTile:
    """A tile of an array in shared memory.

    ``offsets`` are functions of the parameters, one a dimension; ``stage`` is its copy as planned.
    ``depth`` is how many serial loops stand around the copy. ``footprint`` are the elements that
    are read, over the parameters of that level. A private one has those that are ``loaded`` first
    and those that are ``stored`` again; pieces of it, which are copied by themselves, lie in the
    ``whole`` one, and go ``back`` to the array if they are to.
    """

    name: str
    candidate: Candidate
    element_type: ElementType
    offsets: tuple[isl.PwAff, ...]
    stage: Stage
    depth: int
    footprint: isl.Set
    loaded: isl.Set | None = None
    stored: isl.Set | None = None
    whole: SharedTile | None = None
    back: bool = False

    @property
    def sizes(self) -> Numbers:
        """The extents in elements."""
        return tuple(self.stage.extents)

    @property
    def extents(self) -> Numbers:
        """The extents of the box in elements, in its order."""
        return self._in_box(self.sizes)

    @property
    def row_at(self) -> int:
        """The dimension along which rows lie, mostly the last."""
        return self.stage.rows.index(True)

    @property
    def buffer(self) -> Buffer:
        """The array in shared memory."""
        if self.whole is not None:
            return self.whole.buffer
        return Buffer(
            name=self.name,
            space="shared",
            element_type=self.element_type,
            layout=Extents(
                tuple(map(Constant, self.extents)),
                padding=self._in_box(self.stage.declared)[-1] - self.extents[-1],
            ),
            of_phases=self.stage.private,
        )

    @property
    def transposed(self) -> bool:
        """Whether rows lie along another dimension than those of the array."""
        return bool(self.stage.transposed)

    def in_tile(self, of_array: IntExprs) -> IntExprs:
        """Return the subscripts in the box of an element, given those in the tile by dimension."""
        found = self._in_rows(of_array)
        if self.stage.record == 1:
            return found
        *outer, at, part = found
        return (*outer, self.stage.record * at + part)

    def _in_rows(self, of_array: Sequence[Part]) -> tuple[Part, ...]:
        """Return what belongs to the dimensions of the array, that of rows last."""
        others = (*of_array[: self.row_at], *of_array[self.row_at + 1 :])
        return (*others, of_array[self.row_at])

    def piece(self, elements: isl.Set | None) -> SharedTile | None:
        """Return the piece of the tile that holds some elements, ``None`` where there are none."""
        if elements is None or elements.is_empty():
            return None
        whole = tuple(zip(self.offsets, self.sizes, strict=True))
        box = fixed_box(elements) or whole
        sizes = tuple(size for _, size in box)
        return replace(
            self,
            offsets=tuple(offset for offset, _ in box),
            stage=replace(self.stage, extents=sizes, declared=sizes),
            footprint=elements,
            whole=self,
        )

    def loads(self, at: Names) -> Iterator[SharedTile]:
        """Yield what is copied into a private tile: what is stored again in one piece.

        Args:
            at: names of the places in the array.
        """
        left, own = self.loaded, self.piece(self.stored)
        if left is not None and own is not None:
            box = parameters_as_dims(own.within(at), at, left.get_tuple_name())
            again = coalesced(left.intersect(box))
            if not again.is_empty():
                yield replace(own, footprint=again)
            left = coalesced(left.subtract(box))
        if (beside := self.piece(left)) is not None:
            yield beside

    def _in_box(self, sizes: Sequence[int]) -> Numbers:
        return tuple(in_one_row(self._in_rows(sizes), self.stage.record))

    def within(self, at: Sequence[str]) -> isl.Set:
        """Return the places in the array that the tile has, a parameter for each dimension."""
        found = isl.Set.universe(self.footprint.params().get_space())
        for name, offset, size in zip(at, self.offsets, self.sizes, strict=True):
            last = offset.add_constant_val(big_value(offset.get_ctx(), size - 1))
            found = found.intersect(parameter_between(name, offset, last))
        return found
