"""Kernels, scheduled programs and the footprints of references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise, product
from math import gcd, prod
from typing import Any

import islpy as isl

from eatss.base.classes import Classes
from eatss.base.frozen import Names, Numbers, distinct, fixed, frozen
from eatss.base.polynomial import Polynomial
from eatss.polyhedral.scop import Place, Scop
from eatss.program.linear import Coefficients

# -- kernel ------------------------------------------------------------------------------------
# A GPU kernel: one outermost tilable band of the schedule tree.


@frozen
class Loop:
    """A loop of a kernel.

    ``parallel`` is isl's *coincident*: no dependence is carried, so iterations may
    run on different threads. ``trip_count`` is the exact number of values the loop
    takes over the whole kernel, ``None`` where it depends on a parameter.
    """

    name: str
    parallel: bool
    trip_count: int | None

    def __str__(self) -> str:
        kind = "parallel" if self.parallel else "serial"
        trips = "?" if self.trip_count is None else str(self.trip_count)
        return f"{self.name} ({kind}, {trips} trips)"


@frozen
class Subscript:
    """One subscript of a reference as an affine form of the kernel's loops.

    ``coefficients`` lists the kernel's loops with a non-zero coefficient, outermost
    first; ``symbols`` the counters of host loops and the parameters with a
    non-zero coefficient, by name in alphabetical order; ``offset`` is the constant.
    Where the subscript is no single affine form (integer division, a piecewise bound),
    ``function`` is its text: then ``coefficients`` and ``symbols`` list what is
    involved, each with coefficient 0, and ``offset`` is 0.
    """

    coefficients: Coefficients
    symbols: Coefficients
    offset: int
    function: str = ""

    @property
    def affine(self) -> bool:
        """Whether it is one affine form."""
        return not self.function

    @property
    def loops(self) -> Names:
        """Names of the loops the subscript involves."""
        return tuple(name for name, _ in self.coefficients)

    @property
    def direction(self) -> tuple[object, ...]:
        """What it is but for its constant."""
        return self.coefficients, self.symbols, self.function

    def distance(self, other: Subscript) -> int | None:
        """Return how far apart two subscripts are, ``None`` where that is no known constant."""
        return abs(self.offset - other.offset) if self.direction == other.direction else None


@frozen
class Reference:
    """A distinct array reference of a kernel.

    Accesses of several statements, or the read and the write of one, that touch
    the same element at the same point of the kernel's loops are one reference: those of its
    ``places``, statements and numbers of their accesses.
    ``relation`` maps the kernel's space ``kernel[loops…, inner loops…]`` to array
    elements; counters of host loops are parameters of it.
    """

    array: str
    text: str
    statements: Names
    reads: bool
    writes: bool
    subscripts: tuple[Subscript, ...]
    relation: isl.Map
    places: frozenset[Place] = frozenset()

    @property
    def loops(self) -> frozenset[str]:
        """Names of all loops the reference depends on."""
        return frozenset(name for subscript in self.subscripts for name in subscript.loops)


@frozen
class Reduction:
    """An update ``target = target operator value`` carried by ``loops``.

    ``operator`` is the associative, commutative C operator or function (``+``,
    ``*``, ``fmax``); ``loops`` are the kernel's loops along which the target does
    not move.
    """

    statement: str
    array: str
    operator: str
    loops: Names


@frozen
class Kernel:
    """One GPU kernel: a tile band below host loops, inner loops below the band.

    ``loops`` are the members of the band, outermost first: what is tiled. A
    kernel without a band (no loop of it is parallel) has none and runs in one
    thread. ``host_loops`` run on the host around the launch; ``inner_loops`` run
    inside a tile and are not tiled. ``schedule`` maps statement instances to
    ``kernel[loops…, inner loops…]``. ``launch_domain`` are the values of the host loops for
    which it is launched.
    """

    name: str
    statements: Names
    host_loops: Names
    loops: tuple[Loop, ...]
    inner_loops: tuple[Loop, ...]
    permutable: bool
    schedule: isl.UnionMap
    launch_domain: isl.Set
    references: tuple[Reference, ...]
    reductions: tuple[Reduction, ...]

    @property
    def parallel_loops(self) -> tuple[Loop, ...]:
        """The parallel members of the band, outermost first."""
        return tuple(loop for loop in self.loops if loop.parallel)


# -- program -----------------------------------------------------------------------------------
# A scop after scheduling.


@frozen
class Dependences:
    """Memory-based and value-based dependences between statement instances.

    ``flow`` is value-based (isl dataflow): from the last write of an element to each
    read of it. ``anti`` runs from reads to the next write, ``output`` from writes
    to the next write of the same element. ``order`` are the order dependences
    between live ranges; they and ``tagged_flow`` carry access ids on both ends and serve
    as conditional validity and its condition. ``forced`` keeps reads of live-in
    values before any write, and writes of live-out values after any other. They are those for some
    ``sizes``, for all where that is ``None``.
    """

    flow: isl.UnionMap
    anti: isl.UnionMap
    output: isl.UnionMap
    forced: isl.UnionMap
    tagged_flow: isl.UnionMap
    order: isl.UnionMap
    sizes: isl.Set | None = None

    @property
    def memory_based(self) -> isl.UnionMap:
        """All between instances that use one element, whatever becomes of values."""
        return self.flow.union(self.anti).union(self.output)

    @property
    def validity(self) -> isl.UnionMap:
        """What holds always."""
        return self.flow.union(self.forced)

    def within(self, context: isl.Set) -> Dependences:
        """Return the dependences there are for some sizes: a set of parameters."""
        here = self.each(lambda relation: relation.intersect_params(context))
        return replace(here, sizes=context)

    def each(self, change: Callable[[isl.UnionMap], isl.UnionMap]) -> Dependences:
        """Return them with a change made of each relation."""
        names = [one.name for one in fields(self) if one.name != "sizes"]
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **changed)


@frozen
class ScheduledScop:
    """A scop with its dependences, its new schedule tree and its kernels.

    ``kernels`` stand in the order in which the schedule launches them.
    ``host_statements`` are in no kernel: no loop of theirs is parallel and they come
    before the first kernel, after the last, or stand beside the kernels, so they run on the host,
    as in PPCG. ``assumes`` are the sizes that the schedule is right for, where it is not for all
    that run anything; ``dependences`` are those for them. ``source_order`` says that no other
    order was found in the time there is, so ``schedule`` is that of the source.
    """

    scop: Scop
    dependences: Dependences
    schedule: isl.Schedule
    kernels: tuple[Kernel, ...]
    host_statements: Names = ()
    assumes: isl.Set | None = None
    source_order: bool = False


# -- footprint ---------------------------------------------------------------------------------
# How many elements a rectangular tile touches, as a polynomial in its sizes.
#
# A tile takes ``T_l`` consecutive values of each loop ``l``. Its image under a reference is counted
# symbolically: where the subscripts fall apart into intervals (``A[i][k]``, ``I[h + kh]``) or are
# one to one in their loops (``A[i + j][j]``), the image is a box in suitable coordinates,
# references that differ by constants are translated copies of one box, and the
# union of translated boxes is a sum over the cells between their sides. So the halo of a
# stencil counts once. Anything else is bounded from above and marked as inexact.


_MAX_CELLS = 20_000
_LEAST = 4
"""The least size of a tile in a loop that has at least as many trips."""


@frozen
class Footprint:
    """Elements a tile touches; ``exact`` is false where ``elements`` is an upper bound."""

    elements: Polynomial
    exact: bool


@frozen
class _Axis:
    """A direction of a box: its length, and the least that length can be."""

    length: Polynomial
    least: int


@fixed
class _Part:
    """Array dimensions that share no loop with the others.

    As an interval it has one dimension, in steps of ``step``; otherwise it is one to one in
    ``loops`` and its axes are theirs.
    """

    dims: Numbers
    loops: Names
    axes: tuple[_Axis, ...]
    step: int
    exact: bool


@frozen
class _Shape:
    """What references that are translated copies of each other have in common."""

    coefficients: tuple[Coefficients, ...]
    symbols: tuple[Coefficients, ...]


def footprint(references: Sequence[Reference], loops: Sequence[Loop]) -> Footprint:
    """Count the elements the references to one array touch in a tile, each element once.

    References that move differently along the loops (``A[i][k]`` and ``A[k][j]``) meet only in some
    tiles; they are added up, which is exact for tiles apart from the diagonal.

    Args:
        references: references of one kernel, all to one array.
        loops: all loops of the kernel; sizes are symbolic for each.

    Returns:
        The number of elements in the variables ``T_loop``.
    """
    least = {
        loop.name: _LEAST if loop.trip_count is None else max(1, min(_LEAST, loop.trip_count))
        for loop in loops
    }
    shapes: dict[_Shape, set[Numbers]] = {}
    total = Polynomial.constant(0)
    bounded: set[frozenset[str]] = set()
    for reference in references:
        if not all(subscript.affine for subscript in reference.subscripts):
            bounded.add(reference.loops)
            continue
        shape = _Shape(
            coefficients=tuple(s.coefficients for s in reference.subscripts),
            symbols=tuple(s.symbols for s in reference.subscripts),
        )
        shapes.setdefault(shape, set()).add(tuple(s.offset for s in reference.subscripts))
    exact = not bounded and len(shapes) <= 1
    for used in bounded:
        total = total + Polynomial.product(used)
    for shape, offsets in shapes.items():
        counted = _translates(shape, sorted(offsets), least)
        total, exact = total + counted.elements, exact and counted.exact
    return Footprint(elements=total, exact=exact)


def _translates(shape: _Shape, offsets: Sequence[Numbers], least: dict[str, int]) -> Footprint:
    """Count the union of copies of one image, translated by ``offsets``."""
    parts = [_part(shape, dims, least) for dims in _independent_dims(shape)]
    classes: dict[tuple[object, ...], list[Numbers]] = {}
    for offset in offsets:
        key = []
        shift: list[int] = []
        for part in parts:
            coset, steps = _locate(shape, part, tuple(offset[d] for d in part.dims))
            key.append(coset)
            shift.extend(steps)
        classes.setdefault(tuple(key), []).append(tuple(shift))
    axes = [axis for part in parts for axis in part.axes]
    total, exact = Polynomial.constant(0), all(part.exact for part in parts)
    for shifts in classes.values():
        counted = _union_of_boxes(axes, shifts)
        total, exact = total + counted.elements, exact and counted.exact
    return Footprint(elements=total, exact=exact)


def _independent_dims(shape: _Shape) -> list[Numbers]:
    """Group the array's dimensions by the loops they share."""
    shared = Classes[int | str](range(len(shape.coefficients)))
    for dim, coefficients in enumerate(shape.coefficients):
        shared.join(dim, *(name for name, _ in coefficients))
    groups = shared.sets()
    return sorted(tuple(sorted(one for one in group if isinstance(one, int))) for group in groups)


def _part(shape: _Shape, dims: Numbers, least: dict[str, int]) -> _Part:
    loops = distinct(name for d in dims for name, _ in shape.coefficients[d])
    if len(dims) == 1:
        interval = _interval(shape.coefficients[dims[0]], least)
        if interval is not None:
            axis, step = interval
            return _Part(dims, (), (axis,), step, exact=True)
    if len(_reduce(_matrix(shape, dims, loops), len(loops))[1]) == len(loops):
        axes = tuple(_Axis(length=Polynomial.product([name]), least=least[name]) for name in loops)
        return _Part(dims, loops, axes, 1, exact=True)
    # the bounding box, one axis a dimension: translation stays exact
    axes = tuple(_line(shape.coefficients[d], least)[0] for d in dims)
    return _Part(dims, (), axes, 1, exact=False)


def _matrix(shape: _Shape, dims: Sequence[int], loops: Sequence[str]) -> list[list[int]]:
    return [[dict(shape.coefficients[d]).get(name, 0) for name in loops] for d in dims]


def _interval(
    coefficients: Sequence[tuple[str, int]], least: dict[str, int]
) -> tuple[_Axis, int] | None:
    """Return the length and step of the values of ``Σ c·l``, if they leave no gap."""
    step = gcd(*(c for _, c in coefficients)) or 1
    axis, has_gaps = _line([(name, c // step) for name, c in coefficients], least)
    return None if has_gaps else (axis, step)


def _line(coefficients: Sequence[tuple[str, int]], least: dict[str, int]) -> tuple[_Axis, bool]:
    """Return how far the values of ``Σ c·l`` reach, and whether some between are left out."""
    length, shortest, has_gaps = Polynomial.constant(1), 1, False
    for name, coefficient in sorted(coefficients, key=lambda pair: abs(pair[1])):
        stride = abs(coefficient)
        has_gaps |= stride > shortest
        length = length + Polynomial.of([(stride, [name]), (-stride, [])])
        shortest += stride * (least[name] - 1)
    return _Axis(length=length, least=shortest), has_gaps


def _locate(shape: _Shape, part: _Part, offset: Numbers) -> tuple[object, Numbers]:
    """Split a translation into steps along the axes and what no steps can reach.

    Images whose second parts differ are disjoint: two translations differ by a combination of the
    columns of the matrix, which are independent, if and only if what is left of them is equal.
    """
    if not part.loops:
        return tuple(o % part.step for o in offset), tuple(o // part.step for o in offset)
    width = len(part.loops)
    matrix = _matrix(shape, part.dims, part.loops)
    rows, _ = _reduce([[*row, o] for row, o in zip(matrix, offset, strict=True)], width)
    last = [row[-1] for row in rows]
    whole = tuple(int(value // 1) for value in last[:width])
    return (*last[width:], *(value % 1 for value in last[:width])), whole


def _union_of_boxes(axes: Sequence[_Axis], shifts: Sequence[Numbers]) -> Footprint:
    """Count the union of copies of one box: cells between their sides that some copy covers.

    Along each axis the sides of the copies cut out cells of constant width on the left
    and on the right and one cell in the middle that all copies cover, if they overlap.
    """
    marks = [sorted({shift[a] for shift in shifts}) for a in range(len(axes))]
    overlap = all(m[-1] - m[0] <= axis.least for axis, m in zip(axes, marks, strict=True))
    if not overlap or prod(2 * len(m) - 1 for m in marks) > _MAX_CELLS:
        return _bounded_union(axes, shifts, marks)
    cells = [_cells(axis, m) for axis, m in zip(axes, marks, strict=True)]
    total = Polynomial.constant(0)
    for choice in product(*cells):
        covered = any(
            all(low <= s <= high for (_, low, high), s in zip(choice, shift, strict=True))
            for shift in shifts
        )
        if covered:
            volume = Polynomial.constant(1)
            for width, _, _ in choice:
                volume = volume * width
            total = total + volume
    return Footprint(elements=total, exact=True)


def _cells(axis: _Axis, marks: Sequence[int]) -> list[tuple[Polynomial, int, int]]:
    """Return the cells along an axis: width, and the least and largest shift that covers it."""
    first, last = marks[0], marks[-1]
    cells = [(axis.length - Polynomial.constant(last - first), first, last)]
    for low, high in pairwise(marks):
        width = Polynomial.constant(high - low)
        cells += [(width, first, low), (width, high, last)]
    return cells


def _bounded_union(
    axes: Sequence[_Axis], shifts: Sequence[Numbers], marks: Sequence[Sequence[int]]
) -> Footprint:
    """Bound the union by the sum of the copies or by their bounding box, whichever is less.

    The two are compared at four times the least sizes.
    """
    box = Polynomial.constant(1)
    hull = Polynomial.constant(1)
    for axis, m in zip(axes, marks, strict=True):
        box = box * axis.length
        hull = hull * (axis.length + Polynomial.constant(m[-1] - m[0]))
    copies = box * Polynomial.constant(len(set(shifts)))
    lengths = [4 * axis.least for axis in axes]
    sum_size = len(set(shifts)) * prod(lengths)
    hull_size = prod(n + m[-1] - m[0] for n, m in zip(lengths, marks, strict=True))
    return Footprint(elements=copies if sum_size <= hull_size else hull, exact=False)


def _reduce(
    matrix: Sequence[Sequence[int]], columns: int
) -> tuple[list[list[Fraction]], list[int]]:
    """Bring rows to reduced echelon form over the first columns; return them and the pivots."""
    rows = [[Fraction(x) for x in row] for row in matrix]
    pivots: list[int] = []
    for column in range(columns):
        top = len(pivots)
        pivot = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[top], rows[pivot] = rows[pivot], rows[top]
        rows[top] = [x / rows[top][column] for x in rows[top]]
        for r, row in enumerate(rows):
            if r != top and row[column]:
                rows[r] = [x - row[column] * y for x, y in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return rows, pivots
