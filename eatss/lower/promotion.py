"""Boxes in shared memory: where in the nest they are copied, and how threads walk them.

Where steps of serial loops are whole, the edges of an array leave the same of a box in all of them:
the tile of ``C[i][j] += A[i][k] * B[k][j]`` at the last rows of ``A`` reads fewer of them than its
box has, in all of its steps alike. So where a step has all its ``k``, an element is read where
``i < N``, which no step changes.
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
from eatss.lower.storage import Candidate, Place
from eatss.plan.stage import Stage, StagedReads, Tiling, copied_in_rows, padded_rows, row_dimensions
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import coalesced, fixed_box, involved_parameters, without_parameters
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
        return _by_rows(sizes, threads, thread, names, width)
    assert width == 1, "vectors are planned where threads fill rows"
    return _by_number(sizes, threads, thread, names)


def transposed_copy_loop(
    sizes: Sequence[int],
    row_at: int,
    threads: int,
    thread: str,
    names: NameTable,
    piece: int,
) -> CopyLoop:
    """Return how a block copies a box whose rows lie along another dimension than the array's.

    Neighbouring threads copy a piece of a row of the array, those behind them one of the next row.
    They have to fill such pieces [:func:`eatss.plan.stage.copied_in_pieces`].

    Args:
        sizes: of the box, in elements, by dimension of the array.
        row_at: the dimension along which rows of the box lie.
        threads: of the block.
        thread: the constant that numbers the threads of a block.
        names: names that are free here.
        piece: its elements.
    """
    rows, columns = sizes[row_at], sizes[-1]
    lines, pieces = threads // piece, columns // piece
    number = Name(thread)
    inside = number % piece
    row: IntExpr = number // piece
    turn = names.fresh("e")
    if rows % lines == 0:
        each = rows // lines
        count = each * pieces
        row = row + lines * _remainder(Name(turn), each, count)
        which = _quotient(Name(turn), each, count)
    else:
        count = pieces * rows // lines
        row = row % rows
        first = number // (piece * rows)
        which = first + lines // rows * _quotient(Name(turn), 1, count)
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[row_at] = row
    places[-1] = inside + piece * which
    return CopyLoop(counter=turn, count=count, places=tuple(places))


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
    sizes: Sequence[int], threads: int, thread: str, names: NameTable, width: int
) -> CopyLoop:
    row_at, column_at = (k for k, size in enumerate(sizes) if size > 1)
    rows, vectors = sizes[row_at], sizes[column_at] // width
    lanes = gcd(vectors, threads)
    lines = threads // lanes
    turn = names.fresh("e")
    each, pieces = rows // lines, vectors // lanes
    count = each * pieces
    number = Name(thread)
    column: IntExpr = number % lanes
    column = _plus(column, lanes, _quotient(Name(turn), each, count))
    places: list[IntExpr] = [Constant(0)] * len(sizes)
    places[column_at] = column if width == 1 else width * column
    first: IntExpr = number // lanes
    places[row_at] = _plus(first, lines, _remainder(Name(turn), each, count))
    return CopyLoop(counter=turn, count=count, places=tuple(places))


def _plus(first: IntExpr, step: int, times: IntExpr) -> IntExpr:
    if times == Constant(0):
        return first
    return Apply(Operator.ADD, (first, Apply(Operator.MUL, (Constant(step), times))))


def _by_number(sizes: Sequence[int], threads: int, thread: str, names: NameTable) -> CopyLoop:
    element = names.fresh("e")
    return CopyLoop(
        counter=element,
        lower=Name(thread),
        count=prod(sizes),
        step=threads,
        unrolled=False,
        places=unravelled(Name(element), sizes),
    )


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
    """A box of an array in shared memory.

    ``offsets`` are functions of the parameters, one a dimension; ``stage`` is its copy as planned.
    ``depth`` is how many serial loops stand around the copy. ``footprint`` are the elements that
    are read, over the parameters of that level. ``place`` is one that reads it, in the innermost
    serial loop ``sum_loop``.
    """

    name: str
    candidate: Candidate
    element_type: ElementType
    offsets: tuple[isl.PwAff, ...]
    stage: Stage
    depth: int
    footprint: isl.Set
    place: Place
    sum_loop: str

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


def shared_tile(
    name: str,
    candidate: Candidate,
    element_type: ElementType,
    footprints: dict[int, isl.Set],
    most_bytes: int,
    tiling: Tiling,
    reads: StagedReads,
    place: Place,
    sum_loop: str,
    together: int = 1,
) -> SharedTile | str:
    """Place a candidate outside the loops that do not change it, or further in to make it fit.

    Args:
        name: the C name.
        candidate: what is to be staged.
        element_type: of its array.
        footprints: the elements read, by the number of serial loops around the copy.
        most_bytes: what is left of a block's shared memory.
        tiling: the loops of the kernel.
        reads: what is known of the candidate.
        place: one that reads it.
        sum_loop: the innermost serial loop around that.
        together: rows are to have a multiple of so many elements.

    Returns:
        The tile, or why there is none.
    """
    rows = row_dimensions(tiling, reads)
    row_at = rows.index(True)
    reason = "no shared-memory tile of constant size holds what is read"
    for depth, footprint in footprints.items():
        box = fixed_box(coalesced(footprint))
        if box is None:
            continue
        sizes = tuple(size for _, size in box)
        rest = -sizes[row_at] % together
        wanted = padded_rows(tiling, reads, sizes)[row_at] - sizes[row_at]
        for padding in (wanted if together == 1 else rest + together, rest):
            declared = [size + padding * on for size, on in zip(sizes, rows, strict=True)]
            stage = Stage(
                extents=sizes,
                declared=declared,
                rows=rows,
                element_bytes=reads.element_bytes,
                threads=tiling.threads,
                aligned=reads.aligned,
            )
            if stage.shared_bytes <= most_bytes:
                return SharedTile(
                    name=name,
                    candidate=candidate,
                    element_type=element_type,
                    offsets=tuple(offset for offset, _ in box),
                    stage=stage,
                    depth=depth,
                    footprint=coalesced(footprint),
                    place=place,
                    sum_loop=sum_loop,
                )
        reason = (
            f"its tile of {' x '.join(map(str, sizes))} needs {stage.shared_bytes} bytes, "
            f"{most_bytes} are left"
        )
    return reason


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
