"""How many elements a rectangular tile touches, as a polynomial in its sizes.

A tile takes ``T_l`` consecutive values of each loop ``l``. Its image under a reference is counted
symbolically: where the subscripts fall apart into intervals (``A[i][k]``, ``I[h + kh]``) or are
one to one in their loops (``A[i + j][j]``), the image is a box in suitable coordinates,
references that differ by constants are translated copies of one box, and the
union of translated boxes is a sum over the cells between their sides. So the halo of a
stencil counts once. Anything else is bounded from above and marked as inexact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import gcd, prod

from eatss.base.frozen import frozen
from eatss.base.polynomial import Polynomial
from eatss.polyhedral.kernel import Loop, Reference

_MAX_CELLS = 20_000
_LEAST = 4
"""The least size of a tile in a loop that has at least as many trips."""


@frozen
class Footprint:
    """Elements a tile touches; ``exact`` is false where ``elements`` is an upper bound."""

    elements: Polynomial
    exact: bool


@dataclass(frozen=True, slots=True)
class _Axis:
    """A direction of a box: its length, and the least that length can be."""

    length: Polynomial
    least: int


@dataclass(frozen=True, slots=True)
class _Part:
    """Array dimensions that share no loop with the others.

    As an interval it has one dimension, in steps of ``step``; otherwise it is one to one in
    ``loops`` and its axes are theirs.
    """

    dims: tuple[int, ...]
    loops: tuple[str, ...]
    axes: tuple[_Axis, ...]
    step: int
    exact: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """What references that are translated copies of each other have in common."""

    coefficients: tuple[tuple[tuple[str, int], ...], ...]
    symbols: tuple[tuple[tuple[str, int], ...], ...]


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
    shapes: dict[_Shape, set[tuple[int, ...]]] = {}
    total = Polynomial.constant(0)
    bounded: set[frozenset[str]] = set()
    for reference in references:
        if not all(subscript.affine for subscript in reference.subscripts):
            bounded.add(reference.loops)
            continue
        shape = _Shape(
            tuple(s.coefficients for s in reference.subscripts),
            tuple(s.symbols for s in reference.subscripts),
        )
        shapes.setdefault(shape, set()).add(tuple(s.offset for s in reference.subscripts))
    exact = not bounded and len(shapes) <= 1
    for used in bounded:
        total = total + Polynomial.product(used)
    for shape, offsets in shapes.items():
        counted = _translates(shape, sorted(offsets), least)
        total, exact = total + counted.elements, exact and counted.exact
    return Footprint(elements=total, exact=exact)


def _translates(
    shape: _Shape, offsets: Sequence[tuple[int, ...]], least: dict[str, int]
) -> Footprint:
    """Count the union of copies of one image, translated by ``offsets``."""
    parts = [_part(shape, dims, least) for dims in _independent_dims(shape)]
    classes: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
    for offset in offsets:
        key: list[object] = []
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


def _independent_dims(shape: _Shape) -> list[tuple[int, ...]]:
    """Group the array's dimensions by the loops they share."""
    groups: list[tuple[set[int], set[str]]] = []
    for dim, coefficients in enumerate(shape.coefficients):
        dims, used = {dim}, {name for name, _ in coefficients}
        apart = []
        for other_dims, other_used in groups:
            if other_used & used:
                dims, used = dims | other_dims, used | other_used
            else:
                apart.append((other_dims, other_used))
        groups = [*apart, (dims, used)]
    return sorted(tuple(sorted(dims)) for dims, _ in groups)


def _part(shape: _Shape, dims: tuple[int, ...], least: dict[str, int]) -> _Part:
    loops = tuple(dict.fromkeys(name for d in dims for name, _ in shape.coefficients[d]))
    if len(dims) == 1:
        interval = _interval(shape.coefficients[dims[0]], least)
        if interval is not None:
            axis, step = interval
            return _Part(dims, (), (axis,), step, exact=True)
    if len(_reduce(_matrix(shape, dims, loops), len(loops))[1]) == len(loops):
        axes = tuple(_Axis(Polynomial.product([name]), least[name]) for name in loops)
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
    return _Axis(length, shortest), has_gaps


def _locate(shape: _Shape, part: _Part, offset: tuple[int, ...]) -> tuple[object, tuple[int, ...]]:
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


def _union_of_boxes(axes: Sequence[_Axis], shifts: Sequence[tuple[int, ...]]) -> Footprint:
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
    axes: Sequence[_Axis], shifts: Sequence[tuple[int, ...]], marks: Sequence[Sequence[int]]
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
