"""How many elements a rectangular tile touches, as a polynomial in its sizes.

A tile takes ``T_l`` consecutive values of each loop ``l``. References that differ by constants are
translated copies of one image, whose union is counted: so the halo of a stencil counts once. Boxes
are counted cell by cell, anything else as any set is. Where there is no polynomial for all sizes
from the least ones on, the number is bounded from above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

import islpy as isl

from eatss.analysis.count import RationalPolynomial, UncountableError, count_points
from eatss.base.frozen import Numbers
from eatss.base.polynomial import Polynomial
from eatss.polyhedral.dependences import at_most
from eatss.polyhedral.isl_names import Constraint, solutions
from eatss.polyhedral.kernel import Loop, Reference, Subscript

_MOST_COPIES = 1000
_OPERATIONS = 200_000
"""isl operations to count a union: some 50 ms. That of 125 copies needs 50 000."""

_LEAST = 4
"""The least size of a tile in a loop that has at least as many trips."""


def footprint(references: Sequence[Reference], loops: Sequence[Loop]) -> tuple[Polynomial, bool]:
    """Count the elements the references to one array touch in a tile, each element once.

    References that move differently along the loops (``A[i][k]`` and ``A[k][j]``) meet only in some
    tiles; they are added up, which is exact for tiles apart from the diagonal.

    Args:
        references: references of one kernel, all to one array.
        loops: all loops of the kernel; sizes are symbolic for each.

    Returns:
        The number of elements in the variables ``T_loop``, and whether it is no upper bound only.
    """
    least = {
        loop.name: _LEAST if loop.trip_count is None else max(1, min(_LEAST, loop.trip_count))
        for loop in loops
    }
    shapes: dict[object, list[Reference]] = {}
    for one in references:
        affine = all(subscript.affine for subscript in one.subscripts)
        shape = tuple(subscript.direction for subscript in one.subscripts) if affine else one.loops
        shapes.setdefault(shape, []).append(one)
    counted = [_translates(alike, least) for alike in shapes.values()]
    total = sum((elements for elements, _ in counted), start=Polynomial.constant(0))
    return total, len(counted) <= 1 and all(exact for _, exact in counted)


def _translates(alike: Sequence[Reference], least: Mapping[str, int]) -> tuple[Polynomial, bool]:
    """Count the union of copies of one image."""
    first = alike[0]
    if not all(subscript.affine for subscript in first.subscripts):
        return Polynomial.product(first.loops), False
    offsets = sorted({tuple(one.offset for one in own.subscripts) for own in alike})
    elements = _boxes(first.subscripts, offsets, least)
    if elements is None and len(offsets) <= _MOST_COPIES:
        elements = _counted(first, offsets, least)
    return (_bound(first, offsets, least), False) if elements is None else (elements, True)


def _boxes(
    subscripts: Sequence[Subscript], offsets: Sequence[Numbers], least: Mapping[str, int]
) -> Polynomial | None:
    """Return the elements of copies of a box, each side along a loop of its own.

    ``None`` where it is no such box, or copies of the least size do not overlap.
    """
    steps = {name: abs(factor) for one in subscripts for name, factor in one.coefficients}
    if any(len(one.coefficients) > 1 for one in subscripts) or len(steps) < sum(
        len(one.coefficients) for one in subscripts
    ):
        return None
    lattices: dict[Numbers, set[Numbers]] = {}  # copies by what no steps lead from one to another
    for own in offsets:
        sides = [(at, one.loops) for at, one in zip(own, subscripts, strict=True)]
        rest = tuple(at % steps[loops[0]] if loops else at for at, loops in sides)
        place = tuple(at // steps[loops[0]] for at, loops in sides if loops)
        lattices.setdefault(rest, set()).add(place)
    for places in lattices.values():
        for name, along in zip(steps, zip(*places, strict=True), strict=False):
            if max(along) - min(along) > least[name]:
                return None
    return sum((_cells([*steps], own) for own in lattices.values()), start=Polynomial.constant(0))


def _cells(loops: Sequence[str], places: Set[Numbers]) -> Polynomial:
    """Return the size of a union of boxes that overlap, by the cells along the first loop.

    Their sides cut out cells of constant width in front of and behind what is in all of them.
    """
    if not loops:
        return Polynomial.constant(1)
    marks = sorted({first for first, *_ in places})
    common = Polynomial.product([loops[0]]) + Polynomial.constant(marks[0] - marks[-1])
    cells = [(common, places)]
    for low, high in pairwise(marks):
        width = Polynomial.constant(high - low)
        cells.append((width, {one for one in places if one[0] <= low}))
        cells.append((width, {one for one in places if one[0] >= high}))
    sizes = (width * _cells(loops[1:], {one[1:] for one in own}) for width, own in cells)
    return sum(sizes, start=Polynomial.constant(0))


def _counted(
    reference: Reference, offsets: Sequence[Numbers], least: Mapping[str, int]
) -> Polynomial | None:
    """Return the elements of a union, ``None`` where they are no polynomial of all sizes."""
    context, loops = reference.relation.get_ctx(), sorted(reference.loops)
    sizes = {f"T{at}": name for at, name in enumerate(loops)}
    known = [Constraint(((size, 1),), -least[name], False) for size, name in sizes.items()]
    usual = solutions(context, [*sizes], known)
    text = _union(reference.subscripts, offsets, loops, [least[name] for name in loops])
    try:
        with at_most(context, _OPERATIONS):
            counted = count_points(isl.Set.read_from_str(context, text))
    except (isl.Error, UncountableError):
        return None
    total = RationalPolynomial({})
    for conditions, elements in counted.pieces.items():
        if any(name not in sizes for one in conditions for name, _ in one.terms):
            return None
        where = solutions(context, [*sizes], conditions)
        if usual.is_subset(where):
            total = total.plus(elements)
        elif not usual.is_disjoint(where):
            return None
    if total.denominator > 1 or any(name not in sizes for own in total.terms for name in own):
        return None
    return Polynomial.of(
        (int(factor), [sizes[name] for name in own]) for own, factor in total.terms.items()
    )


def _union(
    subscripts: Sequence[Subscript],
    offsets: Sequence[Numbers],
    loops: Sequence[str],
    least: Sequence[int],
) -> str:
    """Return the union of copies ``x = subscripts(l) + o`` over ``0 <= l < T`` as isl reads it."""
    moves, dims = range(len(loops)), range(len(subscripts))
    conditions = [f"{size} <= T{at} and 0 <= l{at} < T{at}" for at, size in enumerate(least)]
    for at, one in enumerate(subscripts):
        moved = [f"{factor}l{loops.index(name)}" for name, factor in one.coefficients]
        conditions.append(f"x{at} = {' + '.join([*moved, f'o{at}'])}")
    copies = (" and ".join(f"o{at} = {one}" for at, one in enumerate(own)) for own in offsets)
    conditions.append(f"(({') or ('.join(copies)}))")
    sizes, elements = ", ".join(f"T{at}" for at in moves), ", ".join(f"x{at}" for at in dims)
    inner = ", ".join([*(f"l{at}" for at in moves), *(f"o{at}" for at in dims)])
    return f"[{sizes}] -> {{ [{elements}] : exists {inner} : {' and '.join(conditions)} }}"


def _bound(
    reference: Reference, offsets: Sequence[Numbers], least: Mapping[str, int]
) -> Polynomial:
    """Bound a union by its copies, the boxes around them or the one around all, what is least.

    They are compared at four times the least sizes.
    """
    points = Polynomial.constant(len(offsets)) * Polynomial.product(reference.loops)
    copies, hull = Polynomial.constant(len(offsets)), Polynomial.constant(1)
    for one, own in zip(reference.subscripts, zip(*offsets, strict=True), strict=True):
        length = Polynomial.constant(1)
        for name, factor in one.coefficients:
            length += Polynomial.of([(abs(factor), [name]), (-abs(factor), [])])
        copies, hull = copies * length, hull * (length + Polynomial.constant(max(own) - min(own)))
    sizes = {name: 4 * size for name, size in least.items()}
    return min(points, copies, hull, key=lambda bound: bound.evaluate(sizes))
