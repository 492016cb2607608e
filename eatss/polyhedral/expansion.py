"""Sums in scalars of the region: each iteration that has one gets an element of its own.

``double acc = 0; for (l …) acc += …; C[i][j] = acc;`` adds up in one scalar, whose reuse keeps isl
from tiling ``l`` together with ``i`` and ``j``. By live ranges no value leaves its iteration of
``i`` and ``j``, so ``acc`` may as well be ``acc[i][j]`` [Verdoolaege and Cohen, *Live-range
reordering*]: the same program as one that adds up in ``C[i][j]``. In generated code the elements
are registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from eatss.isl_names import equal_leading_dims, leading_dims_positive, leading_outputs_of
from eatss.polyhedral.dependences import TaggedAccesses, flow_of, tag_accesses
from eatss.scops import Access, Array, Scop, Statement


def with_expanded_sums(scop: Scop) -> Scop:
    """Return a region in which local scalars that sums use have an element for each iteration.

    The region itself where there is nothing to expand. Expanded are scalars that a statement adds
    to in a loop inside the iterations that their values stay in. The context says that such a loop
    runs: without it, isl could not put what comes before the sum and after it into one band.
    """
    sums = [array for array in scop.arrays if array.n_dims == 0 and _is_sum(scop, array)]
    if not sums:
        return scop
    accesses = tag_accesses(scop)
    depths = {array.name: _depth(scop, array, accesses) for array in sums}
    depths = {name: depth for name, depth in depths.items() if depth}
    if not depths:
        return scop
    statements = tuple(_expanded(statement, depths) for statement in scop.statements)
    arrays = tuple(
        _with_extent(array, statements, depths.get(array.name, 0)) for array in scop.arrays
    )
    context = scop.context
    for name in depths:
        context = context.intersect(_with_terms(scop, name))
    return replace(scop, arrays=arrays, statements=statements, context=context)


def _with_terms(scop: Scop, name: str) -> isl.Set:
    """Return the sizes for which a sum has terms wherever it is begun."""
    known = isl.Set.universe(scop.context.get_space())
    statements = list(_places(scop, scop.array(name)))
    for update in statements:
        if any(read.array == name for read in update.reads) and update.write.array == name:
            terms = update.domain.params()
            for other in statements:
                known = known.intersect(terms.gist(other.domain.params()))
    return known.coalesce()


def expanded_arrays(before: Scop, after: Scop) -> tuple[str, ...]:
    """Return the scalars of one region that are arrays in the other."""
    n_dims = {array.name: array.n_dims for array in before.arrays}
    return tuple(a.name for a in after.arrays if a.n_dims > n_dims.get(a.name, a.n_dims))


def _is_sum(scop: Scop, array: Array) -> bool:
    return array.is_local and any(
        statement.write.array == array.name
        and any(read.array == array.name for read in statement.reads)
        for statement in scop.statements
    )


def _places(scop: Scop, array: Array) -> Iterator[Statement]:
    """Yield the statements that mention an array."""
    for statement in scop.statements:
        if any(access.array == array.name for access in statement.accesses):
            yield statement


def _depth(scop: Scop, array: Array, accesses: TaggedAccesses) -> int:
    """Return how many outer loops tell the iterations apart that values stay in; 0 for none.

    Every read has the write it reads from in its own iteration, and none reads from elsewhere.
    Counters do not get negative, for they become subscripts.
    """
    statements = list(_places(scop, array))
    own = isl.UnionSet.from_set(isl.Set.universe(array.extent.get_space()))
    flow = flow_of(
        accesses.reads.intersect_range(own),
        accesses.schedule,
        must=accesses.writes.intersect_range(own),
    )
    if not flow.get_may_no_source().is_empty():
        return 0
    between = flow.get_may_dependence().factor_domain()
    deepest = max(len(statement.loops) for statement in statements)
    for depth in range(min(len(statement.loops) for statement in statements), 0, -1):
        positive = all(leading_dims_positive(s.domain, depth) for s in statements)
        if positive and deepest > depth and between.is_subset(equal_leading_dims(between, depth)):
            return depth
    return 0


def _expanded(statement: Statement, depths: dict[str, int]) -> Statement:
    if not any(access.array in depths for access in statement.accesses):
        return statement
    return replace(
        statement,
        accesses=tuple(
            _expanded_access(statement, access, depths.get(access.array, 0))
            for access in statement.accesses
        ),
    )


def _expanded_access(statement: Statement, access: Access, depth: int) -> Access:
    if not depth:
        return access
    relation = leading_outputs_of(access.relation, depth)
    return replace(access, relation=relation.intersect_domain(statement.domain))


def _with_extent(array: Array, statements: tuple[Statement, ...], depth: int) -> Array:
    if not depth:
        return array
    extent: isl.Set | None = None
    for statement in statements:
        for access in statement.accesses:
            if access.array == array.name:
                touched = access.relation.range()
                extent = touched if extent is None else extent.union(touched)
    assert extent is not None
    return replace(array, extent=extent.coalesce(), n_dims=depth)
