"""Loops over neighbouring dimensions become one: a contraction is a product of matrices.

``C[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d]`` uses ``a`` and ``b`` only side by side, as do
``c`` and ``d``, ``e`` and ``f``. Rows follow each other in memory, so ``a`` and ``b`` may as well
be one loop over one dimension of ``NA * NB`` elements: tiles then are as large as cards like them,
whatever the extents are. Known as collapsing [OpenMP] or coalescing of loops.

The order of all instances stays as it is. For sizes that are no numbers, the length of the loop is
a parameter of its own, see :class:`~eatss.polyhedral.scop.SizeProduct`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.base.classes import Classes
from eatss.base.diagnostics import internal_error
from eatss.base.frozen import distinct
from eatss.base.trees import free_name
from eatss.polyhedral.expression import AffineValue, Array, preorder, pulled_back
from eatss.polyhedral.isl_names import (
    IN,
    Length,
    affine_form,
    affine_text,
    collapsed_set,
    constant_value,
    counter_of,
    dim_names,
    involved_dims,
    map_between,
    named_map,
    output_affs,
    pair_length,
    parameter_bound,
    parameter_is_bounded,
    row_numbers,
    with_names,
)
from eatss.polyhedral.scop import Access, Scop, SizeProduct, Statement

_Place: TypeAlias = tuple[str, int]
"""A pair: the name of its statement or array, and the position of its first half."""


_Lengths: TypeAlias = dict[_Place, tuple[Length, Length]]
"""The lengths of both halves of each pair that may become one."""


def with_collapsed_loops(scop: Scop) -> Scop:
    """Return a region in which loops that only run over neighbouring dimensions are one.

    The region itself where that leaves every sum with as many loops as it has: what a sum runs
    over then is one loop already, whose copies start once, and the other loops are as good alone.
    Where statements compute anew what they read, loops stay those of what is not read any more.
    """
    recomputes = any(statement.recomputed for statement in scop.statements)
    if recomputes or not any(len(_summed(statement)) > 1 for statement in scop.statements):
        return scop
    found = scop
    while (group := _group(found)) is not None:
        found = _collapsed(found, *group)
    pairs = zip(scop.statements, found.statements, strict=True)
    return found if any(len(_summed(one)) > len(_summed(now)) for one, now in pairs) else scop


def has_collapsed_loops(scop: Scop) -> bool:
    """Tell whether loops of a region are one that its source has several of."""
    return any(array.declared is not None for array in scop.arrays)


def _summed(statement: Statement) -> frozenset[str]:
    """Return the loops that a statement adds up over, none if it is no update."""
    write = statement.write
    if not any(read.relation.is_equal(write.relation) for read in statement.reads):
        return frozenset()
    subscripts = output_affs(with_names(write.relation, IN, statement.loops))
    free = {name for function in subscripts for name in involved_dims(function)}
    return frozenset(statement.loops) - free


def _group(scop: Scop) -> tuple[_Lengths, set[_Place]] | None:
    """Return the lengths of all pairs and the first pairs that can become one together."""
    lengths, links = _pairs(scop)
    for statement in scop.statements:
        for first in range(len(statement.loops) - 1):
            place = (statement.name, first)
            group = links.get(place)
            if group and not any((name, at + 1) in group for name, at in group):
                return lengths, group
    return None


def _pairs(scop: Scop) -> tuple[_Lengths, dict[_Place, set[_Place]]]:
    """Return the pairs of loops and of dimensions of a region that nothing keeps apart.

    Arrays have no names of statements. Each pair comes with those that it can become one with.
    """
    owners = [
        (statement.name, statement.domain, len(statement.loops)) for statement in scop.statements
    ]
    owners += [(array.name, array.extent, array.n_dims) for array in scop.arrays]
    lengths = {
        (name, first): found
        for name, points, count in owners
        for first in range(count - 1)
        if (found := pair_length(points, first)) is not None
    }
    links = Classes(lengths)
    spoilt = {*_link_statements(scop, lengths, links)}
    for statement in scop.statements:
        spoilt |= {*_counted(statement)}
        for access in statement.accesses:
            spoilt |= _linked(statement, access, lengths, links)
    return lengths, {own: one for own, one in links.of.items() if one.isdisjoint(spoilt)}


def _counted(statement: Statement) -> Iterator[_Place]:
    """Yield the pairs of loops one of which is counted with: in ``i + 1``, not in ``N + 1``."""
    for node in preorder(statement.value):
        if isinstance(node, AffineValue):
            for name in involved_dims(node.value):
                at = statement.loops.index(name)
                yield from ((statement.name, at - 1), (statement.name, at))


def _linked(
    statement: Statement, access: Access, lengths: _Lengths, links: Classes[_Place]
) -> set[_Place]:
    """Link the pairs that an access has side by side; return those that it keeps apart."""
    loops = statement.loops
    subscripts = output_affs(with_names(access.relation, IN, loops))
    spoilt = set()
    side_by_side: set[tuple[int, int]] = set()  # first loop, first dimension
    for at, (one, other) in enumerate(pairwise(map(counter_of, subscripts))):
        first = loops.index(one) if one is not None else len(loops)
        place, loop = (access.array, at), (statement.name, first)
        follows = loop in lengths and other == loops[first + 1]
        if follows and lengths.get(place, ())[1:] == lengths[loop][1:]:
            links.join(place, loop)
            side_by_side.add((first, at))
        else:
            spoilt |= {place, loop} if follows else {place}
    for at, function in enumerate(subscripts):
        for name in involved_dims(function):
            position = loops.index(name)
            for first in (position - 1, position):
                if (first, at - (position - first)) not in side_by_side:
                    spoilt.add((statement.name, first))
    return spoilt


def _link_statements(scop: Scop, lengths: _Lengths, links: Classes[_Place]) -> Iterator[_Place]:
    """Link the pairs of loops that statements share; yield those that some share by half."""
    times = {statement.name: _times(statement) for statement in scop.statements}

    def share(one: Statement, other: Statement, depth: int) -> bool:
        """Tell whether two statements stand in one loop at a depth."""
        upto = 2 * depth + 1
        return times[one.name][:upto:2] == times[other.name][:upto:2]

    for one in scop.statements:
        for first in range(len(one.loops) - 1):
            place = (one.name, first)
            if place not in lengths:
                continue
            outer, between, inner = times[one.name][2 * first + 1 : 2 * first + 4]
            if (outer, inner) != one.loops[first : first + 2] or not between.lstrip("-").isdigit():
                yield place  # they do not both count up, one right inside the other
            for other in scop.statements:
                if len(other.loops) <= first or not share(one, other, first):
                    continue
                beside = (other.name, first)
                if lengths.get(beside) == lengths[place] and share(one, other, first + 1):
                    links.join(place, beside)
                else:
                    yield place


def _times(statement: Statement) -> list[str]:
    """Return each dimension of a statement's time as it is spelled: ``i``, ``2``, ``-i``."""
    functions = output_affs(with_names(statement.schedule, IN, statement.loops))
    forms = zip(map(affine_form, functions), functions, strict=True)
    return [str(function) if form is None else affine_text(form) for form, function in forms]


def _collapsed(scop: Scop, lengths: _Lengths, group: set[_Place]) -> Scop:
    """Return a region in which the pairs of a group are one each."""
    taken = scop.names.union(*(statement.loops for statement in scop.statements))
    products = {one.factors: one.name for one in scop.products}
    sizes = {place: _product(scop, lengths[place], products, taken) for place in sorted(group)}
    names: dict[tuple[str, str], str] = {}
    found = replace(
        scop,
        parameters=distinct((*scop.parameters, *products.values())),
        statements=tuple(
            _collapsed_statement(statement, sizes, names, taken) for statement in scop.statements
        ),
        arrays=tuple(_collapsed_array(array, sizes) for array in scop.arrays),
        context=_with_products(scop.context, products),
        products=tuple(SizeProduct(name=name, factors=of) for of, name in products.items()),
    )
    _check(scop, found, lengths, group)
    return found


def _product(
    scop: Scop,
    lengths: tuple[Length, Length],
    products: dict[tuple[Length, ...], str],
    taken: set[str],
) -> Length:
    """Return the product of two lengths: a number, or a parameter with that value."""
    known = {one.name: one.factors for one in scop.products}
    factors: list[Length] = []
    for length in lengths:
        factors += known.get(length, (length,)) if isinstance(length, str) else (length,)
    if all(isinstance(one, int) for one in factors):
        return prod(int(one) for one in factors)
    key = tuple(factors)
    if key not in products:
        products[key] = free_name(_joined(key), taken)
    return products[key]


def _with_products(context: isl.Set, products: dict[tuple[Length, ...], str]) -> isl.Set:
    """Return what is known of sizes, products of those that are at least something among them."""
    for factors, name in products.items():
        least = prod(one if isinstance(one, int) else _least(context, one) for one in factors)
        if least > 0:
            at_least = f"[{name}] -> {{ : {name} >= {least} }}"
            context = context.intersect(isl.Set.read_from_str(context.get_ctx(), at_least))
    return context


def _least(sizes: isl.Set, name: str) -> int:
    """Return the least value that a size is known to have, 0 if it may be negative."""
    if not parameter_is_bounded(sizes, name, above=False):
        return 0
    return max(0, constant_value(parameter_bound(sizes, name, upper=False)) or 0)


def _joined(parts: Sequence[Length]) -> str:
    """Return a name made of others, one that C++ does not keep for itself."""
    name = re.sub("_+", "_", "_".join(map(str, parts))).lstrip("_")
    return f"n_{name}" if name[:1].isdigit() else name


def _collapsed_statement(
    statement: Statement,
    sizes: dict[_Place, Length],
    names: dict[tuple[str, str], str],
    taken: set[str],
) -> Statement:
    for first in reversed(range(len(statement.loops) - 1)):
        size = sizes.get((statement.name, first))
        if size is None:
            continue
        both = (statement.loops[first], statement.loops[first + 1])
        if both not in names:
            names[both] = free_name(_joined(both), taken)
        times = _times(statement)
        times[2 * first + 1 : 2 * first + 4] = [names[both]]
        loops = (*statement.loops[:first], names[both], *statement.loops[first + 2 :])
        domain = collapsed_set(statement.domain, first, size, loops)
        own, then = (statement.name, loops), ("", [*times, "0", "0"])
        pair = [*loops[:first], "0", "0", *loops[first + 1 :]]
        before = isl.PwMultiAff.from_map(
            map_between(domain, own, (statement.name, pair))
        ).as_multi_aff()
        statement = replace(
            statement,
            loops=loops,
            domain=domain,
            schedule=map_between(domain, own, then).intersect_domain(domain),
            accesses=tuple(
                _collapsed_access(statement, access, first, size, before)
                for access in statement.accesses
            ),
            value=pulled_back(statement.value, before),
        )
    return statement


def _collapsed_access(
    statement: Statement, access: Access, first: int, size: Length, before: isl.MultiAff
) -> Access:
    """Return an access with one subscript for each pair of loops that it has side by side."""
    pair, space = statement.loops[first : first + 2], before.get_domain_space()
    functions = output_affs(with_names(access.relation, IN, statement.loops))
    counters = [counter_of(function) for function in functions]
    places = [at for at in range(len(counters) - 1) if (*counters[at : at + 2],) == pair]
    counter = isl.MultiAff.identity_on_domain_space(space).get_at(first).to_pw_aff()
    subscripts = [
        counter if at in places else function.pullback_multi_aff(before)
        for at, function in enumerate(functions)
        if at - 1 not in places
    ]
    within = collapsed_set(access.relation.domain(), first, size, dim_names(space.universe_set()))
    return replace(access, relation=named_map(within, subscripts, access.array, ()))


def _collapsed_array(array: Array, sizes: dict[_Place, Length]) -> Array:
    for first in reversed(range(array.n_dims - 1)):
        size = sizes.get((array.name, first))
        if size is None:
            continue
        names = tuple(f"d{k}" for k in range(array.n_dims - 1))
        array = replace(
            array,
            extent=collapsed_set(array.extent, first, size, names),
            n_dims=array.n_dims - 1,
            declared=array.extent if array.declared is None else array.declared,
        )
    return array


def _check(before: Scop, after: Scop, lengths: _Lengths, group: set[_Place]) -> None:
    """Check that instances and elements are the same ones by other names, where sizes are numbers.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    if any(isinstance(one, str) for place in group for one in lengths[place]):
        return

    def renamed(piece: isl.Set) -> isl.Map:
        own = {
            first: int(lengths[of, first][1]) for of, first in group if of == piece.get_tuple_name()
        }
        return row_numbers(piece, own)

    for old, new in zip(before.statements, after.statements, strict=True):
        instances = renamed(old.domain)
        same = instances.is_injective() and instances.range().is_equal(new.domain)
        for one, other in zip(old.accesses, new.accesses, strict=True):
            elements = renamed(before.array(one.array).extent)
            found = one.relation.apply_domain(instances).apply_range(elements)
            same = same and found.is_equal(other.relation)
        if not same:
            raise internal_error(
                "EATSS-P901", f"collapsed loops of {old.name} run other instances", span=old.span
            )
