"""The sizes that a prediction is for: what the source and the user say, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

import islpy as isl

from eatss.base.expected_run import ProgramSize
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import at_values, constant_value, integer, parameters_as_dims
from eatss.polyhedral.scop import Access, Scop

ASSUMED_SIZE = 4096
"""Stands for a size that the source leaves open, as far as what is known of it allows."""

MOST_BYTES = 32 * 2**30
"""Bytes of all arrays of a region at sizes that are assumed: they fit most cards."""

MOST_INDEX = 2**31 - 1
"""What indices of 32 bits count."""


def sizes_of(scops: Iterable[Scop]) -> tuple[ProgramSize, ...]:
    """Return the sizes that predictions of some regions are for, by name.

    A size that is open may count as another number in another region.
    """
    found: dict[ProgramSize, None] = {}
    for scop in scops:
        found |= {ProgramSize(name=name, value=value): None for name, value in scop.size_macros}
        found |= dict.fromkeys(_parameters(scop))
    return tuple(found)


def bytes_of_arrays(scop: Scop, values: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of each array of a region at some sizes."""
    known = tuple(values.items())
    return {
        array.name: prod(lengths_of(scop, array, known)) * array.element_type.size_bytes
        for array in scop.arrays
        if array.n_dims
    }


def lengths_of(scop: Scop, array: Array, values: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """Return how long each dimension of an array is at some sizes.

    Where the source does not say it (``double *x``), it is what the region touches.
    """
    lengths = extents_of(array, at_values(array.extent, values))
    if None not in lengths:
        return tuple(max(1, one) for one in lengths if one is not None)
    touched = [
        extents_of(array, at_values(elements, values))
        for elements in touched_elements(scop, array.name)
    ]
    found = []
    for position, length in enumerate(lengths):
        ends = [length] if length is not None else [one[position] for one in touched]
        known = [end for end in ends if end is not None]
        found.append(max(1, *known) if known and len(known) == len(ends) else ASSUMED_SIZE)
    return tuple(found)


def touched_elements(
    scop: Scop, array: str, statements: Iterable[str] | None = None
) -> list[isl.Set]:
    """Return what each access of a region, or of some of its statements, touches of an array."""
    named = None if statements is None else {*statements}
    return [
        access.relation.intersect_domain(statement.domain).range().intersect_params(scop.context)
        for statement in scop.statements
        if named is None or statement.name in named
        for access in statement.accesses
        if access.array == array
    ]


def extents_of(array: Array, elements: isl.Set) -> tuple[int | None, ...]:
    """Return the end of some elements of an array in each dimension, ``None`` where it is open."""
    extents = []
    for position in range(array.n_dims):
        bounded = elements.dim_has_upper_bound(isl.dim_type.set, position)
        last = constant_value(elements.dim_max(position)) if bounded else None
        extents.append(None if last is None else last + 1)
    return tuple(extents)


def parameter_values(scop: Scop) -> dict[str, int]:
    """Return the values of all parameters of a region, products of others included."""
    return scop.with_products({one.name: one.value for one in _parameters(scop)})


def leaving_accesses(scop: Scop) -> Iterator[tuple[Access, isl.Set]]:
    """Yield the accesses that leave their arrays for some sizes, with these sizes."""
    for statement in scop.statements:
        for access in statement.accesses:
            outside = access.relation.subtract_range(scop.array(access.array).extent)
            if not outside.is_empty():
                yield access, outside.domain().params()


def _parameters(scop: Scop) -> tuple[ProgramSize, ...]:
    """Return the parameters of a region that have a value, then the others with an assumed one.

    What is assumed is what launchers take: no access leaves its array, and arrays have as many
    elements as indices of 32 bits count. Sizes that make more of these, or arrays too large for a
    card, are halved until they fit.
    """
    if not scop.sizes:
        return ()
    known, most = scop.context, dict.fromkeys(scop.sizes, ASSUMED_SIZE)
    found = _at_most(scop, known, most)
    if not any(one.assumed for one in found):
        return found
    if leaving := [sizes for _, sizes in leaving_accesses(scop)]:
        wanted = [sizes.complement() for sizes in leaving]
        wanted += [statement.domain.params() for statement in scop.statements]  # something runs
        for sizes in wanted:
            within = known.intersect(sizes)
            known = known if within.is_empty() else within
    while True:
        found = _at_most(scop, known, most)
        here = _too_much(scop, found)
        if not any(here):
            return found
        smaller = {}
        for one in found:
            half = {**most, one.name: one.value // 2}
            fewer = one.assumed and most[one.name] > 1
            if fewer and _too_much(scop, _at_most(scop, known, half)) < here:
                smaller[one.name] = one.value // 2
        if not smaller:
            return found
        most |= smaller


def _too_much(scop: Scop, sizes: Iterable[ProgramSize]) -> tuple[int, int]:
    """Return how many elements of arrays indices do not count, and what a card has no room for."""
    taken = bytes_of_arrays(scop, scop.with_products({one.name: one.value for one in sizes}))
    beyond = [
        taken[one.name] // one.element_type.size_bytes - MOST_INDEX
        for one in scop.arrays
        if one.name in taken
    ]
    return sum(max(0, one) for one in beyond), max(0, sum(taken.values()) - MOST_BYTES)


def _at_most(scop: Scop, known: isl.Set, limits: Mapping[str, int]) -> tuple[ProgramSize, ...]:
    """Return the same, where what is assumed is no more than a limit if it can be."""
    given: list[ProgramSize] = []
    assumed: list[ProgramSize] = []
    for name in scop.sizes:
        least, most = _range(known, name)
        if least is not None and least == most:
            given.append(ProgramSize(name=name, value=least))
    known = at_values(known, [(one.name, one.value) for one in given])
    for name in scop.sizes:
        if name not in {one.name for one in given}:
            value = _largest(known, name, limits[name])
            assumed.append(ProgramSize(name=name, value=value, assumed=True))
            with_it = at_values(known, [(name, value)])
            known = known if with_it.is_empty() else with_it
    return (*given, *assumed)


def _largest(known: isl.Set, name: str, limit: int) -> int:
    """Return the largest value of a parameter up to a limit, the least one if all are beyond it."""
    line = _line(known, name)
    upto = line.upper_bound_val(isl.dim_type.set, 0, limit)
    best = line.dim_min_val(0) if upto.is_empty() else upto.dim_max_val(0)
    return integer(best) if best.is_int() else limit


def _range(known: isl.Set, name: str) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a parameter, ``None`` where it has no end."""
    line = _line(known, name)
    ends = line.dim_min_val(0), line.dim_max_val(0)
    least, most = (integer(one) if one.is_int() else None for one in ends)
    return least, most


def _line(known: isl.Set, name: str) -> isl.Set:
    """Return the values of a parameter."""
    return parameters_as_dims(known, (name,), "size").project_out_all_params()
