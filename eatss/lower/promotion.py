"""Tiles in shared memory, and how threads walk them to copy them.

Where k-tiles are whole, the edges of an array leave the same of a tile in all of them: the tile of
``C[i][j] += A[i][k] * B[k][j]`` at the last rows of ``A`` reads fewer rows than it has, in all
iterations alike. So where an iteration has all its ``k``, an element is read where ``i < N``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeVar

import islpy as isl

from eatss.base.frozen import frozen
from eatss.lower.arrays import condition_of
from eatss.lower.kernel.nodes import Buffer, Extents, For, Nodes
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import NameTable
from eatss.lower.storage import Candidate
from eatss.plan.stage import Stage, copied_in_rows
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import (
    coalesced,
    involved_parameters,
    parameter_at_least,
    parameter_at_most,
    without_parameters,
)
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
)


@frozen
class CopyLoop:
    """A loop over a thread's elements of a box; ``places`` are an element's indices in the box."""

    counter: str
    count: int
    places: tuple[IntExpr, ...]
    lower: IntExpr = Constant(0)
    step: int = 1
    unrolled: bool = True

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
    sizes: Sequence[int], threads: int, thread: str, names: NameTable, width: int = 1
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
    """
    if copied_in_rows(sizes, threads, width):
        row_at, column_at = (k for k, size in enumerate(sizes) if size > 1)
        lanes = gcd(sizes[column_at] // width, threads)
        return _by_rows(sizes, (row_at, column_at), lanes, threads, thread, names, width)
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


def transposed_copy_loop(
    sizes: Sequence[int],
    row_at: int,
    threads: int,
    thread: str,
    names: NameTable,
    piece: int,
    width: int = 1,
) -> CopyLoop:
    """Return how a block copies a tile whose rows lie along another dimension than the array's.

    Neighbouring threads copy a piece of a row of the array, those behind them one of the next row.
    They have to fill such pieces [:func:`eatss.plan.stage.copied_in_pieces`].

    Args:
        sizes: of the tile, in elements, by dimension of the array.
        row_at: the dimension along which rows of the tile lie.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        piece: its elements, or its vectors.
        width: elements of a vector.
    """
    return _by_rows(sizes, (row_at, len(sizes) - 1), piece, threads, thread, names, width)


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


def _by_rows(
    sizes: Sequence[int],
    along: tuple[int, int],
    lanes: int,
    threads: int,
    thread: str,
    names: NameTable,
    width: int,
) -> CopyLoop:
    """Return how ``lanes`` neighbours copy a piece of a row, those behind them one of the next.

    Rows and columns are ``along`` two dimensions.
    """
    row_at, column_at = along
    rows, vectors = sizes[row_at], sizes[column_at] // width
    lines, pieces = threads // lanes, vectors // lanes
    number, each, count = Name(thread), rows // lines, rows * pieces // lines
    counter = names.fresh("e")
    row: IntExpr = number // lanes
    column: IntExpr = number % lanes
    if rows % lines == 0:
        row = _plus(row, lines, _remainder(Name(counter), each, count))
        column = _plus(column, lanes, _quotient(Name(counter), each, count))
    else:  # several pieces of all rows at a time
        which = lines // rows * _quotient(Name(counter), 1, count)
        row, column = row % rows, column + lanes * (number // (lanes * rows) + which)
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[row_at], places[column_at] = row, column if width == 1 else width * column
    return CopyLoop(counter=counter, count=count, places=tuple(places))


def _plus(first: IntExpr, step: int, times: IntExpr) -> IntExpr:
    if times == Constant(0):
        return first
    return Apply(Operator.ADD, (first, Apply(Operator.MUL, (Constant(step), times))))


def unravelled(element: IntExpr, sizes: Sequence[int]) -> tuple[IntExpr, ...]:
    """Return the indices of the element with a number, in row-major order."""
    places: list[IntExpr] = []
    for position in range(len(sizes)):
        inner = prod(sizes[position + 1 :])
        if sizes[position] == 1:
            places.append(Constant(0))
            continue
        place: IntExpr = element
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
    are read, over the parameters of that level.
    """

    name: str
    candidate: Candidate
    element_type: ElementType
    offsets: tuple[isl.PwAff, ...]
    stage: Stage
    depth: int
    footprint: isl.Set

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents in elements."""
        return tuple(self.stage.extents)

    @property
    def row_at(self) -> int:
        """The dimension along which rows lie, mostly the last."""
        return self.stage.rows.index(True)

    @property
    def buffer(self) -> Buffer:
        """The array in shared memory."""
        return Buffer(
            name=self.name,
            space="shared",
            element_type=self.element_type,
            layout=Extents(
                tuple(map(Constant, self.in_tile(self.sizes))),
                padding=self.stage.declared[self.row_at] - self.sizes[self.row_at],
            ),
        )

    @property
    def transposed(self) -> bool:
        """Whether rows lie along another dimension than those of the array."""
        return bool(self.stage.transposed)

    def in_tile(self, of_array: Sequence[Part]) -> tuple[Part, ...]:
        """Return what belongs to the dimensions of the array in the order of those of the box."""
        others = (*of_array[: self.row_at], *of_array[self.row_at + 1 :])
        return (*others, of_array[self.row_at])

    def within(self, at: Sequence[str]) -> isl.Set:
        """Return the places in the array that the tile has, a parameter for each dimension."""
        found = isl.Set.universe(self.footprint.params().get_space())
        for name, offset, size in zip(at, self.offsets, self.sizes, strict=True):
            last = offset.add_constant_val(isl.Val.int_from_si(offset.get_ctx(), size - 1))
            found = found.intersect(parameter_at_least(name, offset))
            found = found.intersect(parameter_at_most(name, last))
        return found


@dataclass(frozen=True, slots=True)
class WholeSteps:
    """``where`` steps of serial loops are whole, elements of a box are read under a ``condition``.

    The ``footprint`` is what is read, ``box`` what there is of it; places are parameters.
    """

    where: IntExpr
    condition: IntExpr
    footprint: isl.Set
    box: isl.Set


def whole_steps(
    tile: SharedTile,
    at: Sequence[str],
    footprint: isl.Set,
    box: isl.Set,
    known: isl.Set,
    mapping: Mapping,
) -> WholeSteps | None:
    """Return where steps of serial loops are whole, and what of a box is read there.

    That is the same for all steps; tiles begin at multiples of their sizes.

    Args:
        tile: the box.
        at: the names of an element's place, a parameter for each dimension.
        footprint: the elements that are read.
        box: those that there are.
        known: what is known of sizes and origins.
        mapping: the loops of the block.

    Returns:
        ``None`` where no serial loop moves the box, or where no steps of one are whole.
    """
    origins = {one.origin for one in mapping.serial}
    moving = [
        name
        for name, offset in zip(at, tile.offsets, strict=True)
        if origins & {*involved_parameters(offset)}
    ]
    if not moving or mapping.split is not None:
        return None
    tiles = {one.origin: one.tile for one in mapping.spread}
    tiles |= {one.origin: one.tile for one in mapping.serial}
    for origin, size in tiles.items():
        begins = _set(known, f"{origin} mod {size} = 0", origin)
        known, box = known.intersect(begins), box.intersect(begins)
    edge = without_parameters(footprint, moving)
    missing = without_parameters(box.intersect(edge).subtract(footprint), at)
    where = coalesced(known.subtract(missing))
    if where.is_empty():
        return None
    condition = condition_of(edge, without_parameters(box, moving).intersect(where))
    return WholeSteps(condition_of(where, known), condition, footprint, box.intersect(where))


def in_vectors(
    steps: WholeSteps,
    name: str,
    begin: isl.PwAff,
    shape: Sequence[IntExpr],
    width: int,
    names: NameTable,
) -> bool:
    """Tell whether vectors that begin where one may are read as a whole or not at all.

    Args:
        steps: what is read.
        name: the place in a row of the array.
        begin: where the box begins in it.
        shape: the extents of the array. That rows are whole vectors is tested with its address.
        width: elements of a vector.
        names: names that are free.
    """
    end = names.inner().fresh("end")
    begins = steps.box.intersect(_set(steps.box, f"{name} mod {width} = 0", name))
    offset = begin.mod_val(isl.Val.int_from_si(begin.get_ctx(), width))
    begins = begins.intersect(offset.zero_set())  # tested in front of the copy
    row = shape[-1]
    if len(shape) > 1 and isinstance(row, Name):
        begins = begins.intersect(_set(begins, f"{row.name} mod {width} = 0", row.name))
    position = steps.footprint.find_dim_by_name(isl.dim_type.param, name)
    other = steps.footprint.set_dim_name(isl.dim_type.param, position, end)
    first = begins.intersect(steps.footprint)
    for behind in range(1, width):
        there = _set(begins, f"{end} = {name} + {behind}", name, end)
        later = without_parameters(other.intersect(there), (end,))
        if not begins.intersect(later).is_equal(first):
            return False
    return True


def _set(beside: isl.Set, text: str, *names: str) -> isl.Set:
    """Return the values of parameters of which something holds."""
    return isl.Set.read_from_str(beside.get_ctx(), f"[{', '.join(names)}] -> {{ : {text} }}")
