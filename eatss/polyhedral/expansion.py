"""Scalars of the region: each iteration that has a value in one gets an element of its own.

``double acc = 0; for (l …) acc += …; C[i][j] = acc;`` adds up in one scalar, whose reuse keeps isl
from tiling ``l`` together with ``i`` and ``j``. By live ranges no value leaves its iteration of
``i`` and ``j``, so ``acc`` may as well be ``acc[i][j]`` [Verdoolaege and Cohen, *Live-range
reordering*]: the same program as one that adds up in ``C[i][j]``. Nor have the statements of a row
that a scalar joins (its maximum, its sum) to stay in the same loop then. In generated code the
elements are registers where one kernel uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from eatss.free_names import free_name
from eatss.isl_names import leading_dims_positive, leading_outputs_of
from eatss.polyhedral.accesses import Place, first_equal
from eatss.polyhedral.live_ranges import LiveRange, live_ranges
from eatss.scops import Access, Array, Scop, Statement


def with_expanded_scalars(scop: Scop) -> Scop:
    """Return a region in which scalars have an element for each iteration that values stay in.

    The region itself where there is nothing to expand. Expanded are scalars that are dead after
    the region and live through a loop inside such an iteration; where values of one scalar have
    nothing to do with each other, each gets an array. The context says that a loop that adds up
    runs: without it, isl could not put what comes before the sum and after it into one band.
    """
    ranges = [one for one in live_ranges(scop) if _expands(scop, one)]
    if not ranges:
        return scop
    left = _places(scop).difference(*(one.places for one in ranges))
    used = {scop.statement(name).accesses[at].array for name, at in left}
    taken = {*scop.parameters, *(one.name for one in scop.arrays)}
    taken |= {one.name for one in scop.statements}
    taken |= {one.name for one in scop.function_parameters}
    arrays = {one.name: one for one in scop.arrays}
    named: dict[str, LiveRange] = {}
    for one in ranges:
        name = one.scalar.name
        named[free_name(name, taken) if name in used or name in named else name] = one
    statements, context = scop.statements, scop.context
    for name, one in named.items():
        statements = tuple(_expanded(statement, one, name) for statement in statements)
    for name, one in named.items():
        arrays[name] = _array(one, name, statements)
        context = context.intersect(_with_terms(scop, name, statements))
    return replace(scop, arrays=tuple(arrays.values()), statements=statements, context=context)


def expanded_arrays(before: Scop, after: Scop) -> tuple[str, ...]:
    """Return the arrays of one region that are scalars in the other, or part of one."""
    n_dims = {array.name: array.n_dims for array in before.arrays}
    return tuple(
        a.name for a in after.arrays if a.n_dims and not a.copy_of and not n_dims.get(a.name)
    )


def _expands(scop: Scop, values: LiveRange) -> bool:
    """Tell whether there is a loop inside the iterations that values stay in.

    Counters do not get negative, for they become subscripts.
    """
    return 0 < values.depth < values.deepest and all(
        leading_dims_positive(scop.statement(name).domain, values.depth)
        for name, _ in values.places
    )


def _places(scop: Scop) -> frozenset[Place]:
    """Return all accesses, of those spelled alike the first."""
    return frozenset((one.name, at) for one in scop.statements for at in first_equal(one.accesses))


def _expanded(statement: Statement, values: LiveRange, name: str) -> Statement:
    """Return a statement with elements of the array ``name`` in the places of a live range."""
    firsts = first_equal(statement.accesses)
    own = [(statement.name, first) in values.places for first in firsts]
    if not any(own):
        return statement
    return replace(
        statement,
        accesses=tuple(
            _expanded_access(statement, access, values.depth, name) if expands else access
            for access, expands in zip(statement.accesses, own, strict=True)
        ),
    )


def _expanded_access(statement: Statement, access: Access, depth: int, name: str) -> Access:
    relation = leading_outputs_of(access.relation, depth).set_tuple_name(isl.dim_type.out, name)
    return replace(access, array=name, relation=relation.intersect_domain(statement.domain))


def _array(values: LiveRange, name: str, statements: Sequence[Statement]) -> Array:
    """Return the array of the elements that statements name."""
    extent: isl.Set | None = None
    for statement in statements:
        for access in statement.accesses:
            if access.array == name:
                touched = access.relation.range()
                extent = touched if extent is None else extent.union(touched)
    assert extent is not None
    return replace(
        values.scalar,
        name=name,
        extent=extent.coalesce(),
        n_dims=values.depth,
        is_local=True,
    )


def _with_terms(scop: Scop, name: str, statements: Sequence[Statement]) -> isl.Set:
    """Return the sizes for which a sum has terms wherever it is begun."""
    known = isl.Set.universe(scop.context.get_space())
    own = [one for one in statements if any(access.array == name for access in one.accesses)]
    for update in own:
        if update.write.array == name and any(read.array == name for read in update.reads):
            terms = update.domain.params()
            for other in own:
                known = known.intersect(terms.gist(other.domain.params()))
    return known.coalesce()
